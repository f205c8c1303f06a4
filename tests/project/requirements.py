"""What pyproject.toml, constraints.txt and environment.yml ask for, read into one form so that tests can compare them."""

import tomllib
from pathlib import Path

import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from rattler import MatchSpec

CONDA_NAMES = {"torch": "pytorch", "matplotlib": "matplotlib-base"}  # where conda-forge has another name
UNPINNED = ("cuda-", "nvidia-")  # each release of torch pins these itself, and only its CUDA builds ask for them


def project(root: Path) -> dict:
    """Return the [project] table of pyproject.toml."""
    return tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def runtime(root: Path) -> list[Requirement]:
    """Return what a learner needs."""
    return [Requirement(line) for line in project(root)["dependencies"]]


def everything(root: Path) -> list[Requirement]:
    """Return the requirements of the package with all its extras."""
    extras = project(root)["optional-dependencies"].values()
    return runtime(root) + [Requirement(line) for extra in extras for line in extra]


def supported_pythons(root: Path) -> list[str]:
    """Return the versions of Python that the classifiers name, as "3.11"."""
    words = [line.split(" :: ") for line in project(root)["classifiers"]]
    return [word[-1] for word in words if word[:2] == ["Programming Language", "Python"]]


def pins(text: str) -> dict[str, list[Requirement]]:
    """Return the lines of a constraints file by package; ValueError for a line that is not `name==version [; marker]`."""
    found: dict[str, list[Requirement]] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip() and not line.startswith("#"):
            try:
                requirement = Requirement(line)
            except ValueError as error:
                raise ValueError(f"constraints.txt:{number}: {line}: wanted name==version") from error
            if [specifier.operator for specifier in requirement.specifier] != ["=="] or requirement.url or requirement.extras:
                raise ValueError(f"constraints.txt:{number}: {line}: wanted name==version")
            found.setdefault(canonicalize_name(requirement.name), []).append(requirement)
    return found


def unpinned(requirements: list[Requirement], pinned: dict[str, list[Requirement]]) -> list[str]:
    """Return the requirements that no pin meets, or that some pin breaks."""
    missing = []
    for requirement in requirements:
        name = canonicalize_name(requirement.name)
        versions = [next(iter(pin.specifier)).version for pin in pinned.get(name, [])]
        if not name.startswith(UNPINNED) and (not versions or not all(requirement.specifier.contains(version) for version in versions)):
            missing.append(f"{requirement}: pinned {versions or 'nowhere'}")
    return missing


def conda_specs(text: str) -> dict[str, SpecifierSet]:
    """Return name and bounds of each conda package of an environment file, as py-rattler reads them."""
    lines = [line for line in yaml.safe_load(text)["dependencies"] if isinstance(line, str)]
    specs = [MatchSpec(line, strict=True) for line in lines]
    return {spec.name.normalized: SpecifierSet("" if spec.version is None else str(spec.version)) for spec in specs}


def conda_differences(requirements: list[Requirement], specs: dict[str, SpecifierSet]) -> list[str]:
    """Return where the conda packages differ from the requirements, by name or bounds."""
    wanted = {CONDA_NAMES.get(requirement.name, requirement.name.replace("-", "_")): requirement.specifier for requirement in requirements}
    have = {name: bounds for name, bounds in specs.items() if name not in ("python", "pip")}
    return [
        f"{name}: pyproject.toml {wanted.get(name, 'lacks it')}, environment.yml {have.get(name, 'lacks it')}"
        for name in sorted({*wanted, *have})
        if wanted.get(name) != have.get(name)
    ]

"""What pyproject.toml and constraints.txt ask for; `python -m tests.project.requirements` writes environment.yml."""

import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

CONDA_NAMES = {"torch": "pytorch", "matplotlib": "matplotlib-base"}  # where conda-forge has another name
ENVIRONMENT = """# For conda, mamba and Binder. With pip, README.md says how to install the pinned set of constraints.txt instead.
# Written from pyproject.toml by `python -m tests.project.requirements`: change that, not this file. Solving this environment and
# starting it on Binder are not tested here.
name: attn_course
channels:
  - conda-forge
dependencies:
{packages}
  - pip:
      - -e .
"""
UNPINNED = ("cuda-", "nvidia-")  # each release of torch pins these itself, and only its CUDA builds ask for them


def pyproject(root: Path) -> dict:
    return tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))


def project(root: Path) -> dict:
    return pyproject(root)["project"]


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


def environment(root: Path) -> str:
    """Return environment.yml: a Python that is supported, and what a learner needs, within the bounds of pyproject.toml."""
    newest = int(supported_pythons(root)[-1].removeprefix("3."))
    lines = [f"python {project(root)['requires-python']},<3.{newest + 1}", "pip"]
    lines += [f"{CONDA_NAMES.get(one.name, one.name.replace('-', '_'))} {one.specifier}" for one in runtime(root)]
    return ENVIRONMENT.format(packages="\n".join(f"  - {line}" for line in lines))


if __name__ == "__main__":
    here = Path(__file__).parents[2]
    (here / "environment.yml").write_text(environment(here), encoding="utf-8")

"""pyproject.toml says what the course needs; constraints.txt and environment.yml say the same."""

from importlib import metadata

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version
from rattler.exceptions import InvalidMatchSpecError

from tests.project.requirements import conda_differences, conda_specs, everything, pins, project, runtime, supported_pythons, unpinned


@pytest.fixture
def pinned(root):
    return pins((root / "constraints.txt").read_text(encoding="utf-8"))


def installed_requirements(name: str) -> list[Requirement]:
    """Return what a package needs here, down to the last dependency; extras count for the course itself only."""
    found: dict[str, Requirement] = {}
    waiting = [(name, "test")]
    while waiting:
        package, extra = waiting.pop()
        for line in metadata.requires(package) or []:
            requirement = Requirement(line)
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                if requirement.name not in found:
                    waiting += [(requirement.name, wanted) for wanted in (requirement.extras or {""})]
                found[requirement.name] = requirement
    return list(found.values())


def test_every_requirement_is_pinned_within_its_bounds(root, pinned):
    assert unpinned(everything(root), pinned) == []


def test_every_dependency_of_a_dependency_is_pinned(pinned):
    needed = installed_requirements("attn_course")
    assert len(needed) > 100
    assert unpinned(needed, pinned) == []


def test_torch_and_triton_stay_at_the_versions_the_kernels_are_measured_with(pinned):
    assert [str(pin.specifier) for pin in pinned["torch"]] == ["==2.13.0"]
    assert [(str(pin.specifier), str(pin.marker)) for pin in pinned["triton"]] == [("==3.7.1", 'sys_platform == "linux"')]


def test_ipywidgets_is_not_the_release_that_shows_nothing(pinned):
    assert [str(pin.specifier) for pin in pinned.get("ipywidgets", [])] != ["==8.1.9"]


def test_an_unpinned_or_wrongly_pinned_requirement_is_noticed():
    pinned = pins("numpy==2.4.6\nrich==13.0\n")
    wanted = [Requirement("numpy>=2.1"), Requirement("rich>=14.0"), Requirement("torch>=2.11"), Requirement("nvidia-nccl-cu13>=2")]
    assert unpinned(wanted, pinned) == ["rich>=14.0: pinned ['13.0']", "torch>=2.11: pinned nowhere"]


@pytest.mark.parametrize(
    "line", ["numpy>=2.1", "numpy", "--index-url https://example.org", "torch @ file:///tmp/torch.whl", "numpy==2.*,>=2"]
)
def test_a_line_that_is_no_pin_is_an_error(line):
    with pytest.raises(ValueError, match=r"constraints.txt:2: .*: wanted name==version"):
        pins(f"# header\n{line}\n")


def test_the_conda_packages_are_those_of_pyproject_with_the_same_bounds(root):
    specs = conda_specs((root / "environment.yml").read_text(encoding="utf-8"))
    assert conda_differences(runtime(root), specs) == []


def test_the_conda_python_spans_the_supported_versions(root):
    bounds = conda_specs((root / "environment.yml").read_text(encoding="utf-8"))["python"]
    newest = Version(supported_pythons(root)[-1])
    assert bounds == SpecifierSet(f"{project(root)['requires-python']},<3.{newest.minor + 1}")


def test_conda_installs_the_course_itself_from_its_folder(root):
    environment = yaml.safe_load((root / "environment.yml").read_text(encoding="utf-8"))
    assert environment["channels"] == ["conda-forge"]
    assert environment["dependencies"][-1] == {"pip": ["-e ."]}


def test_a_conda_package_that_differs_is_named():
    specs = conda_specs("dependencies: [python >=3.11, pip, pytorch >=2.10, sympy >=1.14]")
    differences = conda_differences([Requirement("torch>=2.11"), Requirement("sympy>=1.14"), Requirement("rich>=14")], specs)
    assert differences == [
        "pytorch: pyproject.toml >=2.11, environment.yml >=2.10",
        "rich: pyproject.toml >=14, environment.yml lacks it",
    ]


def test_a_conda_line_that_does_not_parse_is_an_error():
    with pytest.raises(InvalidMatchSpecError, match="unable to parse version spec: >>2"):
        conda_specs("dependencies: [numpy >>2]")

"""pyproject.toml says what the course needs; constraints.txt and environment.yml say the same."""

from importlib import metadata

import pytest
from packaging.requirements import Requirement

from attn_course.commands.extras import EXTRAS
from tests.project.requirements import environment, everything, pins, project, pyproject, unpinned


@pytest.fixture
def pinned(root):
    return pins((root / "constraints.txt").read_text(encoding="utf-8"))


def with_their_own(requirements: list[Requirement]) -> list[Requirement]:
    """Return requirements and what they need here, down to the last dependency."""
    found: dict[str, Requirement] = {}
    waiting = [(requirement, "") for requirement in requirements]
    while waiting:
        requirement, extra = waiting.pop()
        if str(requirement) not in found and (requirement.marker is None or requirement.marker.evaluate({"extra": extra})):
            found[str(requirement)] = requirement
            needed = [Requirement(line) for line in metadata.requires(requirement.name) or []]
            waiting += [(one, wanted) for one in needed for wanted in (requirement.extras or {""})]
    return list(found.values())


def test_every_requirement_is_pinned_within_its_bounds(root, pinned):
    assert unpinned(everything(root), pinned) == []


def test_every_dependency_of_a_dependency_is_pinned(root, pinned):
    needed = with_their_own(everything(root))
    assert len(needed) > 100
    here = {name: [pin for pin in lines if pin.marker is None or pin.marker.evaluate()] for name, lines in pinned.items()}
    assert unpinned(needed, here) == []  # Sphinx for this Python asks for another docutils than Sphinx for a later one


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


def test_environment_yml_is_as_it_is_written_from_pyproject(root):
    assert (root / "environment.yml").read_text(encoding="utf-8") == environment(root), "run python -m tests.project.requirements"


def test_the_conda_environment_has_condas_names_and_a_supported_python(tmp_path):
    (tmp_path / "pyproject.toml").write_text("""[project]
requires-python = ">=3.11"
classifiers = ["Programming Language :: Python :: 3.11", "Programming Language :: Python :: 3.12"]
dependencies = ["torch>=2.11", "jupyter-client>=8.6"]
""")
    assert environment(tmp_path).partition("dependencies:\n")[2].split("\n  - ") == [
        *("  - python >=3.11,<3.13", "pip", "pytorch >=2.11", "jupyter_client >=8.6"),
        "pip:\n      - -e .\n",
    ]


def test_what_only_the_pins_are_bound_by_holds_for_them(root, pinned):
    assert unpinned([Requirement(line) for line in pyproject(root)["tool"]["uv"]["constraint-dependencies"]], pinned) == []


def test_what_is_missing_without_an_extra_is_said_of_all_that_only_it_brings(root):
    extras = project(root)["optional-dependencies"]
    listed = {Requirement(line).name for extra in ("author", "class") for line in extras[extra]}
    assert set(EXTRAS) == listed | {"docutils", "sphinx", "sphinx_revealjs", "genanki"}
    assert all(package.replace("_", "-") in {Requirement(line).name for line in extras[extra]} for package, extra in EXTRAS.items())

"""How results are stored, read back and found stale."""

import json

import pytest

from attn_course.experiments import core
from attn_course.experiments.__main__ import main
from attn_course.experiments.core import Experiment, ExperimentError, hash_of_sources


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A package with one experiment that needs a module and, through an `__init__`, one function of the reference."""
    files = {
        "experiments/core.py": "",
        "lessons/toy/experiments.py": "from attn_course.modules.layer import Layer\nfrom attn_course.reference import softmax\n",
        "modules/__init__.py": "",
        "modules/layer.py": "import torch\n",
        "reference/__init__.py": "from attn_course.reference.maps import softmax\nfrom attn_course.reference.other import thing\n",
        "reference/maps.py": "def softmax(): ...\n",
        "reference/other.py": "thing = 1\n",
    }
    package = tmp_path / "attn_course"
    for name, text in files.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text)
    monkeypatch.setattr(core, "PACKAGE", package)
    monkeypatch.setattr(core, "__file__", str(package / "experiments/core.py"))
    return package


def double(seed):
    return {"sum": 2 * seed, "curve": [seed, 0.5]}


double.__module__ = "attn_course.lessons.toy.experiments"
TOY = Experiment("results/sum.json", double, lambda found: found["sum"] % 2, lambda seed: {"a number": True})


def test_what_is_measured_comes_back_as_it_was(course):
    TOY.measure().save(TOY.path)
    record = TOY.load()
    assert record == TOY.measure()
    assert record.results == [{"sum": 0, "curve": [0, 0.5]}, {"sum": 2, "curve": [1, 0.5]}, {"sum": 4, "curve": [2, 0.5]}]
    assert record.values("sum").tolist() == [0, 2, 4]
    assert record.values("curve").shape == (3, 2)
    assert TOY.problem() is None


@pytest.mark.parametrize("changed", ["lessons/toy/experiments.py", "modules/layer.py", "reference/maps.py"])
def test_a_change_of_any_source_it_needs_makes_the_results_old(course, changed):
    TOY.measure().save(TOY.path)
    (course / changed).write_text((course / changed).read_text() + "changed = 1\n")
    assert TOY.problem() == "lessons/toy/results/sum.json belongs to an older source: run `make experiments`"


@pytest.mark.parametrize("changed", ["experiments/core.py", "reference/other.py", "reference/__init__.py"])
def test_a_change_elsewhere_does_not(course, changed):
    before = hash_of_sources("attn_course.lessons.toy.experiments")
    (course / changed).write_text((course / changed).read_text() + "changed = 1\n")
    assert hash_of_sources("attn_course.lessons.toy.experiments") == before


LAYER = '''"""A layer, Eq. softmax-vjp."""

import torch


class Layer(torch.nn.Module):
    """One."""

    def forward(self, x):
        return [x, "text"]
'''


def hash_with(course, layer):
    (course / "modules/layer.py").write_text(layer)
    return hash_of_sources("attn_course.lessons.toy.experiments")


CHANGES = {
    "a label in a docstring": ("Eq. softmax-vjp", "Eq. softmax-jacobian"),
    "no docstring": ('"""A layer, Eq. softmax-vjp."""', ""),
    "a string that stands alone": ('"""One."""', '"""One."""\n    "of a stack"'),
    "a comment": ("import torch", "import torch  # the layers of torch"),
    "the layout": ('[x, "text"]', "[\n            x,\n            'text',\n        ]"),
    "a text that is used: old": ('"text"', '"another text"'),
    "one entry fewer: old": ('[x, "text"]', "[x]"),
    "another order: old": ('[x, "text"]', '["text", x]'),
    "another bracket: old": ('[x, "text"]', '(x, "text")'),
    "another statement: old": ("return", "yield"),
    "another import: old": ("import torch", "import torch, math"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_words_and_layout_make_no_result_old_and_every_change_of_the_code_itself_does(course, name):
    assert (hash_with(course, LAYER.replace(*CHANGES[name])) != hash_with(course, LAYER)) == name.endswith("old")


def test_a_module_that_is_moved_makes_the_results_old(course):
    before = hash_of_sources("attn_course.lessons.toy.experiments")
    (course / "modules/layer.py").rename(course / "modules/block.py")
    (course / "lessons/toy/experiments.py").write_text(
        (course / "lessons/toy/experiments.py").read_text().replace("modules.layer", "modules.block")
    )
    assert hash_of_sources("attn_course.lessons.toy.experiments") != before


def test_missing_and_broken_results_say_what_to_do(course):
    with pytest.raises(
        ExperimentError, match=r"^no stored results of toy_sum: run `make experiments` \(it writes lessons/toy/results/sum.json\)$"
    ):
        TOY.load()
    TOY.measure().save(TOY.path)
    for text in ("{", "[]", '{"name": "x"}'):
        TOY.path.write_text(text)
        with pytest.raises(
            ExperimentError, match=r"^lessons/toy/results/sum.json is no record of an experiment \(.+\): run `make experiments`$"
        ):
            TOY.load()
        assert TOY.problem().endswith("run `make experiments`")


def test_results_of_other_seeds_are_found(course):
    TOY.measure().save(TOY.path)
    record = json.loads(TOY.path.read_text())
    TOY.path.write_text(json.dumps({**record, "seeds": [0, 1]}))
    assert "must hold one result for each of the seeds [0, 1, 2]; got [0, 1]" in TOY.problem()


def test_results_that_are_no_plain_data_are_refused(course):
    with pytest.raises(TypeError, match="not JSON serializable"):
        Experiment("results/sum.json", lambda seed: {"sum": {1, 2}}, str, dict).measure()


def test_the_command_runs_the_named_experiment_and_checks_it(course, monkeypatch, capsys):
    monkeypatch.setattr("attn_course.experiments.__main__.all_experiments", lambda: [TOY])
    assert main(["--check"]) == 1
    assert capsys.readouterr().out.startswith("no stored results of toy_sum")
    assert main(["toy_sum"]) == 0
    assert "  seed 2: 0\n" in capsys.readouterr().out
    assert main(["--check"]) == 0
    assert capsys.readouterr().out == "1 experiments are current\n"


def test_an_unknown_name_is_answered_with_the_known_ones(course, monkeypatch, capsys):
    monkeypatch.setattr("attn_course.experiments.__main__.all_experiments", lambda: [TOY])
    with pytest.raises(SystemExit):
        main(["nothing"])
    assert "no experiment is called 'nothing'; there are toy_sum" in capsys.readouterr().err

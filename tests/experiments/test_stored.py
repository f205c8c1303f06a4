"""Every stored result belongs to the present source, and every seed, also one that is not stored, gives the same conclusion."""

import pytest

from attn_course.experiments import all_experiments
from attn_course.experiments.core import PACKAGE

EXPERIMENTS = all_experiments()
FRESH_SEED = 3


def name(experiment):
    return experiment.name


def test_there_are_experiments_and_each_result_file_belongs_to_one():
    stored = set((PACKAGE / "lessons").glob("*/results/*"))
    assert stored == {experiment.path for experiment in EXPERIMENTS}
    assert stored


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=name)
def test_the_stored_results_are_those_of_the_present_source(experiment):
    assert experiment.problem() is None


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=name)
def test_the_file_says_when_where_and_with_what_it_was_measured(experiment):
    record = experiment.load()
    assert record.name == experiment.name
    assert set(record.versions) == {"python", "numpy", "torch"}
    assert record.device
    assert record.date.count("-") == 2
    assert len(set(record.seeds)) >= 3


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=name)
def test_all_stored_seeds_agree_and_a_fresh_one_reproduces_the_conclusion(experiment):
    first, *others = [experiment.conclude(result) for result in experiment.load().results]
    assert all(other == first for other in others)
    assert FRESH_SEED not in experiment.seeds
    assert experiment.conclude(experiment.run(FRESH_SEED)) == first

"""Every stored seed gives the same conclusion, and the quick forms give theirs; that results are of the present source, the gate says."""

import time

import pytest

from attn_course.experiments import all_experiments

EXPERIMENTS = all_experiments()
FRESH_SEED = 3
LONGEST_S = 15.0  # of CPU; a quick form takes 1 to 3, and three times that where a busy machine slows every instruction


def name(experiment):
    return experiment.name


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=name)
def test_the_file_says_when_where_and_with_what_it_was_measured(experiment):
    record = experiment.load()
    assert record.name == experiment.name
    assert set(record.versions) == {"python", "numpy", "torch"}
    assert record.device
    assert record.date.count("-") == 2
    assert len(set(record.seeds)) >= 3


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=name)
def test_all_stored_seeds_agree(experiment):
    first, *others = [experiment.conclude(result) for result in experiment.load().results]
    assert all(other == first for other in others)


@pytest.mark.parametrize("experiment", [each for each in EXPERIMENTS if not each.needs_model], ids=name)  # tests/language has those
def test_the_quick_form_comes_to_its_own_conclusion_with_a_fresh_seed(experiment):
    assert FRESH_SEED not in experiment.seeds
    begun_s = time.process_time()
    claims = experiment.quick(FRESH_SEED)
    assert time.process_time() - begun_s < LONGEST_S
    assert claims
    assert claims == dict.fromkeys(claims, True)

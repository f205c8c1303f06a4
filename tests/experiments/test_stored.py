"""Every stored seed gives the same conclusion, and the quick forms give theirs; that results are of the present source, the gate says."""

import time

import pytest

from attn_course.experiments import all_experiments

EXPERIMENTS = all_experiments()
FRESH_SEED = 3
LONGEST_S = 15.0  # of CPU; a quick form takes 1 to 3, and three times that where a busy machine slows every instruction


def test_the_files_say_when_where_and_with_what_they_were_measured_and_all_their_seeds_agree():
    wrong = []
    for experiment in EXPERIMENTS:
        record = experiment.load()
        told = record.device and record.date.count("-") == 2 and set(record.versions) == {"python", "numpy", "torch"}
        if record.name != experiment.name or not told or len(set(record.seeds)) < 3:
            wrong.append(f"{experiment.name}: got {record.name}, {record.seeds}, {record.versions}, {record.device!r}, {record.date!r}")
        first, *others = [experiment.conclude(result) for result in record.results]
        wrong += [f"{experiment.name}: seed {seed} gives {other}, the first {first}"
                  for seed, other in zip(record.seeds[1:], others, strict=True) if other != first]  # fmt: skip
    assert not wrong, "\n".join(wrong)


# tests/language has those that need the model
@pytest.mark.parametrize("experiment", [each for each in EXPERIMENTS if not each.needs_model], ids=lambda each: each.name)
def test_the_quick_form_comes_to_its_own_conclusion_with_a_fresh_seed(experiment):
    assert FRESH_SEED not in experiment.seeds
    begun_s = time.process_time()
    claims = experiment.quick(FRESH_SEED)
    assert time.process_time() - begun_s < LONGEST_S
    assert claims
    assert claims == dict.fromkeys(claims, True)

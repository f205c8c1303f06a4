"""What lessons say of the real model is what the stored measurements say."""

import numpy as np

from attn_course.lessons.absorption.experiments_smollm2 import SMOLLM2 as GAUGES
from attn_course.lessons.induction.experiments_names import NAMED
from attn_course.lessons.masking.experiments_smollm2 import SMOLLM2 as MASKS
from attn_course.lessons.self_attention.experiments_smollm2_answers import SMOLLM2 as ANSWERS


def test_the_answer_does_not_hang_on_the_head_that_finds_the_cat_but_on_values_read_late():
    record = ANSWERS.load()
    noun, other = record.values("as it is").T
    assert len(noun) == 10
    assert (record.values("layer 13, head 8 silenced")[:, 0] / noun).min() > 0.97
    groups = record.results[0]["values exchanged in layers"]
    late = record.values("values exchanged in layers", "22 to 24")
    assert (late[:, 0] < noun).all()
    assert (late[:, 0] / noun < 1 / 3).sum() == 9
    assert (late[:, 1] > late[:, 0]).sum() == 8
    assert noun.min() > 0.1
    assert sorted((record.values("layer 13, head 8 silenced")[:, 0] / noun).round(2))[-4:] == [1.12, 1.3, 1.32, 1.34]
    elsewhere = [record.values("values exchanged in layers", group)[:, 0] / noun for group in groups if group != "22 to 24"]
    assert len(elsewhere) == 8
    assert np.min(elsewhere) > 0.82
    first, *_, last = groups
    assert (first, last) == ("1 to 3", "25 to 27")
    np.testing.assert_allclose(record.values("in 22 to 24 with all weights held")[0], [0.08, 0.30], atol=0.005)
    assert other[0] < 0.02


def test_without_a_mask_in_one_layer_it_guesses_better_and_without_any_in_one_text_only():
    record = MASKS.load()
    masked = record.values("perplexity", "masked")
    fall = 1 - record.values("perplexity", "no mask in layer 20") / masked
    assert (round(100 * fall.min()), round(100 * fall.max())) == (18, 42)
    assert (record.values("perplexity", "no mask in layer 19") > masked).all()
    assert (record.values("perplexity", "no mask in any layer") > masked).sum() == 3
    assert len(masked) == 4


def test_only_a_gauge_that_commutes_with_the_rotations_leaves_the_model_as_it_was():
    record = GAUGES.load()
    assert record.values("pairs turned and stretched", "largest change of a logit").max() < 2e-4
    for kind in ("orthogonal", "any"):
        assert record.values(kind, "perplexity").min() > 100
    for kind in ("pairs turned and stretched", "orthogonal", "any"):
        assert record.values(kind, "without rotations, largest change of a logit").max() < 1e-3


def test_a_name_is_forgotten_without_one_head_and_this_is_none_of_the_eight():
    record = NAMED.load()
    forgets = [set(found["forgets without"]) for found in record.results]
    assert forgets[0] == {"(16, 0)", "(28, 2)"}
    assert sum("(16, 0)" in heads for heads in forgets) == 5
    np.testing.assert_allclose(record.values("late head looks", "name")[0], 0.49, atol=0.005)
    assert record.values("late head looks", "random tokens").max() < 0.055

"""Copies are found under new names and layout; honest answers, given code and what everybody writes are not."""

import re

import pytest

from attn_course.grading.similarity import similar_pairs

ORIGINAL = '''
import numpy as np

def my_attention(query, key, value):
    """Attend."""
    scores = query @ np.swapaxes(key, -1, -2) / np.sqrt(query.shape[-1])
    shifted = scores - scores.max(axis=-1, keepdims=True)
    terms = np.exp(shifted)
    total = terms.sum(axis=-1, keepdims=True)
    if value.shape[0] == 0:
        return np.zeros((*query.shape[:-1], value.shape[-1]))
    return (terms / total) @ value
'''
DISGUISED = """
import numpy as np
# entirely my own work
def my_attention(q: np.ndarray, k, v) -> np.ndarray:
    s = (q @ np.swapaxes(k, -1, -2)
         / np.sqrt(q.shape[-1]))
    z = s - s.max(axis=-1, keepdims=True)
    e = np.exp(z)
    t = e.sum(axis=-1, keepdims=True)
    if v.shape[0] == 0:
        return np.zeros((*q.shape[:-1], v.shape[-1]))
    return (e / t) @ v
"""
HONEST = """
import numpy as np

def my_attention(query, key, value):
    out = []
    for row in query:
        weights = np.array([np.exp(row @ k / len(row) ** 0.5) for k in key])
        out.append(sum(w * v for w, v in zip(weights / weights.sum(), value)))
    return np.array(out)
"""


def test_a_copy_with_new_names_comments_layout_and_annotations_is_found():
    (pair,) = similar_pairs({"bo": [DISGUISED], "al": [ORIGINAL], "cy": [HONEST]})
    assert pair.students == ("al", "bo")
    assert pair.share == 1.0


def test_the_shared_part_is_shown_as_it_stands_in_each():
    (pair,) = similar_pairs({"al": [ORIGINAL], "bo": ["x = 1", DISGUISED]})
    ours, theirs = ("\n".join(passage.text for passage in side) for side in pair.passages)
    assert "total = terms.sum(axis=-1, keepdims=True)" in ours
    assert "t = e.sum(axis=-1, keepdims=True)" in theirs
    assert {passage.cell for passage in pair.passages[1]} == {1}
    assert "# entirely my own work" not in theirs


def test_lines_put_between_do_not_hide_a_copy():
    padded = re.sub(r"\n    (?=\w)", "\n    print('step')\n    ", DISGUISED, count=3)
    (pair,) = similar_pairs({"al": [ORIGINAL], "bo": [padded], "cy": [HONEST]}, threshold=0.3)
    assert pair.students == ("al", "bo")


def test_answers_written_apart_are_not_alike():
    assert similar_pairs({"al": [ORIGINAL], "cy": [HONEST]}, threshold=0.2) == []


def test_what_everybody_was_given_does_not_count():
    assert similar_pairs({"al": [ORIGINAL], "bo": [DISGUISED]}, shown=[ORIGINAL]) == []


def test_what_many_of_a_class_write_does_not_count():
    many = {f"s{n}": [ORIGINAL] for n in range(8)}
    assert similar_pairs(many) == []
    assert len(similar_pairs({"a": [ORIGINAL], "b": [ORIGINAL], **{f"s{n}": [HONEST] for n in range(8)}})) == 1


def test_other_constants_and_attributes_are_other_code():
    other = ORIGINAL.replace("axis=-1", "axis=0").replace("np.exp", "np.exp2").replace(".max", ".min").replace(".sum", ".mean")
    assert similar_pairs({"al": [ORIGINAL], "bo": [other]}, threshold=0.6) == []


def test_magics_and_broken_cells_do_not_stop_it():
    (pair,) = similar_pairs({"al": ["%matplotlib inline\n" + ORIGINAL, "def broken(:"], "bo": ["x = '\x00'", "!ls", DISGUISED]})
    assert pair.share == 1.0


def test_tiny_answers_are_never_reported():
    assert similar_pairs({"al": ["x = 3"], "bo": ["x = 3"]}) == []


@pytest.mark.parametrize("threshold", [0.0, -1.0, 1.5, float("nan")])
def test_a_threshold_out_of_range_is_refused(threshold):
    with pytest.raises(ValueError, match=r"threshold must lie in \(0, 1\]"):
        similar_pairs({}, threshold=threshold)

"""Copies are found under new names and layout; honest answers, given code and what everybody writes are not."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import indent

import pytest

from attn_course.checking.cells import exercise_files, read_code_cells
from attn_course.classroom.similarity import Pair, compare, groups
from attn_course.classroom.similarity_rows import rows_of

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
NAMES = {"query": "q", "key": "k", "value": "v", "scores": "s", "shifted": "z", "terms": "e", "total": "t"}
DISGUISED = re.sub(r"\b(?:" + "|".join(NAMES) + r")\b", lambda name: NAMES[name[0]], ORIGINAL).replace('    """Attend."""\n', "")
DISGUISED = DISGUISED.replace("\n\ndef", "\n# entirely my own work\ndef").replace("(q, k, v):", "(q: np.ndarray, k, v) -> np.ndarray:")
DISGUISED = DISGUISED.replace(
    "s = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])", "s = (q @ np.swapaxes(k, -1, -2)\n         / np.sqrt(q.shape[-1]))"
)
HONEST = """
import numpy as np

def my_attention(query, key, value):
    out = []
    for row in query:
        weights = np.array([np.exp(row @ k / len(row) ** 0.5) for k in key])
        out.append(sum(w * v for w, v in zip(weights / weights.sum(), value)))
    return np.array(out)
"""


def similar_pairs(submissions: Mapping[str, Sequence[str]], **options) -> list[Pair]:
    return list(compare(submissions, **options).pairs)


def test_the_shared_part_is_shown_as_it_stands_in_each():
    (pair,) = similar_pairs({"al": [ORIGINAL], "bo": ["x = 1", DISGUISED]})
    ours, theirs = ("\n".join(passage.text for passage in side) for side in pair.passages)
    assert "total = terms.sum(axis=-1, keepdims=True)" in ours
    assert "t = e.sum(axis=-1, keepdims=True)" in theirs
    assert {passage.cell for passage in pair.passages[1]} == {1}
    assert "# entirely my own work" not in theirs


PADDING = {
    "an assignment to _": "_ = 0",
    "an unused assignment": "spare{n} = np.zeros(({n}, 3)) + q.sum()",
    "a chain of unused assignments": "one{n} = {n}; two{n} = one{n} + 1; one{n} = two{n} * 2; two{n} += one{n}",
    "pass": "pass; pass",
    "a string": "'step {n}'",
    "a print": "print('step', {n}, q.shape)",
    "a branch never taken": "if False:\n        q = k[::{n}] @ v + np.ones((3, {n}))",
    "a branch always taken": "if True:\n        _ = q[{n}]",
    "a loop that does nothing": "for i in range({n}):\n        spare = [i, k] * 3",
    "a function never called": "def helper{n}(a, b):\n        return a @ b + {n}",
    "an import": "import math as m{n}",
    "an assertion of nothing": "assert True, 'fine {n}'",
    "a zero added": "q = q + 0; k = 0.0 + k - 0",
    "a zero added in place": "q += 0; k -= 0.0",
    "a factor of one": "q = 1 * q / 1; k: object = k**1; k *= 1",
    "a name given to itself": "q = q; k = +(+k)",
    "a zero added to what is overwritten later": "spare{n} = q; spare{n} = spare{n} + 0",
}


def padded(source: str, padding: str) -> str:
    numbers = iter(range(1, 100))
    return re.sub(r"\n    (?=\w)", lambda _: f"\n    {padding.format(n=next(numbers))}\n    ", source)


RETURNS = DISGUISED.replace("    return (e / t) @ v", "    if True:\n        return (e / t) @ v\n    return q + k")
COPIES = {
    "new names, comments, layout and annotations": DISGUISED,
    "values that are overwritten": DISGUISED.replace("    z = s", "    z = 0\n    e = k\n    t, z = v, k\n    z = s"),
    "code after a return and around it": f"if 1:\n{indent(RETURNS, '    ')}\nelse:\n    x = 3",
    "a magic before it": f"%matplotlib inline\n{DISGUISED}",
    **{name: padded(DISGUISED, padding) for name, padding in PADDING.items()},
}


@pytest.mark.parametrize("copied", COPIES)
def test_a_copy_is_found_whatever_hides_it(copied):
    honest = padded(HONEST, PADDING.get(copied, "pass"))
    (pair,) = similar_pairs({"bo": ["def broken(:", "!ls", COPIES[copied]], "al": [ORIGINAL], "cy": [honest]})
    assert (pair.students, pair.share) == (("al", "bo"), 1.0)


def test_answers_written_apart_and_what_everybody_was_given_are_not_alike():
    assert similar_pairs({"al": [ORIGINAL], "cy": [HONEST]}, threshold=0.2) == []
    assert similar_pairs({"al": [ORIGINAL], "bo": [DISGUISED]}, shown=[ORIGINAL]) == []


@pytest.mark.parametrize("line", ["e = e + k", "e = 0 - e", "e = 1 / e", "e -= 1", "e = e + 0j", "e = v + 0"])
def test_a_line_that_may_change_something_is_no_padding(line):
    changed = DISGUISED.replace("    t = ", f"    {line}\n    t = ")
    assert rows_of([changed])[0].keys() != rows_of([DISGUISED])[0].keys()


def own_work(number: int, n_lines: int = 11) -> str:
    """A function that no other number gives: its calls differ from line to line and from student to student."""
    lines = (f"    total = total + np.step_{number}_{line}(values[{line}] * {number}, axis={line})" for line in range(n_lines))
    return "\n".join([f"def work_{number}(values, total):", *lines, "    return total"])


ONE_LINERS = [
    "def my_scores(query, key):\n    return query @ key.T / np.sqrt(query.shape[-1])",
    "def my_entropy(weights):\n    return -(weights * np.log(weights)).sum(axis=-1)",
    "def my_mean(values, weights):\n    return (values * weights[:, None]).sum(axis=0) / weights.sum()",
]


@pytest.mark.parametrize(("copies", "size"), [(2, 2), (3, 4), (3, 8), (4, 12), (12, 12)])
@pytest.mark.parametrize("notebook", [[ORIGINAL], [*ONE_LINERS, own_work(99, 3)]], ids=["one long answer", "short answers"])
def test_long_notebooks_that_are_the_same_are_found_however_many_they_are(copies, size, notebook):
    others = {f"honest {n}": [own_work(n)] for n in range(size - copies)}
    found = compare({**{f"copy {n:02d}": notebook for n in range(copies)}, **others})
    assert len(found.pairs) == copies * (copies - 1) // 2
    assert {pair.share for pair in found.pairs} == {1.0}
    ((students, _),) = groups(found.pairs)
    assert students == tuple(f"copy {n:02d}" for n in range(copies))
    assert found.left_out == ()


def test_a_long_answer_that_many_share_counts_beside_work_of_ones_own():
    students = {f"s{n}": [ORIGINAL, own_work(n, 3)] for n in range(5)} | {f"t{n}": [own_work(n + 50)] for n in range(2)}
    found = compare(students)
    assert {student for pair in found.pairs for student in pair.students} == {f"s{n}" for n in range(5)}
    assert all(0.6 <= pair.share < 0.8 for pair in found.pairs)
    assert len(groups(found.pairs)) == 10  # not a group: each has work of his own
    assert {pair.lines for pair in found.pairs} == {8}


@pytest.mark.parametrize(("sharing", "size"), [(3, 4), (6, 8), (11, 12), (12, 12)])
def test_honest_short_answers_that_most_share_make_no_pair_and_are_told(sharing, size):
    students = {f"s{n:02d}": [*(ONE_LINERS if n < sharing else []), own_work(n)] for n in range(size)}
    found = compare(students)
    assert found.pairs == ()
    assert sorted(common.name for common in found.left_out) == ["my_entropy", "my_mean", "my_scores"]
    assert {common.students for common in found.left_out} == {tuple(f"s{n:02d}" for n in range(sharing))}
    assert "np.log(weights)" in next(common.text for common in found.left_out if common.name == "my_entropy")


def test_a_notebook_of_nothing_but_a_short_answer_is_no_finding_but_told():
    found = compare({f"s{n}": ONE_LINERS[2:] for n in range(7)})
    assert found.pairs == ()
    assert [len(common.students) for common in found.left_out] == [7]


def test_groups_hang_together_through_a_chain_and_leave_others_alone():
    def pair(left: str, right: str, share: float) -> Pair:
        return Pair((left, right), share, 70, 9, ((), ()))

    pairs = [pair("a", "b", 1.0), pair("c", "d", 0.9), pair("b", "c", 0.8), pair("a", "e", 0.7)]
    assert [(students, len(inside)) for students, inside in groups(pairs)] == [(("a", "b", "c", "d"), 3), (("a", "e"), 1)]
    assert groups([]) == []


def test_other_constants_and_attributes_are_other_code():
    other = ORIGINAL.replace("axis=-1", "axis=0").replace("np.exp", "np.exp2").replace(".max", ".min").replace(".sum", ".mean")
    assert similar_pairs({"al": [ORIGINAL], "bo": [other]}, threshold=0.6) == []


STRANGE = {
    "a sum of many terms": "x = " + " + ".join(["1.5"] * 2_000),
    "a long chain of calls": "x = y" + ".f(1)" * 900,
    "a long chain of conditions": "if x == 0:\n    y = 0\n" + "".join(f"elif x == {n}:\n    y = {n}\n" for n in range(1, 500)),
    "a number without a decimal form": "x = 0x" + "f" * 20_000,
    "thousands of names": "def f():\n    return [" + ", ".join(f"n{n}" for n in range(5_000)) + "]",
    "thousands of assignments": "def f(x):\n" + "".join(f"    x{n} = x{n - 1} + 1\n" for n in range(1, 3_000)) + "    return x",
    "an escape that is none": "x = '\\d'",
    "lines that Python does not count": "x = 'a\x0cb\u2028c'",
}


@pytest.mark.parametrize("strange", STRANGE)
def test_strange_code_is_compared_and_keeps_nobody_from_being_compared(strange):
    found = compare({"al": [ORIGINAL], "bo": [STRANGE[strange], DISGUISED]})
    assert [(pair.students, pair.share) for pair in found.pairs] == [(("al", "bo"), 1.0)]
    assert found.unread == {}


@pytest.mark.parametrize(
    "cell", ["def broken(:", "x = '\x00'", "-" * 200_000 + "1", "(" * 3_000], ids=["syntax", "null byte", "minus", "("]
)
def test_what_is_no_python_is_counted_and_the_rest_is_compared(cell):
    found = compare({"al": [ORIGINAL], "bo": [cell, DISGUISED], "cy": [HONEST]})
    assert [pair.students for pair in found.pairs] == [("al", "bo")]
    assert found.unread == {"bo": 1}


def test_tiny_answers_are_never_reported_nor_many_of_them_that_most_share():
    tiny = ["def my_mean(x, y):\n    return np.sum(x) / len(x) + y.sum()"]
    assert similar_pairs({"al": tiny, "bo": tiny}) == []
    short = [f"def my_f{n}(a, b):\n    return a @ b.T * {n} + np.sqrt(a.sum({n}))" for n in range(10)]
    assert similar_pairs({f"s{n}": [*short, own_work(n, 30)] for n in range(8)}, threshold=0.01) == []


@pytest.mark.parametrize("lesson", ["attention", "cross_attention"])
def test_two_right_notebooks_written_apart_share_less_than_a_tenth(lesson):
    root = Path(__file__).parents[2]
    files = (exercise_files(root / folder, "*.ipynb")[lesson] for folder in ("exercises", "solutions"))
    shown, ours = ([cell.source for cell in read_code_cells(path)] for path in files)
    other = (root / "tests" / "exercises" / "right_answers" / f"{lesson}.py").read_text(encoding="utf-8")
    assert all(pair.share < 0.1 for pair in similar_pairs({"al": ours, "bo": [other]}, shown=shown, threshold=0.001, least_rows=1))

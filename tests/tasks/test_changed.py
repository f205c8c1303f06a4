"""A slip is a change of the right answer: what is read, what it makes, and each way in which it does not apply."""

import inspect

import numpy as np
import pytest

from attn_course.changes import ChangeError, changed, changes_text
from attn_course.tasks.changed import definition, mistakes, read_slips

SCALE = 2.0


def scaled(x, d_k):
    """Divide x by the root of d_k.

    And say so.
    """
    total = x / np.sqrt(d_k)  # first
    return total * SCALE


@pytest.mark.parametrize(
    ("text", "change", "wanted"),
    [
        ("a / b", "/ b -> * b", "a * b"),
        ("a / b", "` / b` ->", "a"),
        ("a / b", "a -> -> b", "-> b / b"),
        ("a + a", "all a -> b", "b + b"),
        ("for all a", "all a -> b", "for b"),
        ("x[0] + y[1]", "x[0] -> x[2] ;; y[1] -> y[3]", "x[2] + y[3]"),
        ("ab", "a -> b ;; bb -> c", "c"),
        ("first\n    second", "first\n    second -> one", "one"),
        ("first\nsecond", "first\n->\none\ntwo", "one\ntwo\nsecond"),
        ("first\nsecond", "first -> one\n;;\nsecond -> two", "one\ntwo"),
        ("anything", "-> all new", "all new"),
        ("a b c", "` b ` -> `, `", "a, c"),
        ("np.einsum('ij,jk->ik', a, b)", "ij,jk->ik -> ij,jk->ki", "np.einsum('ij,jk->ki', a, b)"),
        (r"\sum_j P_{ij}", r"\sum_j ->", r" P_{ij}"),
    ],
)
def test_a_change_puts_another_piece_in_the_place_of_one(text, change, wanted):
    assert changed(text, change) == wanted


@pytest.mark.parametrize(
    ("text", "change", "why"),
    [
        ("a / b", "c -> d", "wanted `c` once (or all before it) in what it changes, got it not there"),
        ("a / a", "a -> d", "wanted `a` once (or all before it) in what it changes, got it 2 times"),
        ("a / b", "a -> a", "changes nothing"),
        ("a / b", "a -> c ;; a -> d", "wanted `a` once (or all before it) in what it changes, got it not there"),
        ("a / b", "a = d", "wanted `old -> new`, got `a = d`"),
    ],
)
def test_a_change_that_does_not_apply_is_refused(text, change, why):
    with pytest.raises(ChangeError) as caught:
        changed(text, change)
    assert str(caught.value) == why


def test_whether_a_change_keeps_some_of_the_text():
    assert [changes_text(change) for change in ("a -> b", "all a -> b", "-> b", "", "a -> b ;; -> c")] == [True, True, False, False, False]


def test_slips_are_read_with_changes_and_hints_of_several_lines():
    found = read_slips(
        """
        no scale
            ` / b` ->
            divide by b,
            please
        another line
                first
                    deeper
                ->
                second
            that is another line
        """
    )
    assert [(slip.name, slip.change, slip.hint) for slip in found] == [
        ("no scale", "` / b` ->", "divide by b, please"),
        ("another line", "first\n    deeper\n->\nsecond", "that is another line"),
    ]


@pytest.mark.parametrize("text", ["alone", "no change\n    a hint\n    and more", "no hint\n    a -> b"])
def test_a_slip_without_a_change_or_a_hint_is_refused(text):
    with pytest.raises(ChangeError, match=r"wanted a line `old -> new` and a hint below it"):
        read_slips(text)


def test_a_function_is_read_as_its_file_writes_it():
    found = definition(scaled)
    assert (found.name, found.parameters, found.head) == ("scaled", ("x", "d_k"), "def scaled(x, d_k):")
    assert found.doc == "Divide x by the root of d_k.\n\nAnd say so."
    assert found.body == "total = x / np.sqrt(d_k)  # first\nreturn total * SCALE"


def test_a_function_without_a_question_is_refused():
    def bare(x):
        return x

    with pytest.raises(ChangeError, match=r"^bare: wanted a docstring, and an answer below it$"):
        definition(bare)


def test_a_mistake_is_the_function_with_another_text_and_the_same_names(monkeypatch):
    slips = """
        divided by d_k
            np.sqrt(d_k) -> d_k
            the root
        nothing
            -> return None
            something
    """
    first, second = mistakes(definition(scaled), slips)
    assert (first.name, first.hint, first.change, second.change) == ("divided by d_k", "the root", "np.sqrt(d_k) -> d_k", "-> return None")
    assert (first.function(8.0, 4), second.function(8.0, 4), scaled(8.0, 4)) == (4.0, None, 8.0)
    monkeypatch.setitem(globals(), "SCALE", 1.0)
    assert first.function(8.0, 4) == 2.0
    assert inspect.getsource(first.function).endswith("    total = x / d_k  # first\n    return total * SCALE\n")


def test_lines_of_a_derivation_are_named():
    lines = ["a", "b + c", "d"]
    (found,) = mistakes(lines, "a sign\n    line 2: + c -> - c\n    plus")
    assert found.function == "b - c"
    for change in ("+ c -> - c", "line 1: a -> b", "line 4: a -> b"):
        with pytest.raises(ChangeError, match=r"wanted the line it changes, `line 2: old -> new`, got"):
            list(mistakes(lines, f"a sign\n    {change}\n    plus"))


def test_what_is_no_python_is_refused():
    with pytest.raises(ChangeError, match=r"^the slip “open” leaves no Python: "):
        list(mistakes(definition(scaled), "open\n    np.sqrt(d_k) -> np.sqrt(\n    close it"))

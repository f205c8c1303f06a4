"""When an answer is still what the exercise hands out."""

import pytest

from attn_course.checking.untouched import is_untouched

ASKED = "def f(x):\n    # the first line\n    y = x + 1\n    return y\n"


@pytest.mark.parametrize(
    "text",
    [
        ASKED,
        ASKED.strip(),
        "def f( x ):\n  y = (x + 1)\n\n  return y  # why?",
        ASKED.replace("\n", "\r\n"),
        ASKED + "\n# YOUR CODE HERE\nraise NotImplementedError()",
    ],
)
def test_what_is_no_code_does_not_count(text):
    assert is_untouched([text], ASKED)
    assert is_untouched([ASKED, text], ASKED)


@pytest.mark.parametrize(
    "text",
    [
        ASKED.replace("1", "2"),
        ASKED.replace("    return", "return"),  # no Python any more
        "def f(x):\n    y = x + 1\n    if x:\n        y = 3\n        return y",
        "raise NotImplementedError()",
        ASKED + "raise NotImplementedError()\nraise NotImplementedError()",
        "",
        "\0",
        "-" * 100_000 + "1",
        "x" + ".a" * 100_000,
    ],
)
def test_any_other_code_does(text):
    assert not is_untouched([text], ASKED)
    assert not is_untouched([ASKED, text], ASKED)


def test_blanks_that_are_code_count():
    asked = "for x in y:\n    z = x\n    z = z"
    assert not is_untouched(["for x in y:\n    z = x\nz = z"], asked)


def test_nothing_is_not_untouched():
    assert not is_untouched([], ASKED)
    assert not is_untouched([ASKED], None)

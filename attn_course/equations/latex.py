"""Bring two spellings of one formula to a common form."""

import re

_TAG = re.compile(r"\\(?:tag|label)\s*\{[^{}]*\}")
_SPACING = re.compile(r"\\[,;:!>]|\\ |\\q?quad(?![A-Za-z])|~")
_COMMAND_THEN_LETTER = re.compile(r"(\\[A-Za-z]+)\s+(?=[A-Za-z])")


_NEXT = re.compile(r",\s*\\q?quad(?![A-Za-z])\s*")


def statements(formula: str) -> list[str]:
    r"""Return the statements of a formula, which stand apart behind commas; each but the last keeps its comma.

    >>> statements(r"a = b, \qquad c = \text{d, \quad e}")
    ['a = b,', 'c = \\text{d, \\quad e}']
    """
    found, start = [], 0
    for end in _NEXT.finditer(formula):
        before = formula[start : end.start()]
        if before.count("{") == before.count("}") and before.count(r"\begin") == before.count(r"\end"):
            found.append(before + ",")
            start = end.end()
    return [*found, formula[start:]]


def normalise_latex(text: str) -> str:
    r"""Drop what does not change a formula: tag and label, dollar signs, white space and spacing commands, a full stop at the end.

    `text`: a formula, with or without its surrounding $$, \tag and \label.

    Returns `formula`: two formulas are the same if their normal forms are.

    >>> normalise_latex(r"$$ J\,\mathbf{1} = 0 \tag{2.22}$$")
    'J\\mathbf{1}=0'
    >>> normalise_latex(r"\max z") == normalise_latex(r"\maxz")
    False
    """
    text = _SPACING.sub(" ", _TAG.sub(" ", text.strip().strip("$")))
    text = _COMMAND_THEN_LETTER.sub("\\1\0", text)  # the space that ends a command is kept
    return re.sub(r"\s+", "", text).replace("\0", " ").rstrip(".,")

"""The glossary and the letters: complete, about words that exist, and readable."""

import inspect
import re

import pytest

from attn_course import notation, reference
from attn_course.notation import DIALECTS, GLOSSARY, LETTERS

TERMS = [term.term for term in GLOSSARY]
TABLES = [
    lambda style: notation.table(style=style),
    *(lambda style, name=name: notation.table(name, style=style) for name in DIALECTS),
    lambda style: notation.letters(style=style),
]


def test_terms_are_unique_and_names_belong_to_known_dialects():
    assert len(set(TERMS)) == len(TERMS)
    assert {name for term in GLOSSARY for name in term.names} == set(DIALECTS)


def test_the_words_are_those_of_the_code():
    """A term is a size in some signature of the reference, an argument, a function, or one of three things in prose."""
    words = set(reference.__all__)
    for name in reference.__all__:
        words |= set(inspect.signature(getattr(reference, name)).parameters)
        words |= set(re.findall(r"\w+", str(getattr(getattr(reference, name), "__annotations__", ""))))
        words |= set(re.findall(r"\w+", inspect.getdoc(getattr(reference, name)) or ""))
    spoken = {"causal mask": "causal_mask", "padding mask": "padding_mask", "absorbed matrix": "absorb_query_key"}
    assert {spoken.get(term, term) for term in TERMS} - words == set()


def test_a_letter_of_a_dialect_that_means_something_else_in_another_is_listed():
    """A bare name that stands for different terms must be among the letters, or be the same size written twice."""
    used: dict[str, set[str]] = {}
    for term in GLOSSARY:
        for name in term.names.values():
            if re.fullmatch(r"[A-Za-z]", name):
                used.setdefault(name, set()).add(term.term)
    several = {name for name, terms in used.items() if terms - {"q_len", "kv_len"} and len(terms) > 1}
    assert several <= {letter.letter for letter in LETTERS} | {"D"}  # D: features in, features out, one size
    assert {"d", "h"} <= several | {"h"}


@pytest.mark.parametrize("shown", TABLES)
def test_plain_text_fits_eighty_columns_and_markdown_a_hundred(shown):
    assert max(map(len, shown("text").splitlines())) <= 80
    assert max(map(len, shown("markdown").splitlines())) <= 100
    assert not re.search(r" $", shown("text"), re.MULTILINE)


def cells(markdown):
    return [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in markdown.splitlines() if line.startswith("|")]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_table_of_a_dialect_holds_its_names_in_order(dialect):
    rows = cells(notation.table(dialect, style="markdown"))
    assert rows[0] == ["course", "meaning", "shape", "there"]
    assert rows[2:] == [[term.term, term.meaning, term.shape, term.names.get(dialect, "-")] for term in GLOSSARY]
    assert notation.table(dialect).startswith(f"{dialect}: {DIALECTS[dialect]}")


def test_the_whole_table_holds_every_dialect():
    rows = cells(notation.table(style="markdown"))
    half = len(rows) // 2
    joined = [left + right[1:] for left, right in zip(rows[:half], rows[half:], strict=True)]
    assert joined[0] == ["course", *DIALECTS]
    assert joined[2:] == [[term.term, *(term.names.get(name, "-") for name in DIALECTS)] for term in GLOSSARY]


@pytest.mark.parametrize("dialect", [None, *DIALECTS])
def test_wrapping_loses_no_word(dialect):
    texts = [notation.table(dialect, style=style) for style in ("text", "markdown")]
    words = [sorted(re.findall(r"\S+", re.sub(r"[`|]|-{2,}", " ", text))) for text in texts]
    assert words[0] == words[1]


def test_a_cell_is_never_a_column_of_markdown():
    assert not any("|" in text for term in GLOSSARY for text in (term.term, term.meaning, term.shape, *term.names.values()))

"""`attn-course notation`: the dictionary of the course at a terminal."""

import pytest

from attn_course.notation import DIALECTS, letters, table


@pytest.mark.parametrize(("words", "wanted"), [((), table()), *(((name,), table(name)) for name in DIALECTS), (("--letters",), letters())])
def test_it_prints_the_tables_of_the_package(words, wanted, attn_course):
    assert attn_course("notation", *words) == (0, f"{wanted}\n", "")


def test_an_unknown_dialect_is_one_clear_line(attn_course):
    said = attn_course("notation", "latin")
    assert (said.code, said.out) == (2, "")
    assert said.err == f"attn-course: dialect must be one of {', '.join(DIALECTS)}; got 'latin'\n"

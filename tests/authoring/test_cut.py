"""A lesson with key equations and deeper sections is built from a small source; each bound can fail, and says where and why."""

import pytest

from attn_course import numbers
from attn_course.authoring import AuthoringError, cut, formulas, prose
from attn_course.authoring.notebook import assemble
from attn_course.authoring.numbering import deeper_labels, inline, numbering
from attn_course.authoring.sealed import Record
from attn_course.authoring.source import parse

SOURCE = "notebooks/src/double.py"
TURN = """\
# %% id="turn-{0}" tags=["your-turn"]
mine = ...
check("add-up", mine)

"""
LESSON = (
    r"""# %% [markdown] id="title"
# # {lesson}`double` Doubling
# All of it at once.

# %% id="machine"
figures.machine()

# %% [markdown] id="sum"
# ## Twice is a sum
# $$2x = x + x \key{twice}$$
#
# $$
# \begin{aligned}
# |2x| &= \frac{|4x|}{2} \\
#      &= \|x\| + \|x\|
# \end{aligned}
# \key{twice-the-size}
# $$
# and $$x = x \label{itself}$$ with $$4x = 2x + 2x \key{four-times}$$

"""
    + TURN.format(1)
    + TURN.format(2)
    + r"""# %% id="verify-lesson"
verify_lesson("double")

# %% [markdown] id="card"
# ## Formula card
# | what | formula | cost |
# |---|---|---|
# | sum, {eq}`twice` | {key}`twice` | $O(1)$ |
# | size, {eq}`twice-the-size` | {key}`twice-the-size` | $O(1)$ |
# | again, {eq}`four-times` | {key}`four-times` | $O(1)$ |

# %% [markdown] id="summary"
# ## Summary
# Twice is a sum; section {section}`deeper` has half of it.

# %% [markdown] id="deeper"
# ## Deeper: halves
# No core section needs what follows; {eq}`twice` is where it begins. $$x = 2x / 2 \label{half}$$

# %% id="deeper-verify"
print("Eq. (2.5) holds")

# %% [markdown] id="sources"
# ## Sources
# {eq}`half` is old.
"""
)


def book_of(course):
    """The notebook that the small source asks for, and the numbers it was built with."""
    counted = numbering(course.root)
    return assemble(parse(counted.of("double", course.read(SOURCE), SOURCE), SOURCE), Record()), counted


@pytest.fixture
def lesson(course):
    course.write(SOURCE, LESSON)
    return course


def cut_of(course):
    book, counted = book_of(course)
    with numbers.using(counted.tables):
        return list(cut.cut_findings(book, deeper_labels(course.root)))


def text_of(book, cell_id):
    return next(cell.source for cell in book.cells if cell.id == cell_id)


def test_a_deeper_section_is_folded_behind_its_heading(lesson):
    book, _ = book_of(lesson)
    assert [cell.id for cell in book.cells if cell.metadata.get("jp-MarkdownHeadingCollapsed")] == ["deeper"]
    ids = [cell.id for cell in book.cells]
    assert ids[ids.index("deeper") + 1 :] == ["deeper-more", "deeper-verify", "sources"]
    assert text_of(book, "deeper-more").startswith("No core section needs what follows;")


def test_a_key_equation_is_numbered_like_any_other_and_framed(lesson):
    book, counted = book_of(lesson)
    text = text_of(book, "sum")
    assert r"$$\boxed{2x = x + x} \tag{2.1}$$" in text
    assert "$$\\boxed{\n\\begin{aligned}\n" in text
    assert "\\end{aligned}\n} \\tag{2.2}\n$$" in text
    assert r"$$x = x \tag{2.3}$$ with $$\boxed{4x = 2x + 2x} \tag{2.4}$$" in text
    assert counted.tables["labels"]["double"] == {
        "twice": "2.1", "twice-the-size": "2.2", "itself": "2.3", "four-times": "2.4", "half": "2.5",
    }  # fmt: skip
    assert r"| sum, Eq. (2.1) | $\displaystyle 2x = x + x$ | $O(1)$ |" in text_of(book, "card")
    assert r"| $\displaystyle \begin{aligned} \vert 2x\vert &= \frac{\vert 4x\vert }{2} \\ &= \Vert x\Vert " in text_of(book, "card")
    assert text_of(book, "deeper") == "## 2.2 Deeper: halves"
    assert "section 2.2 has half of it" in text_of(book, "summary")


def test_what_is_printed_in_the_frame_is_what_is_registered_and_verified(lesson):
    book, counted = book_of(lesson)
    with numbers.using(counted.tables):
        known = {label: formula for _, label, formula in formulas.tagged(book)}
        assert known["twice"] == "2x = x + x"
        assert list(known) == list(counted.tables["labels"]["double"])
        assert list(formulas.keys(book)) == [*KEYS]
        assert [*formulas.registry_findings(book, known), *formulas.verify_findings(book, "double"), *formulas.tag_findings(book)] == []
        found = list(formulas.registry_findings(book, {**known, "twice": "2x = x + y"}))
    assert found == [("sum", "Eq. twice: the registry has '2x = x + y', the lesson '2x = x + x'")]


def test_a_formula_goes_into_a_row_of_a_table():
    assert inline("\n# a &= |b| \\\\|c|\n") == r"$\displaystyle a &= \vert b\vert \\\vert c\vert$"


def test_a_role_that_names_no_key_equation_is_refused_with_its_line(lesson):
    lesson.edit(SOURCE, "{key}`twice` |", "{key}`itself` |")
    with pytest.raises(AuthoringError, match=r"line 36: \{key\}`itself`: there is no key equation 'itself'; wanted one that its lesson"):
        book_of(lesson)


def test_a_key_outside_a_displayed_formula_is_found(lesson):
    lesson.edit(SOURCE, "# All of it at once.", r"# All of it \key{at-once}.")
    book, counted = book_of(lesson)
    with numbers.using(counted.tables):
        assert list(formulas.tag_findings(book)) == [("title", "wanted every label inside $$ ... $$")]


def test_a_lesson_in_measure_and_one_of_the_old_cut_pass(lesson):
    assert cut_of(lesson) == []
    old = LESSON.partition('# %% [markdown] id="card"')[0].replace(r"\key", r"\label").replace(TURN.format(2), "")
    lesson.write(SOURCE, old.replace("figures.machine()", f"x = '{'-' * 90}'"))
    assert cut_of(lesson) == []


KEYS = ("twice", "twice-the-size", "four-times")
WORDS_LEFT = 3501 - 49 - 3  # 49 words are there: 7 in the title, 11 in the section, 20 on the card, 11 in the summary
LEANS = "belongs to a deeper section, which no core section needs; wanted at most a link to that section"
FAULTS = {
    "too few keys": (
        [(r"4x = 2x + 2x \key", r"4x = 2x + 2x \label"), ("# | again, {eq}`four-times` | {key}`four-times` | $O(1)$ |\n", "")],
        [(None, "wanted 3 to 5 key equations, got 2: twice, twice-the-size")],
    ),
    "too many keys": (
        [("# and $$", "".join(rf"# $$x + {n} = x + {n} \key{{more-{n}}}$$" "\n#\n" for n in range(3)) + "# and $$"),
         ("# | again,", "".join(f"# | more, {{eq}}`more-{n}` | {{key}}`more-{n}` | |\n" for n in range(3)) + "# | again,")],
        [(None, "wanted 3 to 5 key equations, got 6: twice, twice-the-size, more-0, more-1, more-2, four-times")],
    ),
    "a key in a deeper section": (
        [(r"\label{half}", r"\key{half}"), ("# | again,", "# | half | {key}`half`, {eq}`half` | |\n# | again,")],
        [("card", f"Eq. half {LEANS}"), (None, "Eq. half is a key equation; wanted it in a core section, got it in a deeper one")],
    ),
    "a card without one of the keys": (
        [("# | again, {eq}`four-times` | {key}`four-times` | $O(1)$ |\n", "")],
        [("card", "wanted {key}`four-times` and {eq}`four-times` once each in the formula card")],
    ),
    "a card that says a formula in its own way": (
        [("{key}`four-times`", "$4x = 2x + 2x$")],
        [("card", "wanted {key}`four-times` and {eq}`four-times` once each in the formula card")],
    ),
    "a card with another equation": (
        [("again, {eq}`four-times`", "again, {eq}`four-times` and {eq}`itself`")],
        [("card", "wanted key equations alone in the formula card, got Eq. itself")],
    ),
    "no card": (
        [("# ## Formula card\n", "")],
        [(None, f"wanted {{key}}`{each}` and {{eq}}`{each}` once each in the formula card") for each in KEYS],
    ),
    "core text that cites what is deeper": ([("# All of it at once.", "# As {eq}`half` says.")], [("title", f"Eq. half {LEANS}")]),
    "a summary that cites what is deeper": ([("Twice is a sum;", "By {eq}`half`, it is;")], [("summary", f"Eq. half {LEANS}")]),
    "core code that shows what is deeper": (
        [("figures.machine()", 'figures.machine()\nshow("half", x=1)')], [("machine", f"Eq. half {LEANS}")]
    ),
    "too many equations": (
        [("and $$x = x", "".join(rf"$$x + {n} = x + {n} \label{{one-{n}}}$$ " for n in range(16)) + "and $$x = x")],
        [(None, "wanted at most 20 numbered equations, got 21")],
    ),
    "too many predictions": (
        [("# %% [markdown] id=\"card\"", "".join(f'# %% id="out-{n}" tags=["predicted"]\nprint()\n\n' for n in range(7))
          + "# %% [markdown] id=\"card\"")],
        [(None, "wanted at most 6 cells tagged predicted, got 7")],
    ),
    "one turn": ([(TURN.format(2), "")], [(None, "wanted at least 2 cells tagged your-turn, got 1")]),
    "a long line of code": (
        [("figures.machine()", f"figures.machine()\nx = '{'-' * 84}'")], [("machine", "wanted at most 88 columns of code, got 90")]
    ),
    "no machine": (
        [("figures.machine()", "machine")], [(None, "wanted a call of machine() within the first 300 words, got none")]
    ),
    "a late machine": (
        [("# All of it at once.", "# " + "word " * 298)],
        [(None, "wanted a call of machine() within the first 300 words, got it behind 301")],
    ),
    "too many core words": (
        [("# and $$", "# " + "word " * WORDS_LEFT + "$x + x$ <b>12</b> [a](b)\n#\n# and $$")],
        [(None, "wanted at most 3500 words in core sections, got 3501")],
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found_and_no_other(lesson, fault):
    edits, wanted = FAULTS[fault]
    for old, new in edits:
        lesson.edit(SOURCE, old, new)
    assert cut_of(lesson) == wanted


def test_words_of_deeper_sections_and_sources_are_no_core_words(lesson):
    for text in ("is where it begins.", "{eq}`half` is old."):
        lesson.edit(SOURCE, text, f"{text} {'word ' * 3000}")
    assert cut_of(lesson) == []


def test_another_lesson_in_the_new_cut_does_not_lean_on_this_ones_deeper_section(lesson):
    lesson.write("notebooks/src/triple.py", '# %% [markdown] id="deeper"\n# ## Deeper: thirds\n# $$3x / 3 = x \\label{thirds}$$\n')
    lesson.edit(SOURCE, "# All of it at once.", "# As {eq}`thirds` says.")
    assert cut_of(lesson) == [("title", f"Eq. thirds {LEANS}")]


def test_deeper_sections_stand_between_the_summary_and_the_sources(lesson):
    book, _ = book_of(lesson)
    assert list(prose.section_findings(book, 2)) == []
    cells = {cell.id: cell for cell in book.cells}
    book.cells.remove(cells["deeper"])
    for before in ("card", "summary"):
        book.cells.insert(book.cells.index(cells[before]), cells["deeper"])
        assert list(prose.section_findings(book, 2)) == [
            ("deeper", "wanted deeper sections between the summary and the sources, got 2.2 Deeper: halves")
        ]
        book.cells.remove(cells["deeper"])
    book.cells.append(cells["deeper"])
    assert [cell for cell, _ in prose.section_findings(book, 2)] == ["deeper"]

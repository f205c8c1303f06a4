"""The table of lessons holds those that exist, and a lesson that shows it is stale when one is added or renamed."""

import pytest

from attn_course import numbers
from attn_course.authoring.lessons import Lesson, lessons
from attn_course.authoring.links import links_in
from attn_course.authoring.numbering import numbering
from attn_course.lessons.start.figures import QUESTIONS
from attn_course.numbers import lesson_in, lesson_table
from tests.authoring.conftest import SERIES

LISTING = """\
# %% [markdown] id="title"
# # {lesson}`start` Start: here
# Begin.

# %% id="table"
from attn_course.numbers import lesson_table
print(lesson_table())
"""
TOY = {"numbers.py": "def lesson_table():\n    return 1\n"}


@pytest.fixture
def listing(course):
    """The toy course with a lesson in front of the others that shows the table."""
    course.write("notebooks/series.toml", SERIES.replace('"nought"', '"start"'))
    course.write("notebooks/src/start.py", LISTING)
    return course


def test_a_lesson_is_listed_by_the_title_of_its_source(listing):
    assert lessons(listing.root) == [Lesson("00_start", "Start: here", ""), Lesson("02_double", "double", "ex_02_double")]


def test_the_table_links_the_lessons_that_have_a_source(listing):
    with numbers.using(numbering(listing.root).tables):
        shown, asking = lesson_table(), lesson_table({"double": "What is twice?"})
    assert "| [00 Nought](00_start.ipynb) |  |" in shown.splitlines()
    assert "| [02 Double](02_double.ipynb) | [exercises](../work/ex_02_double.ipynb) |" in shown.splitlines()
    assert asking.splitlines()[0] == "| lesson | the question it answers | exercises |"
    assert [line.split(" | ")[1].strip() for line in asking.splitlines()[2:]] == ["", "", "What is twice?", ""]


def test_every_link_of_the_real_table_leads_to_a_notebook(root):
    links = links_in(lesson_table())
    assert "00_start.ipynb" in links
    for link in links:
        assert (root / "notebooks" / link.replace("../work/", "../exercises/")).is_file()


def test_the_table_of_the_lesson_is_todays(root):
    import nbformat

    book = nbformat.read(root / "notebooks" / "00_start.ipynb", as_version=4)
    (shown,) = (output.data["text/markdown"] for cell in book.cells if cell.id == "map-table" for output in cell.outputs)
    assert shown == lesson_table(QUESTIONS)


def test_every_lesson_answers_a_question(root):
    assert {lesson_in(lesson.stem) for lesson in lessons(root)} <= {*QUESTIONS}
    assert all(question.endswith("?") for question in QUESTIONS.values())


def test_a_new_lesson_or_a_new_title_makes_the_listing_stale_and_other_edits_do_not(listing):
    for name, text in TOY.items():
        listing.write(f"attn_course/{name}", text)
    listing.build()
    listing.edit("notebooks/src/double.py", "Twice is a sum", "Twice is one sum")
    assert "notebooks/00_start.ipynb" in listing.build().kept
    listing.edit("notebooks/src/double.py", "# # Doubling", "# # {lesson}`double` Doubling")
    assert "notebooks/00_start.ipynb" in listing.build().written
    listing.write("notebooks/src/triple.py", '# %% [markdown] id="title"\n# # {lesson}`triple` More\n')
    assert "notebooks/00_start.ipynb" in listing.build().written
    assert listing.build().written == []


def test_a_lesson_that_shows_the_game_is_stale_when_the_game_has_changed(listing, monkeypatch):
    listing.write("attn_course/game/card.py", "def break_the_machine():\n    pass\n")
    shows = "from attn_course.game.card import break_the_machine\nbreak_the_machine()\n"
    listing.edit("notebooks/src/start.py", LISTING.rpartition('id="table"\n')[2], shows)
    monkeypatch.setattr("attn_course.game.card.card_of_the_machine", lambda: "one")  # the real one needs the equations of the course
    listing.build()
    assert listing.build().written == []
    monkeypatch.setattr("attn_course.game.card.card_of_the_machine", lambda: "another")
    assert listing.build().written == ["notebooks/00_start.ipynb"]


NUMBERS = "<!-- numbers: written by the builder -->\n<!-- end of numbers -->\n\n"
TABLE = f"Before.\n\n{NUMBERS}<!-- lessons: written by the builder -->\n<!-- end of lessons -->\n\nAfter.\n"


def test_the_builder_writes_the_table_of_the_readme_and_the_check_finds_an_old_one(listing):
    listing.write("README.md", TABLE)
    listing.build()
    text = listing.read("README.md")
    assert "| 02 | [double](notebooks/02_double.ipynb) | [3 tasks, 6 points](exercises/ex_02_double.ipynb) |" in text
    assert "\n**2** lessons · **1** checked equations · **3** tasks\n" in text
    assert (text[:7], text[-7:]) == ("Before.", "After.\n")
    assert listing.check() == []
    listing.edit("README.md", "3 tasks", "4 tasks")
    assert [str(problem) for problem in listing.check()] == ["README.md: stale; run attn-course notebooks build"]
    listing.build()
    assert listing.read("README.md") == text

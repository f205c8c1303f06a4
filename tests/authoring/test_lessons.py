"""The table of lessons holds those that exist, and a lesson that shows it is stale when one is added or renamed."""

from attn_course.authoring.lessons import Lesson, lesson_table, lessons
from attn_course.authoring.links import links_in
from attn_course.equations.links import SHORT_TITLES

LISTING = """\
# %% [markdown] id="title"
# # 00 Start: here
# Begin.

# %% id="table"
from attn_course.authoring.lessons import lesson_table
print(lesson_table())
"""
TOY = {
    "authoring/__init__.py": "",
    "authoring/lessons.py": "def lesson_table():\n    return 1\n",
}


def test_a_lesson_is_listed_by_the_title_of_its_source(course):
    course.write("notebooks/src/00_start.py", LISTING)
    course.write("notebooks/src/notes.py", "# # 07 No lesson\n")
    assert lessons(course.root) == [Lesson("00_start", "Start: here", False), Lesson("02_double", "02_double", True)]


def test_the_table_links_what_exists_and_calls_the_rest_coming(course):
    course.write("notebooks/src/00_start.py", LISTING)
    lines = lesson_table(course.root).splitlines()[2:]
    assert lines[0] == "| 00 | [Start: here](00_start.ipynb) |  |"
    assert lines[1] == f"| 01 | {SHORT_TITLES[1]} | coming |"
    assert lines[2] == "| 02 | [02_double](02_double.ipynb) | [exercises](../work/02_double.ipynb) |"
    assert len(lines) == len(SHORT_TITLES)


def test_a_chapter_beyond_the_known_ones_is_listed_too(course):
    course.write("notebooks/src/99_end.py", LISTING.replace("00 Start: here", "99 The end"))
    assert lesson_table(course.root).splitlines()[-1] == "| 99 | [The end](99_end.ipynb) |  |"


def test_every_link_of_the_real_table_leads_to_a_notebook(root):
    links = links_in(lesson_table(root))
    assert "00_start_here.ipynb" in links
    for link in links:
        assert (root / "notebooks" / link.replace("../work/", "../exercises/")).is_file()


def test_the_table_of_the_lesson_is_todays(root):
    import nbformat

    book = nbformat.read(root / "notebooks" / "00_start_here.ipynb", as_version=4)
    (shown,) = (output.data["text/markdown"] for cell in book.cells if cell.id == "map-table" for output in cell.outputs)
    assert shown == lesson_table(root)


def test_a_new_lesson_or_a_new_title_makes_the_listing_stale_and_other_edits_do_not(course):
    course.write("notebooks/src/00_start.py", LISTING)
    for name, text in TOY.items():
        course.write(f"attn_course/{name}", text)
    course.build()
    course.edit("notebooks/src/02_double.py", "Twice is a sum", "Twice is one sum")
    assert "notebooks/00_start.ipynb" in course.build().kept
    course.edit("notebooks/src/02_double.py", "# # Doubling", "# # 02 Doubling")
    assert "notebooks/00_start.ipynb" in course.build().written
    course.write("notebooks/src/03_more.py", LISTING.replace("00 Start: here", "03 More").replace("lesson_table()", "1"))
    assert "notebooks/00_start.ipynb" in course.build().written
    assert course.build().written == []

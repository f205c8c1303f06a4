"""A newcomer's first hour in a real browser: the lesson runs, a task fails, the answer is typed, the task passes.

It is one test of many steps, because each step begins where the one before it ended.
"""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest

from tests.browser.notebook_page import NotebookPage, displayed, errors, open_page, required_browser
from tests.browser.toy_course import quiet_environment, running_lab

LESSON, EXERCISES = "work/lessons/00_start.ipynb", "work/ex_02_softmax.ipynb"
BUILT = "notebooks/00_start.ipynb"
CHECK, CALL = "stable-softmax-check", 'check("stable-softmax", my_softmax)'
STRIP = "[data-mime-type='application/vnd.jupyter.stderr']"
PREDICTED, WHY = "because-code", "because-answer"  # of the lesson


@pytest.fixture
def course(root: Path, tmp_path: Path) -> Path:
    for room in ("notebooks", "exercises", "solutions"):
        shutil.copytree(root / room, tmp_path / "course" / room, ignore=shutil.ignore_patterns(".ipynb_checkpoints"))
    return tmp_path / "course"


@pytest.fixture
def page(course: Path) -> Iterator[NotebookPage]:
    """JupyterLab as `attn-course lab` opens it, in a browser that has never been here; its last sight is kept as end.png."""
    executable = required_browser()
    environment = quiet_environment(course.parent / "home")
    options = ("--no-browser", "--", "--LabApp.expose_app_in_browser=True")
    with running_lab(course, *options, environment=environment) as lab, open_page(executable, course.parent / "profile") as page:
        page.open(lab.address)
        yield page
        page.page.screenshot(path=course.parent / "end.png")


@pytest.mark.browser
def test_a_newcomer_reads_the_lesson_and_solves_a_task(page: NotebookPage, course: Path, root: Path):
    the_first_page_is_the_lesson_beside_its_table_of_contents(page)
    the_stored_explorable_moves_before_anything_is_run(page)
    the_lesson_runs_from_top_to_bottom_and_its_file_stays_as_it_was(page, course, root)
    the_exercises_are_found_in_the_file_browser_and_the_solutions_are_not(page)
    the_first_task_fails_and_says_so(page)
    the_right_answer_makes_it_ok(page, root)
    after_a_reload_the_answer_is_there_and_still_ok(page, course)
    a_link_to_the_lesson_opens_the_learners_own(page)
    assert page.elsewhere == [], "JupyterLab asked another computer"
    assert page.complaints == [], "the browser's console shows errors"


def the_first_page_is_the_lesson_beside_its_table_of_contents(page: NotebookPage) -> None:
    assert page.path() == LESSON
    page.page.locator(".jp-TableOfContents:visible").get_by_text("00 Start here").first.wait_for()
    page.page.wait_for_timeout(500)  # a pop-up would come now
    assert page.interruptions() == []
    assert not page.unsaved()
    assert page.folded(PREDICTED)
    assert not page.in_sight(WHY, "details p")
    preview = page.page.locator(".jp-OutputPlaceholder .jp-PlaceholderText").first  # the beginning of what is folded, an answer
    assert preview.evaluate("element => getComputedStyle(element).fontSize") == "0px"
    deeper = [cell["id"] for cell in page.cells() if "jp-MarkdownHeadingCollapsed" in cell["metadata"]]
    assert deeper
    assert all(page.hidden(f"{cell}-more") and not page.hidden(cell) for cell in deeper)


def the_stored_explorable_moves_before_anything_is_run(page: NotebookPage) -> None:
    explorable = page.page.locator(".jp-OutputArea-output", has=page.page.locator(".attn-explorable button")).first
    word = explorable.get_by_role("button", name="sat")
    word.evaluate("element => element.scrollIntoView({block: 'center'})")  # JupyterLab may put cells on the way in anew: do not wait
    before = explorable.inner_text()
    word.focus()
    page.page.keyboard.press("Enter")
    assert explorable.inner_text() != before


def the_lesson_runs_from_top_to_bottom_and_its_file_stays_as_it_was(page: NotebookPage, course: Path, root: Path) -> None:
    page.run_all()
    cells = page.cells()
    assert errors(cells) == []
    counts = [cell["execution_count"] for cell in cells if cell["cell_type"] == "code"]
    assert counts == list(range(1, len(counts) + 1))
    assert not page.folded(PREDICTED)
    assert page.in_sight(WHY, "details p")  # below the result, without another fold
    assert not page.in_sight(WHY, "summary")
    page.save()
    assert page.interruptions() == []
    assert (course / BUILT).read_bytes() == (root / BUILT).read_bytes()


def the_exercises_are_found_in_the_file_browser_and_the_solutions_are_not(page: NotebookPage) -> None:
    page.page.locator(".jp-SideBar.jp-mod-left [data-id=filebrowser]").click()
    listing = page.page.locator(".jp-DirListing-content:visible .jp-DirListing-itemText")
    listing.first.wait_for()
    assert listing.all_inner_texts() == ["work"]
    listing.get_by_text("work", exact=True).dblclick()
    listing.get_by_text(Path(EXERCISES).name).dblclick()
    page.wait_until_ready(EXERCISES)
    assert page.interruptions() == []


def the_first_task_fails_and_says_so(page: NotebookPage) -> None:
    page.run_all()
    first, *_ = errors(page.cells())  # a busy browser may send the next cells after the kernel has dropped what waited
    assert first.startswith(f"{CHECK}: CheckFailed: ")
    page.run_cell(CHECK)
    assert page.in_sight(CHECK, ".attn-check-failed")
    assert not page.in_sight(CHECK, STRIP)
    page.run_cell(CHECK, text=f"try:\n    {CALL}\nexcept AssertionError:\n    pass\n1 / 0")
    assert page.in_sight(CHECK, STRIP)  # of another error
    page.run_cell(CHECK, text=CALL)
    assert page.interruptions() == []


def the_right_answer_makes_it_ok(page: NotebookPage, root: Path) -> None:
    solutions = nbformat.read(root / "solutions" / "02_softmax.ipynb", as_version=4)
    (answer,) = (cell.source for cell in solutions.cells if cell.id == "stable-softmax")
    page.run_cell("stable-softmax", text=answer)
    check = page.run_cell(CHECK)
    assert errors([check]) == []
    assert displayed(check).startswith("ok: task 2.1, ")


def after_a_reload_the_answer_is_there_and_still_ok(page: NotebookPage, course: Path) -> None:
    page.save()
    page.reload(EXERCISES)
    assert displayed(page.cell(CHECK)).startswith("ok: task 2.1, ")
    assert "NotImplementedError" not in page.cell("stable-softmax")["source"]
    assert displayed(page.run_cell(CHECK)).startswith("ok: task 2.1, ")
    assert page.interruptions() == []
    assert "stable-softmax" in (course / "work" / ".progress.json").read_text()
    cells = json.loads((course / EXERCISES).read_text())["cells"]
    assert any(
        "".join(output.get("data", {}).get("text/plain", "")).startswith("ok: task 2.1, ")
        for cell in cells
        for output in cell.get("outputs", [])
    )


def a_link_to_the_lesson_opens_the_learners_own(page: NotebookPage) -> None:
    page.menu("File", "Save Notebook")
    page.page.locator(".jp-NotebookPanel:visible a", has_text="02 Softmax").first.click()
    page.wait_until_ready("/02_softmax.ipynb")  # not ex_02_softmax.ipynb, which is in front already
    assert page.path() == "work/lessons/02_softmax.ipynb"

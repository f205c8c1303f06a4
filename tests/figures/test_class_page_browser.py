"""The class report in a narrow window: a long table scrolls beside the page, and no column becomes a ribbon of letters."""

import pytest

from attn_course.classroom.class_page import class_page
from attn_course.classroom.hand_ins import Class
from attn_course.classroom.marks import Marked
from attn_course.tasks import all_tasks
from attn_course.tasks.core import Verdict

pytestmark = pytest.mark.browser


def test_the_notes_keep_room_for_words_in_a_narrow_window(page):
    notes = ("the check cell of task 3.1 is gone; it is judged after the last cell that defines the answer",)
    marked = [Marked("student05", "scaling", "ex_03_scaling.ipynb", "scaling", "graded", notes=notes)]
    about = {"lessons": ["scaling"], "due": None, "sandbox": "sandbox: full", "version": "0", "seed": 1}
    page.set_viewport_size({"width": 500, "height": 800})
    page.set_content(class_page(Class(("student05",), (), ()), marked, about))
    assert page.locator("td").last.bounding_box()["width"] > 200
    assert page.evaluate("document.documentElement.scrollWidth") <= 500
    assert page.evaluate("getComputedStyle(document.querySelector('.wide')).overflowX") == "auto"


def test_on_a_phone_all_tasks_of_a_student_are_seen_in_a_line_for_each_chapter(page):
    judged = {slug: tuple(Verdict(task.id, task.title, True, 1, 1, "said") for task in all_tasks(slug)) for slug in ("softmax", "scaling")}
    marked = [Marked("student05", "week 1", "a.ipynb", slug, "graded", verdicts) for slug, verdicts in judged.items()]
    about = {"lessons": [*judged], "due": None, "sandbox": "sandbox: full", "version": "0", "seed": 1}
    page.set_viewport_size({"width": 400, "height": 800})
    page.set_content(class_page(Class(("student05",), (), ()), marked, about))
    boxes = [cell.bounding_box() for cell in page.locator(".passed").all()]
    assert len(boxes) == len(judged["softmax"]) + len(judged["scaling"])
    assert max(box["x"] + box["width"] for box in boxes) <= 400
    assert len({box["y"] for box in boxes}) == 2

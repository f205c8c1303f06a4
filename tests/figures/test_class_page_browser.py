"""The class report in a narrow window: a long table scrolls beside the page, and no column becomes a ribbon of letters."""

import pytest

from attn_course.classroom.class_page import class_page
from attn_course.classroom.hand_ins import Class
from attn_course.classroom.marks import Marked

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

"""Finding tasks, and one clear line when there is none."""

import sys
import types

import pytest

from attn_course.tasks import UnknownTask, all_tasks, chapters, figure_data, get_task, registry
from tests.tasks.toys import FIGURE, PAIR, WRITE, changed


@pytest.fixture
def chapter_99(monkeypatch):
    """A chapter file made up for one test."""

    def add(tasks):
        module = types.ModuleType("attn_course.tasks.ch99")
        module.TASKS = tasks
        monkeypatch.setitem(sys.modules, "attn_course.tasks.ch99", module)
        monkeypatch.setattr(registry, "_chapters", lambda: (2, 99))
        registry._chapter_tasks.cache_clear()

    yield add
    registry._chapter_tasks.cache_clear()


def test_every_listed_task_is_found_by_its_id():
    assert [get_task(task.id) for task in all_tasks()] == all_tasks()
    assert all_tasks(2) == [task for task in all_tasks() if task.chapter == 2]
    assert 2 in chapters()
    assert all_tasks(98) == []


def test_tasks_come_in_the_order_of_their_numbers(chapter_99):
    tasks = [changed(WRITE, id=f"99.{n}") for n in range(1, 12)]
    chapter_99(tasks)
    assert all_tasks(99) == tasks
    assert all_tasks()[-11:] == tasks
    assert get_task("99.10") is tasks[9]


def test_the_list_of_chapters_is_a_copy():
    chapters().append(98)
    assert 98 not in chapters()


@pytest.mark.parametrize("task_id", ["", "2", "2.", ".1", "2.1.1", "two", " 2.1", "2.1\n", 2.1, None, ["2.1"]])
def test_a_malformed_id_is_refused_in_one_line(task_id):
    with pytest.raises(UnknownTask, match=r"^a task id must look like '2\.1'; got ") as caught:
        get_task(task_id)
    assert str(caught.value).endswith(repr(task_id))
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("task_id", ["2.99", "2.0", "02.1", "2.01"])
def test_an_unknown_number_lists_the_tasks_of_the_chapter(task_id):
    with pytest.raises(UnknownTask, match=rf"^there is no task {task_id}; 2\.1, 2\.2, "):
        get_task(task_id)


@pytest.mark.parametrize("task_id", ["77.1", "99999999999.1"])
def test_an_unknown_chapter_lists_the_chapters(task_id):
    with pytest.raises(UnknownTask, match=rf"^there is no task {task_id}; chapters with tasks: 1, 2"):
        get_task(task_id)


@pytest.mark.parametrize("ids", [["99.2"], ["99.1", "99.3"], ["99.2", "99.1"], ["99.1", "99.1"], ["98.1"]])
def test_a_chapter_whose_ids_do_not_count_from_one_is_refused(chapter_99, ids):
    chapter_99([changed(PAIR, id=task_id) for task_id in ids])
    with pytest.raises(ValueError, match="TASKS of chapter 99 must have the ids"):
        all_tasks(99)


def test_figure_data_belongs_to_figure_tasks_only(chapter_99):
    chapter_99([changed(FIGURE, id="99.1"), changed(WRITE, id="99.2")])
    assert figure_data("99.1") == {"heights": [4.0]}
    with pytest.raises(ValueError, match=r"^task_id must name a figure task; task 99\.2 is of the kind 'write'$"):
        figure_data("99.2")

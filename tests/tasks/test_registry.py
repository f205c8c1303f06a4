"""Finding tasks, and one clear line when there is none."""

import re
import sys
import types

import pytest

from attn_course import numbers
from attn_course.tasks import UnknownTask, all_tasks, figure_data, get_task, lessons, registry
from tests.tasks.toys import FIGURE, PAIR, WRITE, changed


@pytest.fixture
def toy(monkeypatch):
    """A lesson made up for one test: the tasks its file lists, and those that its exercises count, in their order."""

    def add(tasks, counted):
        module = types.ModuleType("attn_course.lessons.toy.tasks")
        module.ORDER = [task.id for task in tasks]
        vars(module).update({f"task_{n}": task for n, task in enumerate(tasks)})
        known = numbers.tables()
        counting = {name: f"99.{number}" for number, name in enumerate(counted, 1)}
        given = {**known, "tasks": {**known["tasks"], "toy": counting}, "slugs": {**known["slugs"], "toy": {"number": 99, "title": "Toy"}}}
        monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.setattr(numbers, "tables", lambda: given)
        monkeypatch.setattr(numbers, "lessons_with", lambda room: ["softmax", "toy"])
        modules = numbers.lesson_modules
        own = {("tasks", "toy"): [module.__name__]}
        monkeypatch.setattr(numbers, "lesson_modules", lambda room, slug: own.get((room, slug)) or modules(room, slug))
        registry._lesson_tasks.cache_clear()

    yield add
    registry._lesson_tasks.cache_clear()


def test_every_listed_task_is_found_by_its_id():
    assert [get_task(task.id) for task in all_tasks()] == all_tasks()
    assert all_tasks("softmax") == [task for task in all_tasks() if task.lesson == "softmax"]
    assert "softmax" in lessons()
    assert all_tasks("nowhere") == []


def test_tasks_come_in_the_order_of_their_exercises_whatever_the_order_of_the_list(toy):
    ids = [f"task-{letter}" for letter in "cabdefghijk"]
    tasks = [changed(WRITE, id=task_id) for task_id in sorted(ids)]
    toy(tasks, ids)
    assert [task.id for task in all_tasks("toy")] == ids
    assert [task.number for task in all_tasks("toy")][-2:] == ["99.10", "99.11"]
    assert get_task("task-a") is tasks[0]
    assert all_tasks()[-11:] == all_tasks("toy")


@pytest.mark.parametrize("task_id", ["", "two", " stable-softmax", "stable-softmax\n", "Stable-softmax", 2.1, None, ["stable-softmax"]])
def test_what_names_no_task_is_refused_in_one_line(task_id):
    with pytest.raises(UnknownTask, match=r"^there is no task ") as caught:
        get_task(task_id)
    assert repr(task_id) in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("task_id", "says"),
    [
        ("5.11", "5.11 is a number, and numbers change: the name of task 5.11 is gain-over-mixture"),
        ("task 5.11", "task 5.11 is a number, and numbers change: the name of task 5.11 is gain-over-mixture"),
        ("77.1", "no task has the number 77.1 today; tasks are asked for by name"),
    ],
)
def test_a_number_in_the_place_of_a_name_is_answered_with_the_name(task_id, says):
    with pytest.raises(UnknownTask, match=f"^{re.escape(says)}$"):
        get_task(task_id)


@pytest.mark.parametrize("ids", [["first"], ["first", "second", "third"], ["first", "other"], []])
def test_a_list_of_tasks_that_is_not_that_of_the_exercises_is_refused(toy, ids):
    toy([changed(PAIR, id=task_id) for task_id in ids], ["first", "second"])
    with pytest.raises(ValueError, match=r"^the tasks of toy must have the ids of its exercises, \['first', 'second'\]; got "):
        all_tasks("toy")


def test_figure_data_belongs_to_figure_tasks_only(toy):
    toy([changed(FIGURE, id="read-it"), changed(WRITE, id="write-it")], ["read-it", "write-it"])
    assert figure_data("read-it") == {"heights": [4.0]}
    with pytest.raises(ValueError, match=r"^task_id must name a figure task; task write-it is of the kind 'write'$"):
        figure_data("write-it")

"""`attn-course progress`: which tasks I have passed, chapter by chapter."""

from collections.abc import Sequence
from typing import Annotated, Any

from attn_course.commands.chapters import exercise_lessons
from attn_course.commands.course import find_course
from attn_course.commands.terminal import check_json_target, console, option, refusing, table, write_json
from attn_course.numbers import lesson_number, task_number

_BAR_WIDTH = 16


def progress(
    json_file: Annotated[str | None, option("--json", "FILE", "Write the record as JSON instead; - prints it.")] = None,
) -> None:
    """Show which tasks I have passed, and my points, chapter by chapter.

    The record is kept on this machine only (work/.progress.json), by the check cells and by attn-course check. A task
    once passed stays passed. Listed are the chapters whose exercises lie in this folder, and those with a task passed.

    Examples:

        attn-course progress
        attn-course progress --json -
    """
    check_json_target(json_file)
    chapters = _chapters()
    if json_file:
        write_json(json_file, {"version": 1, "chapters": chapters})
        if json_file == "-":
            return
    _show(chapters)


def _chapters() -> list[dict[str, Any]]:
    """For each chapter its tasks, in plain data."""
    from attn_course.tasks import all_tasks
    from attn_course.tasks.progress import load

    root = find_course()
    with refusing(ValueError):
        recorded = load(root)
    there = exercise_lessons(root)
    chapters: dict[str, list[dict[str, Any]]] = {}
    for task in all_tasks():
        entry = recorded.get(task.id, {})
        chapters.setdefault(task.lesson, []).append(
            {
                "id": task.id,
                "title": task.title,
                "passed": bool(entry.get("passed", False)),
                "points": int(entry.get("points", 0)),
                "max_points": task.points,
                "attempts": int(entry.get("attempts", 0)),
            }
        )
    return [
        {"lesson": lesson, **{key: sum(task[key] for task in tasks) for key in ("passed", "points", "max_points")}, "tasks": tasks}
        for lesson, tasks in chapters.items()
        if lesson in there or any(task["passed"] for task in tasks)
    ]


def _show(chapters: Sequence[dict[str, Any]]) -> None:
    from rich.text import Text

    out = console()
    with_bar = out.width >= 60
    number = {"justify": "right", "no_wrap": True}
    made = table({"Chapter": {}, "Tasks": number, "Points": number, **({"": {"no_wrap": True}} if with_bar else {}), "Next": {}})
    for chapter in chapters:
        waiting = next((task for task in chapter["tasks"] if not task["passed"]), None)
        counts = [f"{chapter['passed']}/{len(chapter['tasks'])}", f"{chapter['points']}/{chapter['max_points']}"]
        filled = _BAR_WIDTH * chapter["points"] // max(1, chapter["max_points"])
        bar = [Text("#" * filled + "." * (_BAR_WIDTH - filled))] if with_bar else []
        following = Text(f"{task_number(waiting['id'])} {waiting['title']}") if waiting else Text("all done", "green")
        made.add_row(lesson_number(chapter["lesson"]).zfill(2), *counts, *bar, following)
    out.print(made)

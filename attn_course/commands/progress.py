"""`attn-course progress`: which tasks I have passed, chapter by chapter, what comes next and what to do again."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

from attn_course.commands.chapters import exercise_lessons
from attn_course.commands.course import find_course
from attn_course.commands.terminal import check_json_target, console, option, refusing, say, table, write_json
from attn_course.files import PROGRESS, write_atomically
from attn_course.numbers import lesson_number, lesson_of, task_number, title

PAGE = Path("work", "progress.md")
REVIEW_AFTER = timedelta(days=7)
MOST_TO_REVIEW = 5
_BAR_WIDTH = 16
_NONE = """# Where you are

You have not passed a task yet. Begin [here]({begin}). Later this page says what comes next, and what to do again.
"""
_NOTHING = "Nothing waits to be done again: that begins a week after a task was passed."
_PAGE = """# Where you are

{next}

{review}

| chapter | tasks passed | points |
|---|---|---|
{rows}

As it was when this lab was started; `attn-course progress` prints it as it is now.
"""


def progress(
    json_file: Annotated[str | None, option("--json", "FILE", "Write the record as JSON instead; - prints it.")] = None,
) -> None:
    """Show which tasks I have passed, what comes next, and what to do again since it was passed a week ago.

    The record is kept on this machine only (work/.progress.json), by the check cells and by attn-course check. A task
    once passed stays passed. Listed are the chapters whose exercises lie in this folder, and those with a task passed.
    What comes next is in the chapter that I worked on last. attn-course lab shows all this as a page.

    Examples:

        attn-course progress
        attn-course progress --json -
    """
    check_json_target(json_file)
    root = find_course()
    chapters = _chapters(root)
    if json_file:
        following, again = what_comes_next(chapters), _to_review(chapters)
        write_json(
            json_file,
            {"version": 1, "chapters": chapters, "next": following and following["id"], "review": [task["id"] for task in again]},
        )
        if json_file == "-":
            return
    _show(chapters)
    for line in advice(root, chapters):
        say(line, prose=True)


def write_page(root: Path) -> list[str]:
    """Write the page that the lab opens; return what comes next and what to do again, a line each, once something has been passed."""
    from attn_course.checking.cells import exercise_files

    lessons = exercise_files(root / PAGE.parent / "lessons", "*.ipynb")
    if not (root / PAGE).with_name(PROGRESS).exists():  # the tasks need not be loaded, and the lab opens a second earlier
        begin = [f"lessons/{path.name}" for path in lessons.values()]
        begin += [path.name for path in exercise_files(root / "exercises").values()]
        write_atomically(root / PAGE, _NONE.format(begin=begin[0]))
        return []
    chapters = _chapters(root)
    rows = []
    for one in chapters:
        lesson, name = one["lesson"], f"{lesson_number(one['lesson']).zfill(2)} {title(one['lesson'])}"
        linked = f"[{name}](lessons/{lessons[lesson].name})" if lesson in lessons else name
        rows.append(f"| {linked} | {one['passed']} of {len(one['tasks'])} | {one['points']} of {one['max_points']} |")
    following, again = what_comes_next(chapters), _to_review(chapters)

    def link(task: dict[str, Any]) -> str:
        return f"[{_named(task)}]({_exercise(root, task)})"

    first = f"Next: {link(following)}" if following else "You have passed every task."
    review = "Passed more than a week ago, to be done again:\n\n" + "\n".join(f"- {link(task)}" for task in again)
    write_atomically(root / PAGE, _PAGE.format(next=first, review=review if again else _NOTHING, rows="\n".join(rows)))
    return advice(root, chapters) if any(one["passed"] for one in chapters) else []


def advice(root: Path, chapters: Sequence[dict[str, Any]]) -> list[str]:
    """Return what comes next and what to do again, a line each."""
    following, again = what_comes_next(chapters), _to_review(chapters)
    lines = [f"Next: {_named(following)}, in work/{_exercise(root, following)}"] if following else []
    return lines + [f"Passed more than a week ago, to be done again: {'; '.join(map(_named, again))}"] * bool(again)


def _exercise(root: Path, task: dict[str, Any]) -> str:
    """The name of the notebook that asks a task."""
    from attn_course.checking.cells import NotebookError, exercise_files

    lesson = lesson_of("tasks", task["id"])
    with refusing(NotebookError):
        found = exercise_files(root / "exercises") | exercise_files(root / "work")
    return found[lesson].name if lesson in found else str(lesson)


def what_comes_next(chapters: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the first task not passed of the unfinished chapter that was worked on last, or of the first one."""
    waiting = [chapter for chapter in chapters if chapter["passed"] < len(chapter["tasks"])]
    chapter = max(waiting, key=lambda one: max(task["last"] for task in one["tasks"]), default=None)
    return next((task for task in chapter["tasks"] if not task["passed"]), None) if chapter else None


def _to_review(chapters: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Tasks that were passed and not tried again for a week, the longest ago first."""
    until = (datetime.now(UTC) - REVIEW_AFTER).isoformat(timespec="seconds")
    passed = [task for chapter in chapters for task in chapter["tasks"] if task["passed"] and task["last"] <= until]
    return sorted(passed, key=lambda task: task["last"])[:MOST_TO_REVIEW]


def _named(task: dict[str, Any]) -> str:
    return f"{task_number(task['id'])} {task['title']}"


def _chapters(root: Path) -> list[dict[str, Any]]:
    """For each chapter its tasks, in plain data."""
    from attn_course.tasks import all_tasks
    from attn_course.tasks.progress import load

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
                "last": str(entry.get("last", "")),
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

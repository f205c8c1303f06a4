"""Whether an answer is still what the exercise hands out: a function to repair runs, untouched, and would pass for a mistake made."""

import ast
from collections.abc import Collection

_NBGRADERS_STUB = ast.dump(ast.parse("raise NotImplementedError()").body[0])


def is_untouched(answers: Collection[str], asked: str | None) -> bool:
    """Return whether all cells that answer a task are the one that the exercise hands out.

    `answers`: texts of the cells that are marked as the answer, or define its name. `asked`: text of the answer cell in the
    exercise, if it has one. Blanks, blank lines and comments do not count, nor does the line that nbgrader puts under a function
    to repair.
    """
    return bool(answers) and asked is not None and all(_same_code(answer, asked) for answer in answers)


def untouched_message(entry: str) -> str:
    """Return what the learner is told.

    >>> untouched_message("my_update")
    'my_update has no answer yet: its cell is as the exercise hands it out'
    """
    return f"{entry} has no answer yet: its cell is as the exercise hands it out"


def _same_code(text: str, asked: str) -> bool:
    """By the syntax trees; nothing is run."""
    if text.strip() == asked.strip():
        return True
    try:
        statements, wanted = (_statements(each) for each in (text, asked))
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # no Python, a null byte, nested beyond measure
        return False
    return statements in (wanted, [*wanted, _NBGRADERS_STUB])


def _statements(text: str) -> list[str]:
    return [ast.dump(statement) for statement in ast.parse(text).body]

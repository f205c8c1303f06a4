"""Graded tasks: what is asked, how it is run, how it is judged.

`run` meets untrusted code and knows no answers; `judge` knows the answers and sees only arrays; `check` does
both in the learner's notebook.
"""

from attn_course.tasks.cards import VERDICT_MIME
from attn_course.tasks.core import Case, Task, Verdict, Wrong
from attn_course.tasks.judge import judge
from attn_course.tasks.notebook import CheckFailed, assess, check
from attn_course.tasks.reading import read
from attn_course.tasks.registry import UnknownTask, all_tasks, get_task, lessons
from attn_course.tasks.run import Result, run
from attn_course.tasks.variants import figure_data, question

__all__ = [
    "VERDICT_MIME",
    "Case",
    "CheckFailed",
    "Result",
    "Task",
    "UnknownTask",
    "Verdict",
    "Wrong",
    "all_tasks",
    "assess",
    "check",
    "figure_data",
    "get_task",
    "judge",
    "lessons",
    "question",
    "read",
    "run",
]

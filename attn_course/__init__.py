"""Own attention: derive it, implement it, debug it, and make it fast.

A learner types ``from attn_course import check, verify, show`` and imports formulas from ``attn_course.reference``.
Importing the package loads none of its rooms: each name below is looked up when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from attn_course import figures
    from attn_course.equations import verify, verify_lesson
    from attn_course.equations.show import show
    from attn_course.figures.viewer import attention_viewer
    from attn_course.game.alive import alive
    from attn_course.language.model import language_model
    from attn_course.tasks import check, question, read

__all__ = [
    "__version__",
    "alive",
    "attention_viewer",
    "check",
    "figures",
    "language_model",
    "question",
    "read",
    "show",
    "verify",
    "verify_lesson",
]
__version__ = "0.1.0"

_HOME_OF = {
    "alive": "attn_course.game.alive",
    "attention_viewer": "attn_course.figures.viewer",
    "check": "attn_course.tasks",
    "language_model": "attn_course.language.model",
    "question": "attn_course.tasks",
    "read": "attn_course.tasks",
    "show": "attn_course.equations",
    "verify": "attn_course.equations",
    "verify_lesson": "attn_course.equations",
}
_ROOMS = ("figures",)


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        return getattr(import_module(_HOME_OF[name]), name)
    if name in _ROOMS:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

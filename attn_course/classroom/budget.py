"""What a cell, a notebook and a student may use while a class is graded: the one source of what the guide and the students' README say."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from attn_course.classroom.sandbox.limits import MIB, Limits


class LimitError(ValueError):
    """A limit cannot be as it is asked for; the text is one line."""


_ENDS = "it ends; tasks judged until then keep their points"


def _limit(default: float, unit: str, beyond: str) -> Any:
    return field(default=default, metadata={"unit": unit, "beyond": beyond})


@dataclass(frozen=True)
class Budget:
    """The limits of `attn-course grade`, in the units that the metadata of the fields name.

    Raises LimitError if a limit is not a positive number, `copies` is not a whole one, or a student has less time than one
    notebook.
    """

    cell: float = _limit(20.0, "seconds for a code cell", "it is stopped, and the next one runs")
    call: float = _limit(10.0, "seconds for a call of an answer", "the answer counts as one that never ends")
    cpu: float = _limit(60.0, "seconds of computing for a notebook", _ENDS)
    notebook: float = _limit(120.0, "seconds for a notebook, a quarter of them kept for its answers in LaTeX", _ENDS)
    student: float = _limit(300.0, "seconds for all notebooks of a student", "those that are left are not judged")
    memory: float = _limit(1536.0, "MiB for a notebook, on top of Python and torch", "what asks for more gets a MemoryError")
    output: float = _limit(1.0, "MiB printed by a notebook", "the rest is thrown away, and the notebook goes on")
    copies: float = _limit(3, "notebooks of a student on one chapter", "the first by their names are judged, the others are not")

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if not 0 < value < float("inf") or (each.name == "copies" and value != int(value)):
                kind = "a whole number" if each.name == "copies" else "a number"
                raise LimitError(f"--limit: {each.name} must be {kind} of {each.metadata['unit']}, above 0; got {value:g}")
        if self.student < self.notebook:
            raise LimitError(f"--limit: student must be at least notebook, the time for one; got {self.student:g} and {self.notebook:g} s")

    def __str__(self) -> str:
        return " ".join(f"{name}={value:g}" for name, value in asdict(self).items())

    def changed(self, words: Iterable[str]) -> "Budget":
        """Return it with other limits, each given as "name=value", as `str` writes them; LimitError if one cannot be."""
        values: dict[str, float] = {}
        for word in words:
            name, _, value = word.partition("=")
            try:
                if name not in asdict(self):
                    raise ValueError
                values[name] = float(value)
            except ValueError:
                names = ", ".join(asdict(self))
                raise LimitError(f"--limit: wanted NAME=VALUE with a number and one of the names {names}; got {word!r}") from None
        return replace(self, **values)

    def table(self) -> str:
        """Return the limits as a table in Markdown."""
        lines = ["| limit | what is allowed | what happens beyond it |", "|---|---|---|"]
        rows = ((each.name, getattr(self, each.name), each.metadata) for each in fields(self))
        return "\n".join([*lines, *(f"| `{name}` | {value:g} {about['unit']} | {about['beyond']} |" for name, value, about in rows)])

    @property
    def of_worker(self) -> Limits:
        """What the process that runs a notebook is confined to."""
        return Limits(address_space_bytes=int(self.memory * MIB), cpu_s=self.cpu)


USUAL = Budget()

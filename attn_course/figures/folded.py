"""A long text, such as a table, behind one line that opens it."""

import html
from dataclasses import dataclass

from IPython.display import display


@dataclass(frozen=True)
class Folded:
    """A text in fixed width behind a line that opens it."""

    summary: str
    text: str

    def __repr__(self) -> str:
        """Return the whole, as a text terminal shows it."""
        return f"{self.summary}\n\n{self.text}"

    def _repr_html_(self) -> str:
        shown = f'<pre style="font-family: monospace; font-size: 13px; white-space: pre; overflow-x: auto">{html.escape(self.text)}</pre>'
        return f"<details><summary>{html.escape(self.summary)}</summary>{shown}</details>"


def folded(summary: str, text: str) -> None:
    """Show a long text, such as a table, folded behind one line."""
    display(Folded(summary, text))

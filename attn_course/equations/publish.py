"""Display in a notebook, print elsewhere."""

import sys
from typing import Protocol


class Displayed(Protocol):
    """What has a form in Markdown, and one in plain text."""

    def _repr_markdown_(self) -> str: ...


def publish(found: Displayed) -> None:
    """Display it; where nothing displays Markdown, print its text."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is None:
        print(found)
    else:
        shell.display_pub.publish({"text/markdown": found._repr_markdown_(), "text/plain": str(found)})

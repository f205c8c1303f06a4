"""Find relative links in the Markdown of a notebook that lead nowhere."""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

from nbformat import NotebookNode

_CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
_TARGETS = re.compile(r"""\]\(\s*<?([^)>\s]+)|\b(?:href|src)\s*=\s*["']([^"']+)["']|^\s*\[[^\]]+\]:\s*(\S+)""", re.MULTILINE)
_ABSOLUTE = re.compile(r"[a-z][a-z0-9+.-]*:|#|//", re.IGNORECASE)


def dead_links(notebook: NotebookNode, folder: Path, root: Path) -> Iterator[tuple[str, str]]:
    """Yield (cell id, link) for each relative link whose file does not exist.

    A link into work/ counts as one into exercises/, of which work/ holds the copies.

    `root`: the course's root; a link that leaves it is dead.
    """
    for cell in notebook.cells:
        if cell.cell_type != "markdown":
            continue
        for link in links_in(cell.source):
            if not _ABSOLUTE.match(link) and not _exists(link, folder, root):
                yield cell.id, link


def links_in(markdown: str) -> list[str]:
    """Return the targets of links and pictures, code aside.

    >>> links_in("[a](b.md#c) and `[x](y)`, <img src='d.png'>")
    ['b.md#c', 'd.png']
    """
    return ["".join(groups) for groups in _TARGETS.findall(_CODE.sub("", markdown))]


def _exists(link: str, folder: Path, root: Path) -> bool:
    target = (folder / unquote(link.split("#")[0])).resolve()
    if not target.is_relative_to(root):
        return False
    inside = target.relative_to(root)
    if inside.parts[:1] == ("work",):
        inside = Path("exercises", *inside.parts[1:])
    return (root / inside).exists()

"""Which outputs a notebook may keep: those that every later run repeats, that a reader can do without seeing, and that fit in git."""

import re
from collections.abc import Iterator
from typing import Any

from nbformat import NotebookNode

from attn_course.authoring.notebook import LIVE, code_cells, tags_of
from attn_course.authoring.problems import AuthoringError, shorten

MAX_IMAGE_BYTES = 300_000  # of base64, one picture
MAX_TEXT_BYTES = 200_000  # one HTML, text or JSON output
_ADDRESS = re.compile(r"\b0x[0-9a-f]{7,16}\b")
_NEGATIVE_ZERO = re.compile(r"(?<![\w.)])-0(?:\.0*)?(?![\w.])")
_EMBEDDED_IMAGE = re.compile(r"data:image/(png|jpeg|gif);base64")


def settle(notebook: NotebookNode, name: str) -> None:
    """Bring the outputs of a notebook that just ran into the form that is stored.

    Counts become 1..n, live cells lose theirs and their outputs, tracebacks lose the paths of this machine.

    `notebook`: changed in place. Raises AuthoringError if a cell's output breaks a rule of `findings`.
    """
    for number, cell in enumerate(code_cells(notebook), 1):
        if LIVE in tags_of(cell):
            cell.outputs, cell.execution_count = [], None
            continue
        cell.execution_count = number
        for output in cell.outputs:
            if output.output_type == "error":
                output.traceback = [f"{output.ename}: {output.evalue}"]
            elif output.output_type == "execute_result":
                output.execution_count = number
        for finding in findings(cell):
            raise AuthoringError(f"{name}: cell {cell.id!r}: {finding}")


def findings(cell: NotebookNode) -> Iterator[str]:
    """Yield what is wrong with the outputs of one code cell.

    `cell`: a code cell of a lesson or a solution.
    """
    for output in cell.outputs:
        if output.output_type == "stream":
            if output.name == "stderr":
                yield f"wanted nothing on stderr (nbval compares it), got {shorten(output.text.strip())}"
            yield from _text_findings(output.text)
            yield from _printed_findings(output.text)
        for mime, content in output.get("data", {}).items():
            if mime.startswith("image/"):
                yield from _image_findings(mime, content, output.metadata, _joined(output.data.get("text/plain", "")))
            else:
                yield from _text_findings(_joined(content))
            if mime == "text/plain":
                yield from _printed_findings(_joined(content))


def count_findings(notebook: NotebookNode) -> Iterator[tuple[str, str]]:
    """Yield (cell id, what is wrong) where execution counts are not 1..n, or a live cell has kept an output."""
    for number, cell in enumerate(code_cells(notebook), 1):
        live = LIVE in tags_of(cell)
        wanted = None if live else number
        if cell.execution_count != wanted:
            yield cell.id, f"wanted execution count {wanted}, got {cell.execution_count}: was it run on its own, or never?"
        if live and cell.outputs:
            yield cell.id, f"wanted no stored output of a live cell, got {len(cell.outputs)}"


def _joined(content: Any) -> str:
    return content if isinstance(content, str) else "".join(content) if isinstance(content, list) else str(content)


def _text_findings(text: str) -> Iterator[str]:
    address = _ADDRESS.search(text)
    if address:
        yield f"wanted output that every run repeats, got the memory address {address[0]}"
    if _EMBEDDED_IMAGE.search(text):
        yield "wanted pictures as image/png outputs, got one as base64 inside text"
    if len(text.encode()) > MAX_TEXT_BYTES:
        yield f"wanted an output of at most {MAX_TEXT_BYTES} bytes, got {len(text.encode())}"


def _printed_findings(text: str) -> Iterator[str]:
    zero = _NEGATIVE_ZERO.search(text)
    if zero:
        yield f"wanted zeros without a sign, since rounding decides about it on each processor anew (add 0.0), got {zero[0]}"


def _image_findings(mime: str, content: Any, metadata: dict[str, Any], text: str) -> Iterator[str]:
    if mime not in ("image/png", "image/svg+xml"):
        yield f"wanted pictures as image/svg+xml or image/png, got {mime}"
    alt = metadata.get(mime, {}).get("alt", "")
    if not alt.strip():
        yield f"wanted alt text in the metadata of {mime} (draw with attn_course.figures), got none"
    elif alt not in text:
        yield f"wanted the alt text in text/plain too, where it is compared, got {shorten(text)}"
    if len(_joined(content)) > MAX_IMAGE_BYTES:
        yield f"wanted a picture of at most {MAX_IMAGE_BYTES} bytes as base64, got {len(_joined(content))}"

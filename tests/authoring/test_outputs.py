"""Outputs that no later run repeats, that nobody can read, or that are too large never reach a notebook."""

import nbformat
import pytest

from attn_course.authoring import AuthoringError
from attn_course.authoring.outputs import MAX_IMAGE_BYTES, MAX_TEXT_BYTES, settle

PNG = "iVBORw0KGgo="


def stream(text, name="stdout"):
    return nbformat.v4.new_output("stream", name=name, text=text)


def display(data, metadata=None):
    return nbformat.v4.new_output("display_data", data=data, metadata=metadata or {})


def settled(*outputs, tags=()):
    cell = nbformat.v4.new_code_cell("f()", id="draw", metadata={"tags": list(tags)}, outputs=list(outputs), execution_count=9)
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("text"), cell])
    settle(notebook, "notebooks/02.ipynb")
    return cell


REFUSED = {
    "stderr": (stream("careful", "stderr"), "wanted nothing on stderr .*got 'careful'"),
    "an address in text": (stream("<object at 0x7f3a5c00>"), "got the memory address 0x7f3a5c00"),
    "a zero with a sign": (stream("others: [ 1. -0.]"), "got -0."),
    "a zero with a sign and digits in a result": (display({"text/plain": "array([-0.00, 1])"}), "got -0.00"),
    "a picture without alt": (display({"image/png": PNG}), "wanted alt text in the metadata of image/png"),
    "a picture with blank alt": (display({"image/png": PNG}, {"image/png": {"alt": " "}}), "wanted alt text"),
    "words that are not compared": (
        display({"image/png": PNG, "text/plain": "<Figure>"}, {"image/png": {"alt": "A line rises."}}),
        "wanted the alt text in text/plain too, where it is compared, got '<Figure>'",
    ),
    "a JPEG": (display({"image/jpeg": PNG}, {"image/jpeg": {"alt": "x"}}), "pictures as image/svg.xml or image/png, got image/jpeg"),
    "a picture inside HTML": (display({"text/html": "<img src='data:image/png;base64,iVBO'>"}), "got one as base64 inside text"),
    "too large a picture": (
        display({"image/png": "A" * (MAX_IMAGE_BYTES + 4), "text/plain": "x"}, {"image/png": {"alt": "x"}}),
        "wanted a picture of at most",
    ),
    "too long a text": (stream("a" * (MAX_TEXT_BYTES + 1)), "wanted an output of at most"),
}


@pytest.mark.parametrize(("output", "message"), REFUSED.values(), ids=REFUSED)
def test_an_output_is_refused(output, message):
    with pytest.raises(AuthoringError, match=f"^notebooks/02.ipynb: cell 'draw': .*{message}"):
        settled(output)


def test_ordinary_outputs_stay():
    outputs = [
        stream("0x1f is 31, -0.5 and 10-0 are no zeros\n"),
        display({"image/png": PNG, "text/plain": "[figure] A line rises."}, {"image/png": {"alt": "A line rises."}}),
    ]
    assert settled(*outputs).outputs == outputs


def test_a_live_cell_may_print_anything_for_it_is_not_kept():
    cell = settled(stream("0.123 s at 0x7f3a5c00", "stderr"), tags=["live"])
    assert (cell.outputs, cell.execution_count) == ([], None)


def test_results_are_numbered_like_their_cell_and_tracebacks_hold_no_paths():
    result = nbformat.v4.new_output("execute_result", data={"text/plain": "1"}, execution_count=9)
    error = nbformat.v4.new_output("error", ename="ValueError", evalue="too big", traceback=["File /home/someone/x.py"])
    cell = settled(result, error)
    assert (cell.execution_count, cell.outputs[0].execution_count) == (1, 1)
    assert cell.outputs[1].traceback == ["ValueError: too big"]

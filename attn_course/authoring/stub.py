"""Turn the answer cell of a solution into the stub that the exercise shows."""

from dataclasses import dataclass

from attn_course.authoring.problems import AuthoringError, shorten

BEGIN = "### BEGIN SOLUTION"
END = "### END SOLUTION"


@dataclass(frozen=True)
class Region:
    """Lines first to last of a cell, markers included, and how far the markers are indented."""

    first: int
    last: int
    indent: str


def regions(text: str, place: str) -> list[Region]:
    """Return the marked regions of an answer cell.

    Raises AuthoringError if markers do not come in pairs of equal indentation.
    """
    found: list[Region] = []
    begin: Region | None = None
    for number, line in enumerate(text.split("\n")):
        indent = line[: len(line) - len(line.lstrip())]
        if line.strip() == BEGIN:
            if begin is not None:
                raise AuthoringError(f"{place}: line {number + 1}: wanted {END!r}, got a second {BEGIN!r}")
            begin = Region(number, number, indent)
        elif line.strip() == END:
            if begin is None:
                raise AuthoringError(f"{place}: line {number + 1}: wanted {BEGIN!r} first, got {END!r}")
            if indent != begin.indent:
                raise AuthoringError(f"{place}: line {number + 1}: wanted {END!r} indented like its {BEGIN!r}, got {shorten(line)}")
            found.append(Region(begin.first, number, indent))
            begin = None
        elif BEGIN in line or END in line:
            raise AuthoringError(f"{place}: line {number + 1}: wanted a solution marker on a line of its own, got {shorten(line)}")
    if begin is not None:
        raise AuthoringError(f"{place}: wanted {END!r} after line {begin.first + 1}, got none")
    return found


def stub(text: str, entry: str, place: str) -> str:
    """Return the answer cell with its solution taken out.

    A region inside a function becomes a line that raises; a region at column 0 becomes an assignment to `entry` that the learner completes.

    `entry`: the name the task checks. Raises AuthoringError if nothing is marked, markers are unbalanced, or two regions stand at
    column 0.

    >>> print(stub("def half(x):\\n    ### BEGIN SOLUTION\\n    return x / 2\\n    ### END SOLUTION", "half", "cell"))
    def half(x):
        # YOUR CODE HERE
        raise NotImplementedError()
    """
    found = regions(text, place)
    if not found:
        raise AuthoringError(f"{place}: wanted the answer between {BEGIN!r} and {END!r}, got no markers")
    if sum(not region.indent for region in found) > 1:
        raise AuthoringError(f"{place}: wanted one solution region at column 0 (it becomes '{entry} = ...'), got several")
    lines = text.split("\n")
    for region in reversed(found):
        body = ["# YOUR CODE HERE", "raise NotImplementedError()"] if region.indent else [f"{entry} = ...  # your answer"]
        lines[region.first : region.last + 1] = [region.indent + line for line in body]
    return "\n".join(lines)

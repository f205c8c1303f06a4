"""What to ask a learner whose arrays do not fit, chosen by their shapes.

Like `run`, this file knows no right answer and imports nothing of the course.
"""

import re

BROADCAST = re.compile(r"^operands could not be broadcast together with shapes \(([\d,]*)\) \(([\d,]*)\) ?$")  # NumPy's words
MATMUL = re.compile(r"^matmul: Input operand 1 has a mismatch in its core dimension 0,.*\(size (\d+) is different from (\d+)\)")
AXIS = re.compile(r"^(?:\w+: )?axis -?\d+ is out of bounds for array of dimension (\d+)")
BOOLEAN = re.compile(r"^boolean index did not match indexed array along ")
REDUCTION = re.compile(r"\b(?:sum|mean|max|min|amax|amin|norm|std|var|prod|average|logsumexp)\(")
KEPT = re.compile(r"\bkeepdims?\b|\bNone\b|newaxis|expand_dims|unsqueeze|reshape")
DIAGONAL = re.compile(r"\bdiag\(")


def advice_on_shapes(error: str, code: str) -> str:
    """Return advice on an error about shapes; "" if they tell nothing.

    `error`: what NumPy said. `code`: the learner's function from its first line to the one that failed.
    """
    if mismatch := MATMUL.match(error):
        rows, columns = mismatch.groups()
        return f"the left factor has {columns} columns and the right one {rows} rows"
    if beyond := AXIS.match(error):
        axes = int(beyond[1])
        named = f"axes 0 to {axes - 1}, or from the end -1 to -{axes}" if axes > 1 else "axis 0 and no other" if axes else "no axis"
        return f"this array has {named}"
    if BOOLEAN.match(error):
        return "a boolean index must have the shape of what it picks from; np.where broadcasts"
    if not (operands := BROADCAST.match(error)):
        return ""
    one, other = (tuple(int(length) for length in shape.split(",") if length) for shape in operands.groups())
    if len(one) == len(other):
        return _pairs(one, other)
    small, large = sorted((one, other), key=len)
    column = _as_column(small, large)
    if not column:
        return ""
    lines = code.splitlines()
    if lines and DIAGONAL.search(lines[-1]):
        return "np.diag makes a matrix of a vector; of a matrix it takes the diagonal"
    if any(REDUCTION.search(line) and not KEPT.search(line) for line in lines):
        return "did a reduction lose its axis? See keepdims."
    return f"with an axis of length 1 more, {small} would be {column}, and fit"


def _pairs(one: tuple[int, ...], other: tuple[int, ...]) -> str:
    """Advice where two tables of rows meet as they are: each row with each row needs two axes of rows."""
    if len(one) < 2 or one[:-2] != other[:-2] or one[-1] != other[-1]:
        return ""
    first, second = (*one[:-1], 1, one[-1]), (*other[:-2], 1, *other[-2:])
    both = (*one[:-1], other[-2], one[-1])
    return f"if each row of one is to meet each row of the other, both need an axis more: {first} and {second} give {both}"


def _as_column(small: tuple[int, ...], large: tuple[int, ...]) -> tuple[int, ...]:
    """The smaller shape with the axis of length 1 behind its first that lets it fit; () if it is not one axis that is missing."""
    if len(small) == len(large) - 1:
        for place in range(1, len(large)):
            if small == large[:place] + large[place + 1 :]:
                return (*small[:place], 1, *small[place:])
    return ()

"""Numbers that tell a tally when they are multiplied, and memories that tell what passes: how the formulas of costs are checked.

The loops of the tests are the computations themselves, on arrays of such numbers, and each is shown to give what the
reference gives. So what they count is what the formulas must say.
"""

import numpy as np

from attn_course.reference import softmax


class Tally:
    """Counts multiplications; each comes with an addition, so it is two FLOPs."""

    def __init__(self):
        self.multiplications = 0

    @property
    def flops(self):
        return 2 * self.multiplications

    def numbers(self, array):
        return np.vectorize(lambda value: Counted(value, self), otypes=[object])(array)


class Counted:
    """A float that counts its products."""

    def __init__(self, value, tally):
        self.value = float(value)
        self.tally = tally

    def __float__(self):
        return self.value

    def __mul__(self, other):
        self.tally.multiplications += 1
        return Counted(self.value * other.value, self.tally)

    def __add__(self, other):
        return Counted(self.value + float(other), self.tally)


def values(numbers):
    return np.vectorize(float, otypes=[float])(numbers)


def attend(query, key, value, mask, tally, scale=None):
    """Attention of arrays of counted numbers; pairs that the mask hides are skipped, and the softmax does not count."""
    scale = 1.0 / np.sqrt(query.shape[-1]) if scale is None else scale
    rows = [values(tally.numbers(softmax(values(key[seen] @ row) * scale)) @ value[seen]) for row, seen in zip(query, mask, strict=True)]
    return tally.numbers(np.reshape(rows, (len(query), value.shape[1])))


class Memory:
    """A slow memory that counts the numbers and statistics read from it and written to it."""

    def __init__(self):
        self.numbers = 0
        self.statistics = 0

    def read(self, array, rows=slice(None)):
        part = array[rows]
        self._count(part)
        return part.copy()

    def write(self, array, rows, part):
        array[rows] = part
        self._count(array[rows])

    def _count(self, part):
        if part.ndim == 1:  # one statistic for each row
            self.statistics += part.size
        else:
            self.numbers += part.size

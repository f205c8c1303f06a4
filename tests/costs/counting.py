"""Numbers that tell a tally what is done with them, and memories that tell what passes: how the formulas of costs are checked.

The loops below are the computations themselves, one operation at a time; test_loops.py shows that they give what the
reference gives. So what they count is what the formulas must say.
"""

import math
from collections import Counter

import numpy as np


class Tally:
    """Counts of operations: "multiply", "add", "subtract", "divide", "exp", "tanh", "root"."""

    def __init__(self):
        self.counts = Counter()

    def __getitem__(self, kind):
        return self.counts[kind]

    @property
    def flops(self):
        """Multiplications and additions."""
        return self.counts["multiply"] + self.counts["add"]

    def numbers(self, array):
        """Return an array of counted numbers, as nested lists."""
        return [self.numbers(part) for part in array] if np.ndim(array) else Counted(float(array), self)

    def zero(self):
        return Counted(0.0, self)


class Counted:
    """A float that counts. Sums start at a counted zero, so that each product comes with one addition."""

    def __init__(self, value, tally):
        self.value = value
        self.tally = tally

    def _new(self, kind, value):
        self.tally.counts[kind] += 1
        return Counted(value, self.tally)

    def __mul__(self, other):
        return self._new("multiply", self.value * other.value)

    def __add__(self, other):
        return self._new("add", self.value + other.value)

    def __sub__(self, other):
        return self._new("subtract", self.value - other.value)

    def __truediv__(self, other):
        return self._new("divide", self.value / other.value)

    def exp(self):
        return self._new("exp", math.exp(self.value))

    def tanh(self):
        return self._new("tanh", math.tanh(self.value))

    def root(self):
        return self._new("root", math.sqrt(self.value))


def values(numbers):
    """Return nested lists of counted numbers as an ndarray."""
    return np.array([values(part) for part in numbers]) if isinstance(numbers, list) else numbers.value


def dot(left, right, tally):
    total = tally.zero()
    for a, b in zip(left, right, strict=True):
        total = total + a * b
    return total


def project(rows, matrix, tally):
    """rows @ matrix, for lists of lists; matrix (d_in, d_out)."""
    return [[dot(row, column, tally) for column in zip(*matrix, strict=True)] for row in rows]


def normalise(scores, quiet):
    """Softmax of a list of scores, counted on a tally of its own."""
    peak = max(score.value for score in scores)
    terms = [Counted(score.value - peak, quiet).exp() for score in scores]
    total = sum(term.value for term in terms)
    return [term.value / total for term in terms]


def average(weights, rows, width, tally):
    """The sum of weight times row: one multiply-add for each row and feature."""
    total = [tally.zero() for _ in range(width)]
    for weight, row in zip(weights, rows, strict=True):
        total = [have + weight * entry for have, entry in zip(total, row, strict=True)]
    return total


def attend(query, key, value, d_v, visible, tally, quiet):
    """Attention of lists of rows; `visible(i)` lists the keys of query i. Products go to `tally`, the softmax to `quiet`."""
    output = []
    scale = 1.0 / math.sqrt(len(query[0])) if query else 1.0
    for i, row in enumerate(query):
        keys = visible(i)
        scores = [Counted(dot(row, key[j], tally).value * scale, quiet) for j in keys]
        weights = [Counted(weight, tally) for weight in normalise(scores, quiet)] if keys else []
        output.append(average(weights, [value[j] for j in keys], d_v, tally))
    return output


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

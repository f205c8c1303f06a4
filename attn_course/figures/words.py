"""Numbers as a reader expects them in titles, labels and alternative texts."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike


def number(value: float, digits: int = 2) -> str:
    """Return a short form of a number, without a sign on zero and with a real minus.

    >>> number(-0.001), number(-1.25, 1), number(3)
    ('0.00', '−1.2', '3.00')
    """
    text = f"{value:.{digits}f}"
    if float(text) == 0.0:
        text = f"{0.0:.{digits}f}"
    return text.replace("-", "−")


def listed(values: ArrayLike, digits: int = 2) -> str:
    """Return numbers as a list in prose.

    >>> listed([0.5, 0.25, 0.25])
    '0.50, 0.25 and 0.25'
    """
    texts = [number(float(value), digits) for value in np.asarray(values).ravel()]
    return " and ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)


def each_listed(rows: Mapping[str, ArrayLike], digits: int = 2) -> str:
    """Return a sentence for each name, with its numbers as a list.

    >>> each_listed({"scaled": [0.5, 0.25], "unscaled": [1.0]}, 1)
    'scaled: 0.5 and 0.2. unscaled: 1.0.'
    """
    return " ".join(f"{name}: {listed(row, digits)}." for name, row in rows.items())


def short(value: float) -> str:
    """Return two significant digits, with a power of ten where zeros would hide them.

    >>> short(0.2512), short(3.42e-5), short(100.0)
    ('0.25', '3.4 · 10⁻⁵', '100')
    """
    if value == 0.0 or 1e-3 <= abs(value) < 1e4:
        return f"{value:.2g}".replace("-", "−") if abs(value) < 10 else f"{value:.0f}"
    factor, exponent = f"{value:.1e}".split("e")
    return f"{factor} · {power(10, int(exponent))}"


def power(base: int, exponent: int) -> str:
    """Return a power as it is written.

    >>> power(2, 14), power(10, -3)
    ('2¹⁴', '10⁻³')
    """
    return f"{base}{str(exponent).translate(str.maketrans('-0123456789', '⁻⁰¹²³⁴⁵⁶⁷⁸⁹'))}"

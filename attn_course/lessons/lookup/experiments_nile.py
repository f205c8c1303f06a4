"""The yearly flow of the Nile at Aswan from 1871 to 1970, in 10^8 cubic metres (Cobb, 1978; the data set `Nile` of R)."""

import numpy as np

YEARS = np.arange(1871.0, 1971.0)
FLOW = np.array([
    1120, 1160, 963, 1210, 1160, 1160, 813, 1230, 1370, 1140, 995, 935, 1110, 994, 1020, 960, 1180, 799, 958, 1140, 1100, 1210, 1150,
    1250, 1260, 1220, 1030, 1100, 774, 840, 874, 694, 940, 833, 701, 916, 692, 1020, 1050, 969, 831, 726, 456, 824, 702, 1120, 1100, 832,
    764, 821, 768, 845, 864, 862, 698, 845, 744, 796, 1040, 759, 781, 865, 845, 944, 984, 897, 822, 1010, 771, 676, 649, 846, 812, 742,
    801, 1040, 860, 874, 848, 890, 744, 749, 838, 1050, 918, 986, 797, 923, 975, 815, 1020, 906, 901, 1170, 912, 746, 919, 718, 714, 740,
], dtype=np.float64)  # fmt: skip


def guesses(x: np.ndarray, y: np.ndarray, h: float) -> np.ndarray:
    """Guess y at each x from all other points, by kernel regression."""
    s = np.exp(-((x[:, None] - x) ** 2) / (2 * h**2))
    np.fill_diagonal(s, 0)
    return np.asarray(s @ y / s.sum(axis=1))


def miss(x: np.ndarray, y: np.ndarray, h: float) -> float:
    """How far these guesses lie from y: what the lesson goes on with if its reader has written nothing."""
    return float(np.sqrt(((guesses(x, y, h) - y) ** 2).mean()))

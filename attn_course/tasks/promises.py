"""What the words of a task promise about its inputs, and whether the cases keep it."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

NUMBER = r"(\$?-?(?:10\^\{-?\d+\}|[\d ]*\d|a thousand)\$?)"
MAY = re.compile(r"\bmay (?:be|lie|hold|have|differ|consist|stand|end|exceed|also)\b")
BOUNDS = rf"[Ss]cores (?:may )?lie (?:anywhere )?between {NUMBER} and {NUMBER}"
MODERATE = 100.0  # a score that is called moderate is smaller: no exponential overflows, not even in float32 with a few of them summed


@dataclass(frozen=True)
class Drawn:
    """The inputs of a case that was drawn, what its task's text says, and what the right answer returns."""

    inputs: Mapping[str, Any]
    text: str
    results: Sequence[np.ndarray]

    def __getitem__(self, name: str) -> Any:
        return self.inputs[name]

    def __contains__(self, name: str) -> bool:
        return name in self.inputs

    @property
    def first(self) -> np.ndarray:
        """Its first array."""
        return next(value for value in self.inputs.values() if isinstance(value, np.ndarray))

    def leading(self, shape: str) -> int:
        """How many axes its first array has before those named in a shape such as ", T, d_k"."""
        return self.first.ndim - len(re.findall(r"[\w* ]*\w", shape))

    def length(self, axis: str, shape: str) -> int | None:
        """How long the axis of its first array is that the shape calls so."""
        names = [name.strip() for name in shape.split(",") if name.strip()]
        place = names.index(axis) - len(names)
        return self.first.shape[place] if self.first.ndim >= -place else None

    @cached_property
    def hidden(self) -> np.ndarray:
        """Which keys are hidden by a mask or by lengths, in a shape that broadcasts to that of the scores."""
        if "mask" in self:
            return ~self["mask"]
        lengths = next((self[name] for name in ("source_lengths", "lengths") if name in self), None)
        if lengths is None:
            return np.zeros((), dtype=bool)
        keys = self["annotations"] if "annotations" in self else self["key"]
        behind = np.arange(keys.shape[1]) >= lengths[:, None]
        return behind if "annotations" in self else behind[:, None]

    @cached_property
    def scores(self) -> np.ndarray:
        """The scores that it leads to, a row for each query, NaN where they are hidden."""
        with np.errstate(all="ignore"):
            scores = _scores(self)
        return np.where(self.hidden, np.nan, scores)

    @property
    def largest(self) -> float:
        """The size of the visible score that is farthest from 0."""
        return float(np.abs(self.scores[~np.isnan(self.scores)]).max(initial=0.0))

    def rows(self, holds: Callable[[np.ndarray], bool]) -> bool:
        """Whether this holds of the visible scores of some row."""
        rows = self.scores.reshape(-1, self.scores.shape[-1])
        return any(holds(row[~np.isnan(row)]) for row in rows if not np.isnan(row).all())

    def only_near(self, score: float) -> bool:
        """Whether all visible scores of some row are near this one."""
        return self.rows(lambda row: bool((np.abs(row - score) < 0.1 * abs(score)).all()))

    def has_near(self, score: float) -> bool:
        """Whether some visible score is near this one."""
        return self.rows(lambda row: bool((np.abs(row - score) < 0.1 * abs(score)).any()))

    def spans(self, low: float, high: float) -> bool:
        """Whether the visible scores of some row reach from one to the other."""
        return self.rows(lambda row: bool(row.min() <= low and row.max() >= high))


def _scores(d: Drawn) -> np.ndarray:
    for name in ("scores", "logits", "lses", "block"):
        if name in d and isinstance(d[name], np.ndarray):
            return d[name].T if name == "lses" else d[name]
    if "annotations" in d:
        return np.tanh((d["state"] @ d["w_query"])[:, None] + d["annotations"] @ d["w_key"]) @ d["w_score"]
    if "w_score" in d:
        return np.tanh((d["query"] @ d["w_query"])[..., :, None, :] + (d["key"] @ d["w_key"])[..., None, :, :]) @ d["w_score"]
    if "w_in" in d:
        projected = (d["x"] @ d["w_in"] + d["b_in"]).reshape(*d["x"].shape[:-1], 3, d["n_heads"], -1)
        query, key = np.moveaxis(projected, (-3, -2), (0, -3))[:2]
        key = np.concatenate([d["keys"], key], axis=-2) if "keys" in d else key
    elif "x" in d:
        query, key = d["x"] @ d["w_query"], d["y" if "y" in d else "x"] @ d["w_key"]
    else:
        query, key = d["query"], np.concatenate(d["key_blocks"]) if "key_blocks" in d else d["key"]
    if "**columns" in d.text:
        query, key = query.T, key.T
    return query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])


def _row(array: np.ndarray, value: float) -> bool:
    """Whether some row, but not all, holds this alone."""
    rows = (array == value).all(axis=-1)
    return bool(rows.any() and not rows.all())


def _is_sorted(array: np.ndarray) -> bool:
    return bool((np.diff(array) >= 0).all())


def _gaps(d: Drawn) -> np.ndarray:
    """By how much the second nearest key is farther than the nearest, for each query, relative to that."""
    squares = np.sort(((d["query"][:, None] - d["key"][None]) ** 2).sum(axis=-1), axis=1)[:, :2]
    return np.diff(squares, axis=1).ravel() / np.maximum(squares[:, -1], 1e-300) if squares.shape[1] > 1 else np.ones(0)


def _padding(d: Drawn) -> float:
    """The largest number that padding of the keys holds."""
    keys = d["annotations"] if "annotations" in d else d["key"]
    return float(np.abs(keys[d.hidden if d.hidden.ndim == 2 else d.hidden[:, 0]]).max(initial=0.0))


def _block_maxima(d: Drawn) -> np.ndarray:
    """The largest score of each query in each block, a column for each block."""
    sizes = [len(block) for block in d["key_blocks"]]
    return np.stack([part.max(axis=1) for part in np.split(d.scores, np.cumsum(sizes)[:-1], axis=1)], axis=1)


def _runs_monotonic(d: Drawn, sign: int) -> bool:
    maxima = _block_maxima(d)
    return maxima.shape[1] > 2 and bool((sign * np.diff(maxima, axis=1) > 0).all(axis=1).any())


class Promise(NamedTuple):
    """Words of a text, and what follows from them.

    `said`: a regular expression; the numbers and names that its groups catch are handed to `holds`.
    `means`: what some case must show, in words.
    `holds`: whether a case does.
    `always`: each case must, not only one.
    """

    said: str
    means: str
    holds: Callable[..., bool]
    always: bool = False


LEADING = r"`\(\.\.\.((?:, [\w* ]+)+)\)`"
MANY = rf"(?s)^(?!.*none or one leading).*?{LEADING}"

PROMISES = (
    # shapes
    Promise(LEADING, "no leading axis", lambda d, shape: d.leading(shape) == 0),
    Promise(LEADING, "one leading axis", lambda d, shape: d.leading(shape) == 1),
    Promise(MANY, "two leading axes", lambda d, shape: d.leading(shape) > 1),
    Promise(r"may be none|none, one or several", "a first array of two axes", lambda d: d.first.ndim == 2),
    Promise("any number of axes", "one axis", lambda d: d.first.ndim == 1),
    Promise("any number of axes", "three axes", lambda d: d.first.ndim > 2),
    Promise(r"`axis` is an integer and may be negative", "an axis counted from the front", lambda d: d["axis"] >= 0),
    Promise(r"`axis` is an integer and may be negative", "an axis before the last, counted from the end", lambda d: d["axis"] < -1),
    Promise(r"`\(([^`)]*\b(q_len|T|T_out)\b[^`)]*)\)`", "a single position", lambda d, shape, axis: d.length(axis, shape) == 1),
    Promise(r"`\(batch\b", "several examples", lambda d: len(d.first) > 1),
    Promise(r"Any of these lengths may be 1", "one query", lambda d: d["query"].shape[1] == 1),
    Promise(r"Any of these lengths may be 1", "one key", lambda d: d["key"].shape[1] == 1),
    Promise(r"Any of these lengths may be 1", "one feature", lambda d: len(d["query"]) == 1),
    Promise(r"Any of these lengths may be 1", "values of one feature", lambda d: len(d["value"]) == 1),
    Promise(r"\$n\$ may be 1|\$n \\ge 1\$ features", "a last axis of length 1", lambda d: d.first.shape[-1] == 1),
    Promise(r"blocks differ in length", "blocks of different lengths", lambda d: len({*map(len, d["key_blocks"])}) > 1),
    Promise(r"\$n_c \\ge 1\$", "a block of one key", lambda d: 1 in map(len, d["key_blocks"])),
    Promise(r"perhaps with fewer axes", "a mask of one axis", lambda d: d["mask"].ndim == 1),
    Promise(r"perhaps with fewer axes", "a mask of fewer axes, but not one", lambda d: 1 < d["mask"].ndim < d["scores"].ndim),
    Promise(r"mask that broadcasts", "a mask with an axis of length 1", lambda d: 1 in d["mask"].shape and d["mask"].ndim > 1),
    Promise(r"The width need not be", "heads not as wide as d / H", lambda d: d["w_query"].shape[1] != d["x"].shape[1]),
    Promise(r"\$R\$ divides", "one key head for several", lambda d: len(_keys(d)) == 1 < _heads(d)),
    Promise(r"\$R\$ divides", "a key head for each", lambda d: len(_keys(d)) == _heads(d)),
    Promise(r"\$R\$ divides", "several key heads that are shared", lambda d: 1 < len(_keys(d)) < _heads(d)),
    Promise(r"\$t\$ may be 0", "an empty cache", lambda d: d["keys"].shape[1] == 0),
    Promise(r"`q_len` is at most `kv_len`", "as many queries as keys", lambda d: len(d["query"]) == len(d["key"])),
    Promise(r"`q_len` is at most `kv_len`", "at most as many queries as keys", lambda d: len(d["query"]) <= len(d["key"]), always=True),
    Promise(r"the last chunk may be shorter", "a shorter last chunk", lambda d: 0 < len(d["query"]) % d["chunk"] < len(d["query"])),
    Promise(r"`chunk` may exceed", "a chunk longer than the text", lambda d: d["chunk"] > len(d["query"])),
    Promise(r"the last block may be smaller", "a smaller last block of queries", lambda d: 0 < d["q_len"] % d["block_q"] < d["q_len"]),
    Promise(r"the last block may be smaller", "a smaller last block of keys", lambda d: 0 < d["kv_len"] % d["block_kv"] < d["kv_len"]),
    Promise(r"need not divide `kv_len`", "a smaller last block", lambda d: len(d["key"]) % d["block"] > 0),
    Promise(r"need not divide `kv_len` and is at most", "one block for all keys", lambda d: len(d["key"]) == d["block"]),
    Promise(
        r"not be a multiple of (\d+)", "columns that fill no blocks", lambda d, block: block < d.first.shape[1] and d.first.shape[1] % block
    ),
    Promise(r"multiple of (\d+), and may be smaller", "fewer columns than a block", lambda d, block: d.first.shape[1] < block),
    # rows, sentences, blocks of which nothing is left
    Promise(r"A query or a key may be all zeros", "a key of zeros", lambda d: _row(d["key"], 0.0)),
    Promise(r"integers from 0 to", "the full length", lambda d: d["lengths"].max() == d.hidden.shape[-1]),
    Promise(r"of each example are real, at least one", "no length of 0", lambda d: _least_length(d) > 0, always=True),
    Promise(r"of each example are real, at least one", "a length of 1", lambda d: _least_length(d) == 1),
    Promise(r"saw no key on one side", "a query without a key in A", lambda d: bool((np.isneginf(d["m_a"]) > np.isneginf(d["m_b"])).any())),
    Promise(r"saw no key on one side", "a query without a key in B", lambda d: bool((np.isneginf(d["m_a"]) < np.isneginf(d["m_b"])).any())),
    Promise(r"split that held no visible key", "a split without a visible key", lambda d: _row(d["lses"].T[..., None], -np.inf)),
    Promise(r"even fill a target", "a target of padding alone", lambda d: bool((d["target"] == d["padding"]).all(axis=1).any())),
    Promise(r"Padding may stand anywhere", "padding in front", lambda d: bool(_row(d["target"][:, :1], d["padding"]))),
    Promise(r"at least one token is real", "a real token", lambda d: bool((d["target"] != d["padding"]).any()), always=True),
    Promise(r"the padding token's number", "padding that is not 0", lambda d: d["padding"] != 0),
    Promise(r"tiles in which no pair is visible", "a query that sees nothing", lambda d: d["q_offset"] < 0),
    Promise(r"A length may be 0", "a length of 0", lambda d: d["lengths"].min() == 0),
    # sizes
    Promise(r"Similarities are never negative", "no similarity below 0", lambda d: d["similarity"].min() >= 0, always=True),
    Promise(BOUNDS, "scores near the lower bound", lambda d, low, high: d.has_near(low)),
    Promise(BOUNDS, "scores near the upper bound", lambda d, low, high: d.has_near(high)),
    Promise(BOUNDS, "scores within these bounds", lambda d, low, high: d.largest <= high, always=True),
    Promise(BOUNDS, "a row of scores far down", lambda d, low, high: d.rows(lambda row: bool(row.max() < 0.5 * low))),
    Promise(r"[Ss]cores are (?:all )?moderate", "moderate scores", lambda d: d.largest < MODERATE, always=True),
    Promise(rf"[Ss]cores[^.,]* may be near {NUMBER}", "a row of such scores", lambda d, score: d.only_near(score)),
    Promise(rf"[Ll]og-sum-exps may be near {NUMBER}", "such log-sum-exps", lambda d, score: d.has_near(score)),
    Promise(rf"in one row, near {NUMBER} in the next", "a row of such scores", lambda d, score: d.only_near(score)),
    Promise(rf"Scores may lie near {NUMBER} for one query", "a row of such scores", lambda d, score: d.only_near(score)),
    Promise(rf"and near {NUMBER} for another", "a row of such scores", lambda d, score: d.only_near(score)),
    Promise(rf"may hold scores near {NUMBER} and near {NUMBER}", "a row of both", lambda d, one, two: d.spans(0.9 * two, 0.9 * one)),
    Promise(rf"or only scores near {NUMBER}", "a row of such scores", lambda d, score: d.only_near(score)),
    Promise(r"[Ss]cores may have any size and sign", "a row of scores below -1e9", lambda d: d.rows(lambda row: row.max() < -1e9)),
    Promise(r"[Ss]cores may have any size and sign", "a row of scores above 1e4", lambda d: d.rows(lambda row: row.min() > 1e4)),
    Promise(r"Scores may lie beyond a thousand on either side", "scores above 1000", lambda d: d.rows(lambda row: row.max() > 1000)),
    Promise(r"Scores may lie beyond a thousand on either side", "a row below -1000", lambda d: d.rows(lambda row: row.max() < -1000)),
    Promise(r"a thousand and more, of either sign", "scores of a thousand", lambda d: d.rows(lambda row: row.min() > 900)),
    Promise(r"a thousand and more, of either sign", "a row near minus a thousand", lambda d: d.rows(lambda row: row.max() < -900)),
    Promise(r"of either sign, also in one row only", "one row high and one low", lambda d: d.only_near(1000) and d.only_near(-1000)),
    Promise(r"also within one row", "a row that spans two thousand", lambda d: d.spans(-900, 900)),
    Promise(r"rows may lie thousands apart", "rows thousands apart", lambda d: bool(np.ptp(d.scores.max(axis=-1)) > 1900)),
    Promise(r"temperature may be in the thousands", "such a temperature", lambda d: d["temperature"] >= 1000),
    Promise(r"Logits may be near a thousand", "a row near a thousand", lambda d: d.only_near(1000)),
    Promise(r"or a thousand apart", "a row that spans a thousand", lambda d: d.rows(lambda row: np.ptp(row) > 900)),
    Promise(r"Maxima may lie hundreds apart", "A hundreds above B", lambda d: bool((_apart(d) > 300).any())),
    Promise(r"Maxima may lie hundreds apart", "B hundreds above A", lambda d: bool((_apart(d) < -300).any())),
    Promise(r"\*hidden\* score may be anything", "a hidden NaN", lambda d: bool(np.isnan(d["scores"][_spread(d)]).any())),
    Promise(r"\*hidden\* score may be anything", "a hidden infinity", lambda d: bool(np.isposinf(d["scores"][_spread(d)]).any())),
    Promise(r"any finite numbers", "padding far above all else", lambda d: _padding(d) > 1e10),
    Promise(rf"any finite numbers, even {NUMBER}", "padding of this size", lambda d, size: _padding(d) > 0.1 * size),
    Promise(rf"lengths may be tiny, about {NUMBER}", "vectors so short", lambda d, size: bool(0 < _norms(d["query"]).max() < 10 * size)),
    Promise(r"Keys need not have length 1", "a key shorter than 1", lambda d: bool((_norms(d["key"]) < 0.9).any())),
    Promise(r"Keys need not have length 1", "a key longer than 1", lambda d: bool((_norms(d["key"]) > 1.1).any())),
    Promise(r"all positive, some tiny", "tiny features", lambda d: d["key"].max() < 1e-5),
    Promise(r"all positive, some tiny", "positive features", lambda d: d["key"].min() > 0, always=True),
    Promise(r"features of any sign", "features of either sign", lambda d: d["key"].min() < 0 < d["key"].max()),
    Promise(r"entries above 0 and below 1", "gates between 0 and 1", lambda d: d["gate"].min() > 0 and d["gate"].max() < 1, always=True),
    Promise(r"entries above 0 and below 1", "a gate near 0", lambda d: d["gate"].min() < 0.01),
    Promise(r"entries above 0 and below 1", "a gate near 1", lambda d: d["gate"].max() > 0.99),
    # order, ties, places
    Promise(r"points `x` and `y`[^.]*in any order", "points out of order", lambda d: not _is_sorted(d["x"])),
    Promise(r"`positions` of shape[^.]*in any order", "positions out of order", lambda d: not _is_sorted(d["positions"])),
    Promise(
        r"`positions` of shape[^.]*in any order", "a position that comes twice", lambda d: len({*d["positions"]}) < len(d["positions"])
    ),
    Promise(r"Scores lie between[^.]*, in any order", "maxima that rise from block to block", lambda d: _runs_monotonic(d, 1)),
    Promise(r"Scores lie between[^.]*, in any order", "maxima that fall from block to block", lambda d: _runs_monotonic(d, -1)),
    Promise(r"A position may be negative", "a position before 0", lambda d: d["positions"].min() < 0),
    Promise(rf"negative, and up to {NUMBER} in size", "one so far after 0", lambda d, far: 0.9 * far < d["positions"].max() <= far),
    Promise(rf"negative, and up to {NUMBER} in size", "one so far before 0", lambda d, far: -far <= d["positions"].min() < -0.9 * far),
    Promise(r"also one at which a query stands", "a query that stands on a point", lambda d: bool(np.isin(d["query"], d["x"]).any())),
    Promise(r"several keys are exactly equally near", "a tie", lambda d: bool((_gaps(d) == 0).any())),
    Promise(r"may differ by only a millionth", "distances that nearly tie", lambda d: bool(((_gaps(d) > 0) & (_gaps(d) < 1e-5)).any())),
    Promise(r"which may be negative", "an offset before 0", lambda d: d["q_offset"] < 0),
    Promise(r"\(0: only the query's own\)", "a window of 0", lambda d: d["window"] == 0),
    Promise(r"stands at position \$i \+", "a past", lambda d: d["past"] > 0),
    Promise(r"stands at position \$i \+", "no past", lambda d: d["past"] == 0),
    Promise(r"it is not padding", "some keys that are padding", lambda d: 0 < d["length"] < d["scores"].shape[1]),
    Promise(r"it is not padding", "no real key", lambda d: d["length"] == 0),
    Promise(r"integers, possibly equal", "one token for start and end", lambda d: d["start"] == d["end"]),
    Promise(
        r"The step that chooses `end` is the last", "an end before the last row", lambda d: 1 < len(d.results[0]) < len(d["positions"])
    ),
    Promise(r"The step that chooses `end` is the last", "an end at step 0", lambda d: len(d.results[0]) == 1 < len(d["positions"])),
    Promise(r"without it there are as many steps", "no end", lambda d: d.results[0][-1].argmax() != d["end"]),
    *(Promise(r"seven layers", f"the layer of kind {kind}", partial(lambda kind, d: d["kind"] == kind, kind)) for kind in range(7)),
)


def _keys(d: Drawn) -> np.ndarray:
    return d["keys"] if "keys" in d else d["key"]


def _heads(d: Drawn) -> int:
    return d["w_query"].shape[1] // d["keys"].shape[2] if "keys" in d else len(d["query"])


def _least_length(d: Drawn) -> int:
    return int(min(d["source_lengths"].min(), d["target_lengths"].min()))


def _apart(d: Drawn) -> np.ndarray:
    seen = np.isfinite(d["m_a"]) & np.isfinite(d["m_b"])
    return d["m_a"][seen] - d["m_b"][seen]


def _spread(d: Drawn) -> np.ndarray:
    return np.broadcast_to(d.hidden, d["scores"].shape)


def _norms(vectors: np.ndarray) -> np.ndarray:
    return np.linalg.norm(vectors, axis=-1)


def told(text: str) -> list[tuple[Promise, re.Match[str]]]:
    """List what a text promises, each with the words that say it."""
    return [(promise, match) for promise in PROMISES if (match := re.search(promise.said, text))]


def untold(text: str) -> list[str]:
    """List the sentences of a text in which something may be so, and of which no promise is known."""
    read = [match.span(match.re.groups and 1) for _, match in told(text)]
    sentences = list(re.finditer(r"[^.:;]*(?:\.(?! )[^.:;]*)*", text))
    return [
        each[0].strip(" .") for each in sentences
        if MAY.search(each[0]) and not any(start < each.end() and each.start() < end for start, end in read)
    ]  # fmt: skip


def kept(promise: Promise, match: re.Match[str], drawn: Sequence[Drawn]) -> bool:
    """Whether cases keep a promise that their text makes in these words."""
    caught = [_number(group) for group in match.groups()]
    return (all if promise.always else any)(promise.holds(each, *caught) for each in drawn)


def lowest_score(text: str) -> float:
    """Return how low a visible score can be by what a text says of scores: minus infinity if it does not say."""
    said = [sentence for sentence in re.split(r"[.;:] ", text) if re.search(r"\bscores?\b", sentence, re.IGNORECASE)]
    if any("any size" in sentence for sentence in said):
        return -np.inf
    numbers = [_number(number) for sentence in said for number in re.findall(rf"(?:near|between|and) {NUMBER}", sentence)]
    moderate = [-MODERATE for sentence in said if "moderate" in sentence]
    return min([*(float(number) for number in numbers), *moderate], default=-np.inf)


def _number(caught: str) -> Any:
    """A number as texts write it, or the words as they are."""
    plain = caught.strip("$").replace(" ", "")
    if power := re.fullmatch(r"(-?)10\^\{(-?\d+)\}", plain):
        return float(f"{power[1]}1e{power[2]}")
    return 1000.0 if plain == "athousand" else float(plain) if re.fullmatch(r"-?\d+", plain) else caught

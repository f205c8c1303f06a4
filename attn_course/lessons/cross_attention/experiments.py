"""Lesson cross_attention: dates in words, translated to ISO dates by a network whose writer sees every row of its reader, or the last one.

Both are the network of the lesson; what its writer may see is all that differs. They are tested on dates that none was trained on.
"""

import re
from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from attn_course.experiments.core import Experiment

PADDING, START, END = "<pad>", "<start>", "<end>"
MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"]
WEEKDAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
_UNITS = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth"]
_TEENS = ["tenth", "eleventh", "twelfth", "thirteenth", "fourteenth", "fifteenth", "sixteenth", "seventeenth", "eighteenth", "nineteenth"]
ORDINALS = [*_UNITS, *_TEENS, "twentieth", *(f"twenty-{unit}" for unit in _UNITS), "thirtieth", "thirty-first"]
PHRASINGS = (
    "the {ordinal} of {month} {year}",
    "{month} the {ordinal}, {year}",
    "{day} {month} {year}",
    "{month} {day}, {year}",
    "{weekday}, the {ordinal} of {month} {year}",
    "{year}, {month} {day}",
)
FIRST, LAST = date(1900, 1, 1), date(2099, 12, 31)
HELD_OUT_SHARE = 0.2
TEST_EXAMPLES = 1000
EXAMPLE = date(1998, 5, 9)  # never trained on
SEES = ("every row", "the last row")
BATCH, STEPS, LEARNING_RATE = 128, 300, 0.01
LONGER = 1500  # steps


def phrase(day: date, phrasing: str) -> str:
    """Say a date in one of the `PHRASINGS`.

    >>> phrase(date(1998, 5, 9), PHRASINGS[4])
    'Saturday, the ninth of May 1998'
    """
    return phrasing.format(
        ordinal=ORDINALS[day.day - 1], month=MONTHS[day.month - 1], day=day.day, year=day.year, weekday=WEEKDAYS[day.weekday()]
    )


def pieces(text: str) -> list[str]:
    """Cut a text into words, single digits and signs; blanks vanish.

    >>> pieces("May the twenty-first, 1998")
    ['May', 'the', 'twenty', '-', 'first', ',', '1', '9', '9', '8']
    """
    return re.findall(r"[A-Za-z]+|[0-9]|[^\sA-Za-z0-9]", text)


_WORDS = sorted({piece for text in [*ORDINALS, *MONTHS, *WEEKDAYS, "the of ,"] for piece in pieces(text)})
PIECES = [PADDING, *"0123456789", *_WORDS]
SIGNS = [PADDING, START, END, *"0123456789-"]
_PIECE, _SIGN = ({token: index for index, token in enumerate(tokens)} for tokens in (PIECES, SIGNS))


def sources(texts: Sequence[str]) -> Tensor:
    """Return the pieces of each text as numbers, (batch, T_k), padded on the right with 0."""
    rows = [[_PIECE[piece] for piece in pieces(text)] for text in texts]
    longest = max(map(len, rows))
    return torch.tensor([row + [0] * (longest - len(row)) for row in rows])


def targets(days: Sequence[date]) -> Tensor:
    """Return the signs of ISO dates and the end token as numbers, (batch, 11)."""
    return torch.tensor([[_SIGN[sign] for sign in [*day.isoformat(), END]] for day in days])


def signs(row: Tensor) -> str:
    """Return what a row of numbers writes, up to its end.

    >>> signs(targets([date(1998, 5, 9)])[0])
    '1998-05-09'
    """
    return "".join(SIGNS[number] for number in row.tolist()).split(END)[0]


def split(rng: np.random.Generator) -> tuple[list[date], list[date]]:
    """Return the days from 1900 to 2099 in two parts: to train on, and a fifth of them to test on."""
    every = [FIRST + timedelta(days=n) for n in range((LAST - FIRST).days + 1)]
    held_out = rng.random(len(every)) < HELD_OUT_SHARE
    parts: tuple[list[date], list[date]] = ([], [])
    for day, out in zip(every, held_out, strict=True):
        parts[bool(out) or day == EXAMPLE].append(day)
    return parts


def batch(days: Sequence[date], size: int, rng: np.random.Generator) -> tuple[list[str], Tensor, Tensor]:
    """Draw days with repetition, each in a phrasing drawn for it, and return texts, sources and targets."""
    drawn = [days[n] for n in rng.integers(len(days), size=size)]
    texts = [phrase(day, PHRASINGS[n]) for day, n in zip(drawn, rng.integers(len(PHRASINGS), size=size), strict=True)]
    return texts, sources(texts), targets(drawn)


def roles(text: str) -> list[str]:
    """Return for each of the `pieces` of a text what it says: "year", "month", "day", or "rest".

    >>> roles("Saturday, the ninth of May 1998")
    ['rest', 'rest', 'rest', 'day', 'rest', 'month', 'year', 'year', 'year', 'year']
    """
    found = []
    for piece in re.findall(r"[A-Za-z]+|[0-9]+|[^\sA-Za-z0-9]", text):
        if piece.isdigit():
            found += ["year" if len(piece) == 4 else "day"] * len(piece)
        else:
            found.append("month" if piece in MONTHS else "day" if piece in _DAY_PIECES else "rest")
    return found


_DAY_PIECES = {piece for ordinal in ORDINALS for piece in pieces(ordinal)}
PARTS = {"year": slice(0, 4), "month": slice(5, 7), "day": slice(8, 10)}


def ask(x: Tensor, y: Tensor, w_query: Tensor, w_key: Tensor, w_value: Tensor, visible: Tensor) -> tuple[Tensor, Tensor]:
    """Return outputs and weights of targets x (batch, T_q, d_x) that ask sources y (batch, T_k, d_y), Eq. cross-attention.

    `visible` (batch, 1, T_k): 1 where a key may be seen, 0 where it is hidden.
    """
    scores = (x @ w_query) @ (y @ w_key).mT / w_key.shape[1] ** 0.5
    weights = scores.masked_fill(visible == 0, -torch.inf).softmax(dim=-1)
    return weights @ (y @ w_value), weights


class Translator(nn.Module):
    """The network of the lesson: two GRUs, left to right, and cross-attention from the writer's rows to the reader's."""

    def __init__(self, d_x: int = 32, d_y: int = 48, d_k: int = 24, d_embed: int = 16) -> None:
        super().__init__()
        self.source, self.target = nn.Embedding(len(PIECES), d_embed), nn.Embedding(len(SIGNS), d_embed)
        self.reader, self.writer = nn.GRU(d_embed, d_y, batch_first=True), nn.GRU(d_embed, d_x, batch_first=True)
        self.w_query, self.w_key, self.w_value = (
            nn.Parameter(torch.randn(rows, columns) / rows**0.5) for rows, columns in ((d_x, d_k), (d_y, d_k), (d_y, d_y))
        )
        self.output = nn.Linear(d_x + d_y, len(SIGNS))

    def forward(self, source: Tensor, written: Tensor, visible: Tensor) -> tuple[Tensor, Tensor]:
        """Return logits (batch, T_q, n_signs) and alignments (batch, T_q, T_k); `visible` (batch, 1, T_k): rows that the writer sees."""
        y, x = self.reader(self.source(source))[0], self.writer(self.target(written))[0]
        z, weights = ask(x, y, self.w_query, self.w_key, self.w_value, visible)
        return self.output(torch.cat([x, z], dim=-1)), weights


def seen(source: Tensor, sees: str = SEES[0]) -> Tensor:
    """Return 1 for each row that the writer may see, (batch, 1, T_k): those of real pieces, or the last of them."""
    real = source > 0
    return (real if sees == SEES[0] else real & (real.cumsum(dim=1) == real.sum(dim=1, keepdim=True)))[:, None].float()


def shifted(target: Tensor) -> Tensor:
    """Return the input of the writer in training: the start in front of the target, without its last sign."""
    return torch.cat([torch.full_like(target[:, :1], _SIGN[START]), target[:, :-1]], dim=1)


def train(sees: str, days: Sequence[date], seed: int, steps: int = STEPS) -> Translator:
    """Train a network; `seed`: of the first weights and of the batches, which are the same for both kinds."""
    rng = np.random.default_rng([seed, 0])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Translator()
    optimiser = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
    for _ in range(steps):
        _, source, target = batch(days, BATCH, rng)
        loss = cross_entropy(model(source, shifted(target), seen(source, sees))[0].flatten(0, 1), target.flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return model


@torch.no_grad()
def write(model: nn.Module, source: Tensor, visible: Tensor) -> tuple[Tensor, Tensor]:
    """Let a model write 11 signs, the likeliest each time; return them and the alignments, (batch, 11, T_k)."""
    written = torch.full((len(source), 1), _SIGN[START])
    for _ in range(len("1998-05-09") + 1):
        logits, weights = model(source, written, visible)
        written = torch.cat([written, logits[:, -1:].argmax(dim=-1)], dim=1)
    return written[:, 1:], weights


def parts_right(written: Tensor, target: Tensor) -> dict[str, float]:
    """Return the share of right years, months and days, and of dates without a wrong sign."""
    right = written == target
    shares = {part: right[:, where] for part, where in PARTS.items()} | {"all": right}
    return {part: round(float(each.all(dim=1).float().mean()), 3) for part, each in shares.items()}


def without(role: str, texts: Sequence[str], visible: Tensor) -> Tensor:
    """Return `visible` without the rows of the pieces that say something; they are read as before."""
    kept = visible.clone()
    for row, text in zip(kept[:, 0], texts, strict=True):
        row[: len(roles(text))] = torch.tensor([float(said != role) for said in roles(text)])
    return kept


EXCHANGED = {"row of the day": [1], "row of 'of'": [2], "both": [1, 2], "all later rows": [3, 4, 5, 6, 7]}


@torch.no_grad()
def exchanged(model: Translator, held_out: Sequence[date], rng: np.random.Generator) -> dict[str, dict[str, float]]:
    """Give the writer some of the reader's rows from a text with another day, and return the shares of days it writes: "own" and "other".

    All texts are like "the ninth of May 1998", with a day that is one piece, so the rows of a place say the same kind of thing.
    """
    short = [day for day in held_out if len(pieces(ORDINALS[day.day - 1])) == 1]
    days = [short[n] for n in rng.integers(len(short), size=TEST_EXAMPLES)]
    others = [short[n] for n in rng.integers(len(short), size=TEST_EXAMPLES)]
    days, others = map(list, zip(*(pair for pair in zip(days, others, strict=True) if pair[0].day != pair[1].day), strict=True))
    source, target, foreign = sources([phrase(day, PHRASINGS[0]) for day in days]), targets(days), targets(others)
    theirs = model.reader(model.source(sources([phrase(day, PHRASINGS[0]) for day in others])))[0]
    found = {}
    for name, places in EXCHANGED.items():
        mixed = model.reader(model.source(source))[0]
        mixed[:, places] = theirs[:, places]
        handle = model.reader.register_forward_hook(lambda _module, _inputs, read, rows=mixed: (rows, read[1]))
        written = write(model, source, seen(source))[0]
        handle.remove()
        found[name] = {"own": parts_right(written, target)["day"], "other": parts_right(written, foreign)["day"]}
    return found


def example(model: nn.Module) -> dict[str, Any]:
    """Return what a model writes for the `EXAMPLE`, and its alignment in percent, a line of text for each sign."""
    text = phrase(EXAMPLE, PHRASINGS[0])
    source = sources([text])
    written, weights = write(model, source, seen(source))
    rows = [" ".join(f"{100 * float(p):.0f}" for p in row) for row in weights[0][:10]]
    return {"text": text, "written": signs(written[0]), "rows": rows}


def alignment(example: dict[str, Any]) -> np.ndarray:
    """Return a stored alignment as shares (10, T_k), a row for each sign."""
    return np.array([row.split() for row in example["rows"]], dtype=float) / 100


def dates(seed: int, steps: int = STEPS, longer: int = LONGER) -> dict[str, Any]:
    """Train a network of each kind, and test it on dates that it has never seen; `seed`: of the split, the weights and the batches.

    Returns "right": parts and whole dates by what the writer sees, and for the last row after more steps; for the network that sees every
    row "hidden" (the same, while the rows of some pieces are hidden from the writer), "exchanged" and "example".
    """
    days, held_out = split(np.random.default_rng([seed, 1]))
    texts, source, target = batch(held_out, TEST_EXAMPLES, np.random.default_rng([seed, 2]))

    def right(model: nn.Module, visible: Tensor) -> dict[str, float]:
        return parts_right(write(model, source, visible)[0], target)

    model, last = train(SEES[0], days, seed, steps), seen(source, SEES[1])
    result = {"right": {SEES[0]: right(model, seen(source)), SEES[1]: right(train(SEES[1], days, seed, steps), last)}}
    if longer:
        result["right"][f"{SEES[1]}, {longer} steps"] = right(train(SEES[1], days, seed, longer), last)
    hidden = {role: right(model, without(role, texts, seen(source))) for role in ("month", "day", "rest")}
    swaps = exchanged(model, held_out, np.random.default_rng([seed, 3]))
    return {**result, "hidden": hidden, "exchanged": swaps, "example": example(model)}


def conclude(found: dict[str, Any]) -> dict[str, bool]:
    """Say what holds in every training."""
    right, hidden, exchanged = found["right"], found["hidden"], found["exchanged"]
    return {
        "every row: more than nine dates in ten": right[SEES[0]]["all"] > 0.9,
        "the last row: fewer than half of that": right[SEES[1]]["all"] < 0.5 * right[SEES[0]]["all"],
        "month hidden: as good as guessing": hidden["month"]["month"] < 0.12,
        "day hidden: some days are right all the same": hidden["day"]["day"] > 0.06,
        "the rest hidden: one day in ten is lost": hidden["rest"]["day"] < right[SEES[0]]["day"] - 0.1,
        "the rows of the day and of 'of' exchanged: the other day is written": exchanged["both"]["other"] > 0.95,
        "all later rows exchanged: the own day is written": exchanged["all later rows"]["own"] > 0.95,
        "5 reads May": bool(alignment(found["example"])[6].argmax() == 3),
    }


def quick(seed: int) -> dict[str, bool]:
    """Say after a quarter of the steps whether more is right where the writer sees every row."""
    right = dates(seed, STEPS // 4, longer=0)["right"]
    return {f"more {part}s are right": right[SEES[0]][part] > right[SEES[1]][part] for part in ("year", "month")}


DATES = Experiment("results/dates.json", dates, conclude, quick)
EXPERIMENTS = [DATES]

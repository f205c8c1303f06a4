"""Lesson cross_attention: dates in words, translated to ISO dates by encoder-decoders with and without attention.

Three translators: a recurrent one with additive attention, the same with a fixed vector in its place, and one without recurrence
(self-attention on both sides, cross-attention between them). They are tested on dates, and on years, that none was trained on.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attn_course.experiments.core import Experiment
from attn_course.experiments.training import descend
from attn_course.modules.encoder_decoder import EncoderDecoder
from attn_course.modules.sequence_to_sequence import SequenceToSequence
from attn_course.modules.translator import Translator

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
TARGET_LENGTH = len("1998-05-09") + 1  # and the end token
HELD_OUT_YEARS = 20
HELD_OUT_SHARE = 0.2
TEST_EXAMPLES = 1000
KINDS = ("additive", "no recurrence", "fixed vector")
EXAMPLES = (  # one for each phrasing; never trained on
    date(1998, 5, 9),
    date(2021, 3, 31),
    date(1905, 12, 24),
    date(2076, 8, 2),
    date(1952, 10, 21),
    date(1939, 6, 13),
)
D_EMBED, D_STATE = 16, 48  # of the recurrent ones
D_MODEL, N_HEADS = 64, 2  # of the one without
BATCH = 128
STEPS = 300
LEARNING_RATE = 6e-3  # at its highest, after a tenth of the steps


def phrase(day: date, phrasing: str) -> str:
    """Say a date in one of the `PHRASINGS`.

    `phrasing`: a pattern with some of {ordinal}, {month}, {day}, {year}, {weekday}.

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
SOURCE_TOKENS = [PADDING, *"0123456789", *_WORDS]
TARGET_TOKENS = [PADDING, START, END, *"0123456789-"]
_SOURCE_INDEX = {token: index for index, token in enumerate(SOURCE_TOKENS)}
_TARGET_INDEX = {token: index for index, token in enumerate(TARGET_TOKENS)}


def encode_sources(texts: list[str]) -> Tensor:
    """Return token numbers of sources, (batch, source_len), padded on the right."""
    rows = [[_SOURCE_INDEX[piece] for piece in pieces(text)] for text in texts]
    longest = max(map(len, rows))
    return torch.tensor([row + [0] * (longest - len(row)) for row in rows])


def encode_targets(days: list[date]) -> Tensor:
    """Return token numbers of ISO dates and the end token, (batch, 11)."""
    return torch.tensor([[_TARGET_INDEX[sign] for sign in [*day.isoformat(), END]] for day in days])


@dataclass(frozen=True)
class Dates:
    """The dates of one seed in three parts that share none: to train on, held out one by one, and whole years held out."""

    train: list[date]
    new_dates: list[date]
    new_years: list[date]


def split(rng: np.random.Generator) -> Dates:
    """Split all dates from 1900 to 2099.

    `rng`: chooses 20 of the 200 years, and a fifth of the dates of the others. `new_years` holds all dates of the chosen years.
    """
    every = [FIRST + timedelta(days=n) for n in range((LAST - FIRST).days + 1)]
    years = set(rng.choice(np.arange(FIRST.year, LAST.year + 1), HELD_OUT_YEARS, replace=False).tolist())
    held_out = rng.random(len(every)) < HELD_OUT_SHARE
    known = [(day, bool(out) or day in EXAMPLES) for day, out in zip(every, held_out, strict=True) if day.year not in years]
    return Dates(
        train=[day for day, out in known if not out],
        new_dates=[day for day, out in known if out],
        new_years=[day for day in every if day.year in years],
    )


def batch(days: list[date], size: int, rng: np.random.Generator) -> tuple[list[str], list[date]]:
    """Draw dates, each in a phrasing drawn for it.

    `days`: where to draw from, with repetition.
    """
    drawn = [days[n] for n in rng.integers(len(days), size=size)]
    return [phrase(day, PHRASINGS[n]) for day, n in zip(drawn, rng.integers(len(PHRASINGS), size=size), strict=True)], drawn


def roles(text: str) -> list[str]:
    """Return for each of the `pieces` of a text what it says: "year 1" to "year 4", "month", "day", or "rest".

    >>> roles("Saturday, the ninth of May 1998")
    ['rest', 'rest', 'rest', 'day', 'rest', 'month', 'year 1', 'year 2', 'year 3', 'year 4']
    """
    found = []
    for piece in re.findall(r"[A-Za-z]+|[0-9]+|[^\sA-Za-z0-9]", text):
        if piece.isdigit():
            found += [f"year {n}" for n in range(1, 5)] if len(piece) == 4 else ["day"] * len(piece)
        else:
            found.append("month" if piece in MONTHS else "day" if piece in _DAY_PIECES else "rest")
    return found


_DAY_PIECES = {piece for ordinal in ORDINALS for piece in pieces(ordinal)}
WANTED_ROLES = ["year 1", "year 2", "year 3", "year 4", "", "month", "month", "", "day", "day"]  # of each sign of 1998-05-09
PARTS = {"year": slice(0, 4), "month": slice(5, 7), "day": slice(8, 10)}


def new_translator(kind: str, seed: int) -> Translator:
    """Return an untrained model.

    `kind`: one of `KINDS`. `seed`: of the first weights. Its weights are float32.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        sizes = len(SOURCE_TOKENS), len(TARGET_TOKENS)
        if kind == "no recurrence":
            return SequenceToSequence(*sizes, d_model=D_MODEL, n_heads=N_HEADS)
        return EncoderDecoder(*sizes, attention="additive" if kind == "additive" else None, d_embed=D_EMBED, d_state=D_STATE)


def train(kind: str, days: list[date], seed: int, steps: int = STEPS) -> Translator:
    """Train a model on dates.

    `kind`: one of `KINDS`. `days`: the dates to train on. `seed`: of the first weights and of the batches, which are the same for
    all kinds. `steps`: batches to learn from.
    """
    model, rng = new_translator(kind, seed), np.random.default_rng(seed)
    optimiser = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, LEARNING_RATE, total_steps=steps, pct_start=0.1)

    def loss() -> Tensor:
        texts, drawn = batch(days, BATCH, rng)
        return model.loss(encode_sources(texts), encode_targets(drawn))

    descend(optimiser, loss, steps, schedule=schedule, longest=1.0)
    return model


def written(model: Translator, texts: list[str], hide: str | None = None) -> tuple[Tensor, list[Tensor]]:
    """Let a model write the translations, token by token.

    `hide`: a role whose pieces the decoder may not attend to; they are encoded as before. For an `EncoderDecoder` only. Returns
    `tokens` (n_texts, 11): what was written; `alignments`, each (n_texts, 11, source_len): one for each head; none for a model
    without attention.
    """
    source = encode_sources(texts)
    with torch.no_grad():
        encoded = model.encode(source)
    if hide is not None:
        for row, text in zip(encoded.mask[:, 0], texts, strict=True):
            row[: len(roles(text))] = torch.tensor([role != hide for role in roles(text)])
    tokens, alignments = model.greedy(source, TARGET_LENGTH, encoded=encoded)
    if alignments is None:
        return tokens, []
    return tokens, list(alignments.unbind(dim=1)) if alignments.ndim == 4 else [alignments]


def exact(model: Translator, days: list[date], rng: np.random.Generator) -> float:
    """Return the share of fresh sentences that a model translates without a single wrong sign."""
    texts, drawn = batch(days, TEST_EXAMPLES, rng)
    tokens, _ = written(model, texts)
    return round(float((tokens == encode_targets(drawn)).all(dim=1).float().mean()), 4)


def shares_read(model: Translator, days: list[date], rng: np.random.Generator) -> list[dict[str, float]]:
    """Return for each head how much weight lies on the pieces that say what is being written, by part of the date."""
    texts, _ = batch(days, TEST_EXAMPLES, rng)
    _, heads = written(model, texts)
    said = [roles(text) for text in texts]
    longest = max(map(len, said))
    wanted = torch.zeros(len(texts), len(WANTED_ROLES), longest)
    for n, names in enumerate(said):
        for i, j in np.ndindex(len(WANTED_ROLES), len(names)):
            wanted[n, i, j] = names[j] == WANTED_ROLES[i]
    on_wanted = [(head[:, : len(WANTED_ROLES)] * wanted).sum(dim=-1).mean(dim=0) for head in heads]
    return [{part: round(float(share[where].mean()), 3) for part, where in PARTS.items()} for share in on_wanted]


def parts_right(tokens: Tensor, days: list[date]) -> dict[str, float]:
    """Return the share of right years, months and days."""
    right = tokens == encode_targets(days)
    return {part: round(float(right[:, where].all(dim=1).float().mean()), 4) for part, where in PARTS.items()}


def examples(model: Translator) -> list[dict[str, Any]]:
    """Return what a model writes for the `EXAMPLES`, and its alignments in percent, one line of text for each sign written."""
    found = []
    for day, phrasing in zip(EXAMPLES, PHRASINGS, strict=True):
        text = phrase(day, phrasing)
        tokens, heads = written(model, [text])
        signs = [TARGET_TOKENS[int(token)] for token in tokens[0][: TARGET_LENGTH - 1]]
        rows = [[" ".join(f"{100 * float(p):.0f}" for p in row) for row in head[0][: TARGET_LENGTH - 1]] for head in heads]
        found.append({"text": text, "written": "".join(signs), "heads": rows})
    return found


def alignment(example: dict[str, Any], head: int = 0) -> np.ndarray:
    """Return a stored alignment as shares.

    `example`: one of the results of `examples`. `head`: which head of the model. Returns `weights` (10, n_pieces): a row for each
    sign written, rounded to percent.
    """
    return np.array([[int(percent) for percent in row.split()] for row in example["heads"][head]]) / 100


def dates(seed: int, kinds: Sequence[str] = KINDS, steps: int = STEPS) -> dict[str, Any]:
    """Train a model of each kind, and test it on dates and years that it has never seen.

    `seed`: of the split, the first weights and the batches. Returns by kind: "new dates" and "new years" (shares of exact
    translations), "parts" (right years, months and days among the new dates); by kind with attention: "read" (weight on the right
    pieces, for each head) and "examples"; for the additive model "month hidden": how many months it writes right while it may not
    attend to the month.
    """
    parts = split(np.random.default_rng(seed))
    texts, drawn = batch(parts.new_dates, TEST_EXAMPLES, np.random.default_rng([seed, 1]))
    result: dict[str, Any] = {name: {} for name in ("new dates", "new years", "parts", "read", "examples", "parameters")}
    for kind in kinds:
        model = train(kind, parts.train, seed, steps)
        result["parameters"][kind] = sum(weight.numel() for weight in model.parameters())
        result["new dates"][kind] = exact(model, parts.new_dates, np.random.default_rng([seed, 2]))
        result["new years"][kind] = exact(model, parts.new_years, np.random.default_rng([seed, 3]))
        result["parts"][kind] = parts_right(written(model, texts)[0], drawn)
        if kind == "additive":
            result["month hidden"] = parts_right(written(model, texts, hide="month")[0], drawn)["month"]
        if kind != "fixed vector":
            result["read"][kind] = shares_read(model, parts.new_dates, np.random.default_rng([seed, 4]))
            result["examples"][kind] = examples(model)
    return result


def conclude(result: dict[str, Any]) -> dict[str, Any]:
    """Return which models translate at least 98 of 100 unseen dates without a mistake, and what the fixed vector costs."""
    new_dates = result["new dates"]
    return {
        "98 % of new dates right": sorted(kind for kind in KINDS if new_dates[kind] >= 0.98),
        "95 % right in new years": sorted(kind for kind in KINDS if result["new years"][kind] >= 0.95),
        "last": min(KINDS, key=new_dates.__getitem__),
    }


def quick(seed: int) -> dict[str, bool]:
    """Say after a quarter of the steps whether attention is ahead of a fixed vector, and has begun to read what it writes."""
    found = dates(seed, ("additive", "fixed vector"), STEPS // 4)
    parts, (read,) = found["parts"], found["read"]["additive"]
    return {
        "with attention more years are right": parts["additive"]["year"] > parts["fixed vector"]["year"],
        "with attention more days are right": parts["additive"]["day"] > parts["fixed vector"]["day"],
        "the digits of the year get more than their share of weight": read["year"] > 0.2,
    }


DATES = Experiment("results/dates.json", dates, conclude, quick)
EXPERIMENTS = [DATES]

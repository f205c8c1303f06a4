r"""The machine of "Break the machine": what each of its parts is, as a formula, and the wrong forms that its twins carry.

A formula is read by `attn_course.formulas`. Most are the registry's own, right or wrong; the others stand here, as LaTeX. A formula speaks
of one head, or of one head and one query (its `loops`); there `s` is the matrix of that head, or the row of that query. Letters count
from 1, heads from 0 where a formula says `h`, as in Eq. grouped-query-attention.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from attn_course.equations.core import REGISTRY

HEAD, ROW = ("head",), ("head", "query")


@dataclass(frozen=True)
class Rule:
    """How a part is computed: a formula, of which the side behind `symbol` counts (or the last one of the first claim).

    `loops` are the axes it is evaluated along one by one, `letters` its indices for the axes behind them; `symbols` says which part or
    input a symbol stands for, where that is not the usual one.
    """

    latex: str
    symbol: str = ""
    letters: str = ""
    loops: tuple[str, ...] = HEAD
    symbols: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Part:
    """One array of the machine, from X to the output."""

    name: str
    title: str
    role: str
    axes: tuple[str, ...]
    rule: Rule
    label: str = ""


@dataclass(frozen=True)
class Twin:
    """A machine with a mistake: other rules for one part or two, or another update of what the keys before have summed up."""

    id: str
    title: str
    label: str
    rules: Mapping[str, Rule] = field(default_factory=dict)
    update: str = ""


def right(label: str) -> str:
    """Return the LaTeX of an equation."""
    return REGISTRY.get_equation(label).latex


def wrong(label: str, name: str) -> str:
    """Return a wrong form of an equation; StopIteration if it has none of that name."""
    return next(form.latex for form in REGISTRY.get_equation(label).wrongs if form.name == name)


def changed(label: str, old: str, new: str) -> str:
    """Return the LaTeX of an equation in which something else stands."""
    latex = right(label)
    if old not in latex:
        raise ValueError(f"{old} does not stand in Eq. {label}: {latex}")
    return latex.replace(old, new)


def _shared(letter: str, grouped: str) -> Rule:
    """Return the keys or values of a head: those of key head r, as a form of Eq. grouped-query-attention says."""
    which = grouped.partition(r"\qquad ")[2]
    return Rule(rf"{letter}_h = X\, W_{letter}^{{(r)}}, \qquad {which}", letter)


GROUPED = right("grouped-query-attention")
WEIGHTS = r"p_{ij} = \begin{cases} 0 & m_i = -\infty \\ \frac{e^{b_{ij} - m_i}}{\sum_l e^{b_{il} - m_i}} & m_i > -\infty \end{cases}"
SCORES = {"s": "B"}  # what a softmax without a mask of its own is taken of: the masked scores
PARTS = (
    Part("Q", "queries", "query", ("head", "query", "feature"), Rule(r"Q_h = X\, W_Q^{(h)}", "Q"), "heads-are-column-blocks"),
    Part("K", "keys", "key", ("head", "key", "feature"), _shared("K", GROUPED), "grouped-query-attention"),
    Part("V", "values", "value", ("head", "key", "feature"), _shared("V", GROUPED), "grouped-query-attention"),
    Part("S", "scores", "scores", ("head", "query", "key"), Rule(right("scaled-score"), "s", "i j"), "scaled-score"),
    Part("A", "who may look at whom", "neutral", ("query", "key"), Rule(right("causal-mask"), "A", "i", (), {"p": "ahead"}), "causal-mask"),
    Part(
        "M",
        "mask",
        "neutral",
        ("query", "key"),
        Rule(right("masked-exponential-is-zero"), "M", "j", ("query",)),
        "masked-exponential-is-zero",
    ),
    Part("B", "masked scores", "scores", ("head", "query", "key"), Rule(r"b_{ij} = s_{ij} + M_{ij}", "b", "i j"), "masked-attention"),
    Part("m", "largest score", "scores", ("head", "query"), Rule(r"m_i = \max_j b_{ij}", "m", "i"), "reference-score-cancels"),
    Part("P", "weights", "weights", ("head", "query", "key"), Rule(WEIGHTS, "p", "i j"), "attention-weights"),
    Part(
        "Z", "what each head found", "value", ("head", "query", "feature"), Rule(right("output-of-a-query"), "z", "i"), "output-of-a-query"
    ),
    Part(
        "O",
        "all heads together",
        "output",
        ("query", "feature"),
        Rule(right("output-projection-sums-heads"), loops=()),
        "output-projection-sums-heads",
    ),
    Part("Y", "output", "output", ("query", "feature"), Rule(r"Y = X + O", "Y", loops=()), "residual-stream"),
)
UPDATE = right("tiled-attention-update")

AFTER_SOFTMAX = wrong("masking-renormalises-weights", "the mask after the softmax, not renormalised")
TILED = wrong("grouped-query-attention", "r = h mod H_kv: heads tiled instead of repeated")
RESHAPED = (
    r"q_{ia} = \sum_u x_{n u} (W_Q)_{u c}, \qquad n = \lfloor f / (H d_k) \rfloor + 1, \quad c = f - H d_k (n - 1) + 1,"
    r" \quad f = (h T + i - 1) d_k + a - 1"
)
TWINS = (
    Twin(
        "softmax-over-queries",
        "the softmax runs over the queries",
        "attention-weights",
        {"P": Rule(wrong("attention-weights", "normalised over the queries"), "p", "i j", symbols=SCORES)},
    ),
    Twin("no-scale", "the scores are not scaled", "scaled-score", {"S": Rule(wrong("scaled-score", "the scale only once"), "s", "i j")}),
)

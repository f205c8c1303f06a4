r"""The machine of "Break the machine": what each of its parts is, as a formula, and the wrong forms that its twins carry.

A formula is read by `attn_course.formulas`. Most are the registry's own, right or wrong; the others stand here, as LaTeX. A formula speaks
of one head, or of one head and one query (its `loops`); there `s` is the matrix of that head, or the row of that query. Letters count
from 1, heads from 0 where a formula says `h`, as in Eq. grouped-query-attention.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from attn_course.equations.core import REGISTRY

HEAD, ROW = ("head",), ("head", "query")


@dataclass(frozen=True, eq=False)
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
    label: str
    left: str = ""  # of its formula, where that has another one


@dataclass(frozen=True)
class Twin:
    """A machine with a mistake: other rules for one part or two, or another update of what the keys before have summed up."""

    id: str
    title: str
    label: str
    rules: Mapping[str, Rule] = field(default_factory=dict)
    update: Mapping[str, Rule] = field(default_factory=dict)  # of an output that is summed up key by key
    beside: Rule | None = None  # what the machine computes, written as the twin's formula is, where its own is written another way
    tested: str = "Z"  # what its test compares: Z of one call of attention, or O of all heads


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


def _mask(name: str) -> Rule:
    """Return who may look at whom, as a wrong form of Eq. causal-mask says, or "" as it says itself."""
    return Rule(wrong("causal-mask", name) if name else right("causal-mask"), "A", "i", (), {"p": "ahead"})


GROUPED = right("grouped-query-attention")
WEIGHTS = r"p_{ij} = \begin{cases} 0 & m_i = -\infty \\ \frac{e^{b_{ij} - m_i}}{\sum_l e^{b_{il} - m_i}} & m_i > -\infty \end{cases}"
PARTS = (
    Part("Q", "queries", "query", ("head", "query", "feature"), Rule(r"Q_h = X\, W_Q^{(h)}", "Q"), "heads-are-column-blocks"),
    Part("K", "keys", "key", ("head", "key", "feature"), _shared("K", GROUPED), "grouped-query-attention"),
    Part("V", "values", "value", ("head", "key", "feature"), _shared("V", GROUPED), "grouped-query-attention"),
    Part("S", "scores", "scores", ("head", "query", "key"), Rule(right("scaled-score"), "s", "i j"), "scaled-score"),
    Part("A", "who may look at whom", "neutral", ("query", "key"), _mask(""), "causal-mask"),
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
    Part("P", "weights", "weights", ("head", "query", "key"), Rule(WEIGHTS, "p", "i j"), "attention-weights", "p_j"),
    Part("Z", "found", "value", ("head", "query", "feature"), Rule(right("output-of-a-query"), "z", "i"), "output-of-a-query"),
    Part(
        "O",
        "joined heads",
        "output",
        ("query", "feature"),
        Rule(right("output-projection-sums-heads"), loops=()),
        "output-projection-sums-heads",
        "O",
    ),
    Part("Y", "output", "output", ("query", "feature"), Rule(r"Y = X + O", "Y", loops=()), "residual-stream"),
)
OLD = {"m": "old.m", r"\ell": "old.l", "a": "old.a", "m'": "m", r"\ell'": "l", "a'": "a", "s": "s", "v": "v"}
DONE = Rule(right("row-lse-and-output"), "z", loops=(), symbols={"a": "a", r"\ell": "l", "L": "lse"})


def updates(latex: str) -> dict[str, Rule]:
    """Return how the largest score, the sum and the accumulator of one query go on with a block of keys, Eq. tiled-attention-update."""
    return {name: Rule(latex, symbol, "i", (), OLD) for name, symbol in (("m", "m'"), ("l", r"\ell'"), ("a", "a'"))}


UPDATE = updates(right("tiled-attention-update"))

COLUMNS = r"p_{ij} = \sigma_l(b_{lj})_i"  # with the maximum subtracted, as the machine does: one mistake is enough
FILLED = r"p_{ij} = \sigma_l(s_{il} - 10000\,[\,l \notin A_i\,])_j"
RESHAPED = (
    r"q_{ia} = \sum_u x_{n u} (W_Q)_{u c}, \qquad n = \lfloor (h T + i - 1) / H \rfloor + 1,"
    r" \quad c = (h T + i - 1 - H (n - 1)) d_k + a"
)
TILED = wrong("grouped-query-attention", "r = h mod H_kv: heads tiled instead of repeated")


def _of_weights(latex: str, symbol: str = "p", letters: str = "i j", loops: tuple[str, ...] = HEAD, **symbols: str) -> dict[str, Rule]:
    return {"P": Rule(latex, symbol, letters, loops, symbols)}


def _of_scores(latex: str) -> dict[str, Rule]:
    return {"S": Rule(latex, "s", "i j")}


TWINS = (
    Twin(
        "softmax-over-queries",
        "the softmax runs over the queries",
        "attention-weights",
        _of_weights(COLUMNS),
        beside=Rule(r"p_{ij} = \sigma_l(b_{il})_j", "p", "i j"),
    ),
    Twin("no-scale", "the scores are not scaled", "scaled-score", _of_scores(wrong("scaled-score", "the scale only once"))),
    Twin(
        "scaled-by-length",
        "the scores are divided by d_k, not by its square root",
        "scaled-score",
        _of_scores(changed("scaled-score", r"\sqrt{d_k}", "d_k")),
    ),
    Twin(
        "scaled-by-width",
        "the scale is that of all heads together",
        "scaled-score",
        _of_scores(changed("scaled-score", r"\sqrt{d_k}", r"\sqrt{H d_k}")),
        tested="O",
    ),
    Twin(
        "keys-ask",
        "the keys ask and the queries answer: the scores are transposed",
        "scaled-score",
        _of_scores(wrong("scaled-score", "row i of the scores belongs to key i")),
    ),
    Twin("past-hidden", "the mask is transposed", "causal-mask", {"A": _mask("transposed: the past is hidden")}),
    Twin("self-hidden", "the mask hides the token itself", "causal-mask", {"A": _mask("off by one: the token itself is hidden")}),
    Twin(
        "mask-after-softmax",
        "the mask comes after the softmax",
        "masking-renormalises-weights",
        _of_weights(wrong("masking-renormalises-weights", "the mask after the softmax, not renormalised"), "", "j", ROW),
        beside=Rule(r"p_j = \sigma(s + M)_j", "", "j", ROW),
    ),
    Twin(
        "multiplied-mask",
        "the scores are multiplied by a mask of zeros and ones",
        "minus-infinity-removes-key",
        _of_weights(wrong("minus-infinity-removes-key", "the score is multiplied by zero"), "", "j", ROW, a="S"),
    ),
    Twin(
        "finite-fill",
        "a hidden score is made smaller by 10000, not by infinity",
        "finite-fill-leaks",
        _of_weights(FILLED),
        beside=Rule(r"p_{ij} = \sigma_l(s_{il} + M_{il})_j", "p", "i j"),
    ),
    Twin(
        "maximum-kept",
        "the largest score is not subtracted",
        "reference-score-cancels",
        _of_weights(right("attention-weights"), s="B"),
    ),
    Twin(
        "weights-transposed",
        "the output takes the column of its query, not the row",
        "output-of-a-query",
        {"Z": Rule(wrong("output-of-a-query", "p_ij read as the weight of input i in output j"), "z", "i")},
    ),
    Twin(
        "accumulator-kept",
        "what was added up before is not rescaled when a larger score comes",
        "tiled-attention-update",
        update=updates(wrong("tiled-attention-update", "the missing rescale")),
    ),
    Twin(
        "heads-tiled",
        "four heads use the key heads 0, 1, 0, 1 instead of 0, 0, 1, 1",
        "grouped-query-attention",
        {"K": _shared("K", TILED), "V": _shared("V", TILED)},
        tested="O",
    ),
    Twin(
        "heads-reshaped",
        "the queries are reshaped into heads without a transposition",
        "heads-are-column-blocks",
        {"Q": Rule(RESHAPED, "q", "i a")},
        beside=Rule(r"q_{ia} = \sum_u x_{i u} (W_Q)_{u c}, \qquad c = h d_k + a", "q", "i a"),
        tested="O",
    ),
    Twin(
        "one-block-of-outputs",
        "every head writes with the rows of the first",
        "output-projection-sums-heads",
        {"O": Rule(wrong("output-projection-sums-heads", "the same rows of W_O for every head"), loops=())},
        tested="O",
    ),
)

"""Multi-head attention: splitting, sums of maps, ranks, costs."""

import functools

import numpy as np

from attn_course.equations.core import Givens, equation
from attn_course.equations.counting import multiplications
from attn_course.equations.drawing import narrow_factors
from attn_course.formulas import function, matrices
from attn_course.reference import attention, multi_head_attention, softmax, split_heads


def _weights(rng: np.random.Generator, d: int, H: int, d_k: int, d_v: int) -> list[np.ndarray]:
    """Draw W_Q, W_K, W_V and W_O, with the heads side by side."""
    return [rng.normal(size=shape) for shape in ((d, H * d_k), (d, H * d_k), (d, H * d_v), (H * d_v, d))]


def _heads(X: np.ndarray, W_Q: np.ndarray, W_K: np.ndarray, W_V: np.ndarray, H: int) -> tuple[np.ndarray, np.ndarray]:
    """Return Z_h and P_h of each head."""
    output, weights = attention(*(split_heads(X @ W, H) for W in (W_Q, W_K, W_V)), return_weights=True)
    return output, weights


# ---- split and attend
@equation(
    "heads-are-column-blocks",
    r"\mathrm{split}(X W_Q)_h = X\, W_Q^{(h)}, \qquad W_Q = \bigl[\, W_Q^{(1)} \cdots W_Q^{(H)} \,\bigr]",
    topics=["H1", "H4"],
    assumes=["W_Q^(h) = columns (h - 1) d_k + 1 to h d_k of W_Q"],
    wrong={
        "every head reads the first block": "(h) -> (1)",
        "the heads in reverse order": "(h) -> (H + 1 - h)",
        "the input is split before it is projected": "(X W_Q)_h -> (X)_h W_Q^{(h)}",
    },
)
def splitting_is_taking_column_blocks(rng: np.random.Generator, T: int, d: int, H: int, d_k: int) -> Givens:
    """A column of the product reads one column of W_Q: to split Q, K, V and to give each head its own matrices is the same."""
    X, W_Q = rng.normal(size=(T, d)), rng.normal(size=(d, H * d_k))
    split = function(lambda Q: split_heads(Q, H))
    return {r"\mathrm{split}": split, "X": X, "W_Q": W_Q, "W_Q^{(h)}": matrices(np.hsplit(W_Q, H)), "H": H}


@equation(
    "attention-of-one-head",
    r"Z_h = P_h\, X W_V^{(h)}, \qquad P_h = \mathrm{softmax}\Bigl(\frac{X W_Q^{(h)} \bigl(X W_K^{(h)}\bigr)^\top}{\sqrt{d_k}}\Bigr)",
    topics=["H1"],
    uses=["batched-attention", "heads-are-column-blocks"],
    assumes=["d_k = width of one head"],
    wrong={
        "divided by d_k": r"\sqrt{d_k} -> d_k",
        "one map for all heads": "= P_h -> = P_1",
        "queries and keys exchanged": r"W_Q^{(h)} \bigl(X W_K^{(h)}\bigr)^\top -> W_K^{(h)} \bigl(X W_Q^{(h)}\bigr)^\top",
    },
)
def one_head(rng: np.random.Generator, T: int, d: int, H: int, d_k: int, d_v: int) -> Givens:
    """Attention as before on the columns of one head; its vectors have d_k entries, so that is what the scale must undo."""
    X, (W_Q, W_K, W_V, _) = rng.normal(size=(T, d)), _weights(rng, d, H, d_k, d_v)
    blocks = {f"W_{name}^{{(h)}}": matrices(np.hsplit(W, H)) for name, W in (("Q", W_Q), ("K", W_K), ("V", W_V))}
    return {"X": X, "Z": matrices(_heads(X, W_Q, W_K, W_V, H)[0]), "d_k": d_k, **blocks}


# ---- merge and project
@equation(
    "multi-head-attention",
    r"\mathrm{MultiHead}(X) = \bigl[\, Z_1 \cdots Z_H \,\bigr]\, W_O, \qquad W_O \in \mathbb{R}^{(H d_v) \times d}",
    topics=["H1", "H2"],
    uses=["attention-of-one-head"],
    wrong={
        "W_O transposed": r"(H d_v) \times d -> d \times (H d_v)",
        "divided by the number of heads": r"\bigl[\, Z_1 \cdots Z_H \,\bigr] -> \frac{1}{H} \bigl[\, Z_1 \cdots Z_H \,\bigr]",
        "the input added": r"\bigl[\, Z_1 \cdots Z_H \,\bigr] -> X + \bigl[\, Z_1 \cdots Z_H \,\bigr]",
    },
)
def concatenate_and_project(rng: np.random.Generator, T: int, d: int, H: int, d_k: int, d_v: int) -> Givens:
    """The heads' outputs stand side by side, and one more matrix mixes them."""
    X, W = rng.normal(size=(T, d)), _weights(rng, d, H, d_k, d_v)
    columns = [np.hsplit(each, H) for each in W[:3]]
    Z = [attention(X @ W_Q, X @ W_K, X @ W_V) for W_Q, W_K, W_V in zip(*columns, strict=True)]
    layer = function(lambda X: multi_head_attention(X, X, *W, n_heads=H))
    return {r"\mathrm{MultiHead}": layer, "X": X, "Z": matrices(Z), "W_O": W[3], "H": H, "d_v": d_v, "d": d}


@equation(
    "output-projection-sums-heads",
    r"\bigl[\, Z_1 \cdots Z_H \,\bigr]\, W_O = \sum_{h=1}^{H} Z_h\, W_O^{(h)}",
    topics=["H2"],
    uses=["multi-head-attention"],
    assumes=["W_O^(h) = rows (h - 1) d_v + 1 to h d_v of W_O"],
    wrong={
        "the same rows of W_O for every head": r"\bigl[\, Z_1 \cdots Z_H \,\bigr]\, W_O = \sum_{h=1}^{H} Z_h\, W_O^{(1)}",
        "the rows of W_O in reverse order": r"\bigl[\, Z_1 \cdots Z_H \,\bigr]\, W_O = \sum_{h=1}^{H} Z_h\, W_O^{(H + 1 - h)}",
        "the mean of the heads": r"\bigl[\, Z_1 \cdots Z_H \,\bigr]\, W_O = \frac{1}{H} \sum_{h=1}^{H} Z_h\, W_O^{(h)}",
    },
)
def sum_over_heads(rng: np.random.Generator, T: int, d: int, H: int, d_v: int) -> Givens:
    """A product of blocks: each head owns the rows of W_O that its columns meet."""
    Z, W_O = rng.normal(size=(H, T, d_v)), rng.normal(size=(H * d_v, d))
    return {"Z": matrices(Z), "W_O": W_O, "W_O^{(h)}": matrices(np.vsplit(W_O, H)), "H": H}


@equation(
    "sum-of-head-maps",
    r"\sum_{h=1}^{H} Z_h\, W_O^{(h)} = \sum_{h=1}^{H} P_h\, X\, \bigl(W_V^{(h)} W_O^{(h)}\bigr)",
    topics=["H2"],
    uses=["attention-of-one-head", "output-projection-sums-heads"],
    wrong={
        "one map for all: the mean of the P_h": r"P_h\, X -> \Bigl(\frac{1}{H} \sum_{r=1}^{H} P_r\Bigr) X",
        "the product of two sums": r"\sum_{h=1}^{H} Z_h\, W_O^{(h)}"
        r" = \Bigl(\sum_{h=1}^{H} P_h\, X\, W_V^{(h)}\Bigr) \Bigl(\sum_{h=1}^{H} W_O^{(h)}\Bigr)",
    },
)
def sum_of_maps(rng: np.random.Generator, T: int, d: int, H: int, d_k: int, d_v: int) -> Givens:
    """Put Eq. attention-of-one-head in: what mixes positions, P_h, stands on the left of X, and what mixes features on the right."""
    X, (W_Q, W_K, W_V, W_O) = rng.normal(size=(T, d)), _weights(rng, d, H, d_k, d_v)
    Z, P = _heads(X, W_Q, W_K, W_V, H)
    blocks = {"W_V^{(h)}": matrices(np.hsplit(W_V, H)), "W_O^{(h)}": matrices(np.vsplit(W_O, H))}
    return {"X": X, "Z": matrices(Z), "P": matrices(P), "H": H, **blocks}


@equation(
    "value-output-rank-bound",
    r"\mathrm{rank}\bigl(W_V^{(h)} W_O^{(h)}\bigr) \le d_v, \qquad \mathrm{rank}\bigl(W_V\, W_O\bigr) \le \min(d,\, H d_v)",
    topics=["H2"],
    uses=["sum-of-head-maps"],
    wrong={
        "each head can write into all directions": r"\le d_v -> = d",
        "all heads together have the share of one": r"\min -> \frac{1}{H} \min",
        "the largest rank is out of reach": r"\le d_v -> < d_v",
    },
)
def heads_have_low_rank(rng: np.random.Generator, d_v: int, H: int, draw: int) -> Givens:
    """A product has at most the rank of its narrowest factor: one head writes into d_v directions, all heads together into all."""
    d = H * d_v + (2 if d_v < H else -1)
    W_V, W_O = rng.normal(size=(d, H * d_v)), rng.normal(size=(H * d_v, d))
    if draw == 1:  # all heads write into two directions
        W_O = rng.normal(size=(H * d_v, 2)) @ rng.normal(size=(2, d))
    if draw == 2:  # the heads read the same values, and what they write is the same but for one direction
        W_V, W_O = np.tile(W_V[:, :d_v], H), np.tile(W_O[:d_v], (H, 1)) * np.repeat([1 - H, *(H - 1) * [1]], d_v)[:, None]
        W_O += rng.normal(size=d)
    blocks = {"W_V^{(h)}": matrices(np.hsplit(W_V, H)), "W_O^{(h)}": matrices(np.vsplit(W_O, H))}
    return {"W_V": W_V, "W_O": W_O, "d": d, "d_v": d_v, "H": H, **blocks}


def _maps(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Draw matrices of weights: positive, with rows that sum to 1."""
    return np.asarray(softmax(rng.normal(size=shape)))


@equation(
    "averaging-heads-averages-weights",
    r"\frac{1}{H} \sum_{h=1}^{H} P_h V = \Bigl(\frac{1}{H} \sum_{h=1}^{H} P_h\Bigr) V",
    topics=["H1"],
    assumes=["the heads share V and their outputs are averaged"],
    wrong={
        "the mean of the scores would do": r"\frac{1}{H} \sum_{h=1}^{H} P_h V"
        r" = \mathrm{softmax}\Bigl(\frac{1}{H} \sum_{h=1}^{H} \ln P_h\Bigr) V",
        "the sum of the maps": r"\frac{1}{H} \sum_{h=1}^{H} P_h V = \Bigl(\sum_{h=1}^{H} P_h\Bigr) V",
    },
)
def averaged_heads_are_one_head(rng: np.random.Generator, H: int, T_q: int, T_k: int, d_v: int) -> Givens:
    """The mean of weight matrices is a weight matrix: averaging throws away what several heads are for."""
    return {"P": matrices(_maps(rng, H, T_q, T_k)), "V": rng.normal(size=(T_k, d_v)), "H": H}


@equation(
    "signed-mixture-row-sums",
    r"\Bigl(\sum_{h=1}^{H} c_h P_h\Bigr) \mathbf{1} = \Bigl(\sum_{h=1}^{H} c_h\Bigr) \mathbf{1}",
    topics=["H1"],
    uses=["softmax-inside-the-simplex", "sum-of-head-maps"],
    assumes=["V shared", "W_V^(h) W_O^(h) = c_h times one matrix"],
    wrong={
        "rows of the whole always sum to 1": r"\Bigl(\sum_{h=1}^{H} c_h P_h\Bigr) \mathbf{1} = \mathbf{1}",
        "the signs do not count": r"\Bigl(\sum_{h=1}^{H} c_h P_h\Bigr) \mathbf{1} = \Bigl(\sum_{h=1}^{H} |c_h|\Bigr) \mathbf{1}",
        "the columns instead of the rows": r"\mathbf{1}^\top \Bigl(\sum_{h=1}^{H} c_h P_h\Bigr)"
        r" = \Bigl(\sum_{h=1}^{H} c_h\Bigr) \mathbf{1}^\top",
    },
)
def signed_mixtures(rng: np.random.Generator, H: int, T_q: int, T_k: int) -> Givens:
    """With c = (1, -1) rows sum to 0: a difference of two averages, such as previous minus next token, which one head cannot form."""
    return {"P": matrices(_maps(rng, H, T_q, T_k)), "c": rng.normal(size=H), "H": H}


@equation(
    "score-matrix-rank-bound",
    r"\mathrm{rank}\Bigl(X W_Q^{(h)} \bigl(X W_K^{(h)}\bigr)^\top\Bigr) \le d_k",
    sizes="T d H d_k, T > d_k, d > d_k",
    topics=["H1", "H4"],
    uses=["attention-of-one-head"],
    wrong={
        "any table of scores can be reached": r"\le d_k -> = \mathrm{rank}\bigl(X X^\top\bigr) \le d_k",
        "the largest rank is out of reach": r"\mathrm{rank}\Bigl(X W_Q^{(h)} \bigl(X W_K^{(h)}\bigr)^\top\Bigr) < d_k",
        "always as large as the width": r"\mathrm{rank}\Bigl(X W_Q^{(h)} \bigl(X W_K^{(h)}\bigr)^\top\Bigr) = d_k",
    },
)
def scores_have_low_rank(rng: np.random.Generator, T: int, d: int, H: int, d_k: int, draw: int) -> Givens:
    """More heads at a fixed d_model make each of them narrower, and its T x T scores poorer."""
    common, own = ((1, (d_k - 2, 1)), (1, (0, d_k - 1)), (d_k, (0, 0)))[draw]  # the rank is that of what is common
    W_Q, W_K = np.swapaxes([narrow_factors(rng, d, d_k, common, own) for _ in range(H)], 0, 1)
    return {"X": rng.normal(size=(T, d)), "W_Q^{(h)}": matrices(W_Q), "W_K^{(h)}": matrices(W_K), "d_k": d_k}


# ---- what it costs
def _parameters(rng: np.random.Generator, d: int, H: int, d_k: int, d_v: int) -> int:
    """Count the weights of a layer that runs."""
    x, weights = rng.normal(size=(2, d)), _weights(rng, d, H, d_k, d_v)
    multi_head_attention(x, x, *weights, n_heads=H)  # raises an error if their shapes do not fit
    return sum(weight.size for weight in weights)


@equation(
    "multi-head-parameters",
    r"N = H\,(2\, d\, d_k + 2\, d\, d_v)",
    topics=["H2", "H4"],
    uses=["multi-head-attention"],
    assumes=["no biases"],
    wrong={"X18: W_V of size d x d for each head": r"+ 2\, d -> + d^2 + d", "W_O forgotten": r"+ 2\, d -> + d"},
)
def parameter_count(rng: np.random.Generator, H: int, d: int, d_k: int, d_v: int, draw: int) -> Givens:
    """W_Q and W_K have d rows and H d_k columns, W_V d rows and H d_v columns, W_O H d_v rows and d columns."""
    H, d_k = ((H, d_k), (1, d_k), (H, 1))[draw]
    return {"N": _parameters(rng, d, H, d_k, d_v), "H": H, "d": d, "d_k": d_k, "d_v": d_v}


@equation(
    "parameters-by-head-width",
    r"d_k = d_v = \frac{d}{H}:\; N = 4\,d^2, \qquad d_k = d_v = d:\; N = 4\,H\,d^2",
    sizes="d H width, d = H width",
    topics=["H1", "H4"],
    uses=["multi-head-parameters"],
    wrong={"H heads of width d / H cost H times as much": r"4\,d^2 -> 4\,H\,d^2", "full-size heads cost as much as one": r"H\,d^2 -> d^2"},
    equivalent={"d -> d_k": "equal by the premise", "d -> d_v": "equal by the premise"},
)
def narrow_heads_cost_as_much_as_one(rng: np.random.Generator, d: int, H: int, width: int, draw: int) -> Givens:
    """In Eq. multi-head-parameters the number of heads cancels if they share the width; heads of full size cost H times more."""
    if width == H:
        d, H = width, 1
    near = {  # each premise holds once, and fails in every way it can
        1: [(width, width), (d, width), (width - 1, width - 1)],
        0: [(width, width), (width - 1, width), (d + 1, d)],
        -1: [(d, d), (width, d), (d + 1, d + 1)],
    }
    d_k, d_v = near[0 if H == 1 else int(np.sign(H - width))][draw]
    return {"N": _parameters(rng, d, H, d_k, d_v), "d": d, "H": H, "d_k": d_k, "d_v": d_v}


@equation(
    "multi-head-flops",
    r"F = 8\,T d^2 + 4\,T^2 d",
    sizes="T d H d_k, d = H d_k",
    topics=["H1", "H2"],
    uses=["attention-and-rnn-flops", "multi-head-attention"],
    assumes=["d_k = d_v = d / H", "a multiply-add counts 2", "softmax not counted"],
    wrong={
        "the projection of the output forgotten": r"F = 6\,T d^2 + 4\,T^2 d",
        "the scores counted, the output not": r"F = 8\,T d^2 + 2\,T^2 d",
        "a multiply-add counted as 1": r"F = 4\,T d^2 + 2\,T^2 d",
    },
)
def flops_do_not_depend_on_the_number_of_heads(rng: np.random.Generator, T: int, d: int, H: int, d_k: int) -> Givens:
    """Four projections of T rows cost 2 T d^2 each; scores and output cost 2 T^2 d_k for each of H heads, and H d_k = d."""
    return {"F": 2 * _multiplications(T, H, d_k), "T": T, "d": d}


@functools.cache
def _multiplications(length: int, n_heads: int, width: int) -> int:
    """Count the multiplications of a layer by running it; the softmax has none."""

    def layer(x: np.ndarray, *weights: np.ndarray) -> np.ndarray:
        q, k, v = ((x @ w).reshape(length, n_heads, width).swapaxes(0, 1) for w in weights[:3])
        return ((q @ k.swapaxes(1, 2)) @ v).swapaxes(0, 1).reshape(length, -1) @ weights[3]

    d = n_heads * width
    return multiplications(layer, (length, d), *4 * [(d, d)])


@equation(
    "second-projection-adds-nothing",
    r"Q\, W_h^{Q} = X\, \bigl(W_Q W_h^{Q}\bigr), \qquad Q = X W_Q",
    topics=["H4"],
    uses=["heads-are-column-blocks"],
    assumes=["each head projects what is already projected"],
    wrong={
        "the same as projecting X once by the second matrix": r"Q\, W_h^{Q} = X\, W_h^{Q}, \qquad Q = X W_Q",
        "the matrices in the other order": r"Q\, W_h^{Q} = X\, \bigl(W_h^{Q} W_Q\bigr), \qquad Q = X W_Q",
        "the first matrix transposed": r"Q\, W_h^{Q} = X\, \bigl(W_Q^\top W_h^{Q}\bigr), \qquad Q = X W_Q",
    },
)
def projecting_twice(rng: np.random.Generator, T: int, d: int, H: int, d_k: int) -> Givens:
    """The product of two matrices is one matrix: the second projection adds parameters, but no function that the first lacks."""
    return {"X": rng.normal(size=(T, d)), "W_Q": rng.normal(size=(d, d)), "W^{Q}": matrices(rng.normal(size=(H, d, d_k)))}

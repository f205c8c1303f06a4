"""Multi-head attention: splitting, sums of maps, ranks, costs."""

import functools

import numpy as np

from attn_course.equations.core import claim
from attn_course.equations.counting import multiplications
from attn_course.equations.drawing import Normal, tables
from attn_course.formulas import function, matrices
from attn_course.reference import attention, multi_head_attention, split_heads


def _weights(normal: Normal, d: int, H: int, d_k: int, d_v: int) -> list[np.ndarray]:
    """Draw W_Q, W_K, W_V and W_O, with the heads side by side."""
    return tables(normal, (d, H * d_k), (d, H * d_k), (d, H * d_v), (H * d_v, d))


def _heads(X: np.ndarray, W_Q: np.ndarray, W_K: np.ndarray, W_V: np.ndarray, H: int) -> tuple[np.ndarray, np.ndarray]:
    """Return Z_h and P_h of each head."""
    output, weights = attention(*(split_heads(X @ W, H) for W in (W_Q, W_K, W_V)), return_weights=True)
    return output, weights


# ---- split and attend
@claim("heads-are-column-blocks", serves="H1 H4")
def _(normal, T, d, H, d_k):
    r"""\mathrm{split}(X W_Q)_h = X\, W_Q^{(h)}, \qquad W_Q = \bigl[\, W_Q^{(1)} \cdots W_Q^{(H)} \,\bigr]
    where W_Q^(h) = columns (h - 1) d_k + 1 to h d_k of W_Q
    A column of the product reads one column of W_Q: to split Q, K, V and to give each head its own matrices is the same.
        every head reads the first block: (h) -> (1)
        the heads in reverse order: (h) -> (H + 1 - h)
        the input is split before it is projected: (X W_Q)_h -> (X)_h W_Q^{(h)}
    """
    X, W_Q = normal(T, d), normal(d, H * d_k)
    split = function(lambda Q: split_heads(Q, H))
    return {r"\mathrm{split}": split, "X": X, "W_Q": W_Q, "W_Q^{(h)}": matrices(np.hsplit(W_Q, H)), "H": H}


@claim("attention-of-one-head", serves="H1", rests_on="batched-attention heads-are-column-blocks")
def _(normal, T, d, H, d_k, d_v):
    r"""Z_h = P_h\, X W_V^{(h)}, \qquad P_h = \mathrm{softmax}\Bigl(\frac{X W_Q^{(h)} \bigl(X W_K^{(h)}\bigr)^\top}{\sqrt{d_k}}\Bigr)
    where d_k = width of one head
    Attention as before on the columns of one head; its vectors have d_k entries, so that is what the scale must undo.
        divided by d_k: \sqrt{d_k} -> d_k
        one map for all heads: = P_h -> = P_1
        queries and keys exchanged: W_Q^{(h)} \bigl(X W_K^{(h)}\bigr)^\top -> W_K^{(h)} \bigl(X W_Q^{(h)}\bigr)^\top
    """
    X, (W_Q, W_K, W_V, _) = normal(T, d), _weights(normal, d, H, d_k, d_v)
    blocks = {f"W_{name}^{{(h)}}": matrices(np.hsplit(W, H)) for name, W in (("Q", W_Q), ("K", W_K), ("V", W_V))}
    return {"X": X, "Z": matrices(_heads(X, W_Q, W_K, W_V, H)[0]), "d_k": d_k, **blocks}


# ---- merge and project
@claim("multi-head-attention", serves="H1 H2", rests_on="attention-of-one-head")
def _(normal, T, d, H, d_k, d_v):
    r"""\mathrm{MultiHead}(X) = \bigl[\, Z_1 \cdots Z_H \,\bigr]\, W_O, \qquad W_O \in \mathbb{R}^{(H d_v) \times d}
    The heads' outputs stand side by side, and one more matrix mixes them.
        W_O transposed: (H d_v) \times d -> d \times (H d_v)
        divided by the number of heads: = -> = \frac{1}{H}
        the input added: = -> = X +
    """
    X, W = normal(T, d), _weights(normal, d, H, d_k, d_v)
    columns = [np.hsplit(each, H) for each in W[:3]]
    Z = [attention(X @ W_Q, X @ W_K, X @ W_V) for W_Q, W_K, W_V in zip(*columns, strict=True)]
    layer = function(lambda X: multi_head_attention(X, X, *W, n_heads=H))
    return {r"\mathrm{MultiHead}": layer, "X": X, "Z": matrices(Z), "W_O": W[3], "H": H, "d_v": d_v, "d": d}


@claim("output-projection-sums-heads", serves="H2", rests_on="attention-of-one-head")
def _(normal, T, d, H, d_v):
    r"""\bigl[\, Z_1 \cdots Z_H \,\bigr]\, W_O = \sum_{h=1}^{H} Z_h\, W_O^{(h)}
    where W_O^(h) = rows (h - 1) d_v + 1 to h d_v of W_O
    A product of blocks: each head owns the rows of W_O that its columns meet.
        the same rows of W_O for every head: (h) -> (1)
        the rows of W_O in reverse order: (h) -> (H + 1 - h)
        the mean of the heads: W_O = -> W_O = \frac{1}{H}
    """
    Z, W_O = normal(H, T, d_v), normal(H * d_v, d)
    return {"Z": matrices(Z), "W_O": W_O, "W_O^{(h)}": matrices(np.vsplit(W_O, H)), "H": H}


@claim("sum-of-head-maps", serves="H2", rests_on="attention-of-one-head output-projection-sums-heads")
def _(normal, T, d, H, d_k, d_v):
    r"""\sum_{h=1}^{H} Z_h\, W_O^{(h)} = \sum_{h=1}^{H} P_h\, X\, \bigl(W_V^{(h)} W_O^{(h)}\bigr)
    Put Eq. attention-of-one-head in: what mixes positions, P_h, stands on the left of X, and what mixes features on the right.
        one map for all: the mean of the P_h:
            P_h\, X -> \Bigl(\frac{1}{H} \sum_{r=1}^{H} P_r\Bigr) X
        the product of two sums:
            \sum_{h=1}^{H} Z_h\, W_O^{(h)} = \Bigl(\sum_{h=1}^{H} P_h\, X\, W_V^{(h)}\Bigr) \Bigl(\sum_{h=1}^{H} W_O^{(h)}\Bigr)
    """
    X, (W_Q, W_K, W_V, W_O) = normal(T, d), _weights(normal, d, H, d_k, d_v)
    Z, P = _heads(X, W_Q, W_K, W_V, H)
    blocks = {"W_V^{(h)}": matrices(np.hsplit(W_V, H)), "W_O^{(h)}": matrices(np.vsplit(W_O, H))}
    return {"X": X, "Z": matrices(Z), "P": matrices(P), "H": H, **blocks}


@claim("value-output-rank-bound", serves="H2", rests_on="sum-of-head-maps")
def _(normal, d_v, H, draw):
    r"""\mathrm{rank}\bigl(W_V^{(h)} W_O^{(h)}\bigr) \le d_v, \qquad \mathrm{rank}\bigl(W_V\, W_O\bigr) \le \min(d,\, H d_v)
    A product has at most the rank of its narrowest factor: one head writes into d_v directions, all heads together into all.
        each head can write into all directions: \le d_v -> = d
        all heads together have the share of one: \min -> \frac{1}{H} \min
        the largest rank is out of reach: \le d_v -> < d_v
    """
    d = H * d_v + (2 if d_v < H else -1)
    W_V, W_O = normal(d, H * d_v), normal(H * d_v, d)
    if draw == 1:  # all heads write into two directions
        W_O = normal(H * d_v, 2) @ normal(2, d)
    if draw == 2:  # the heads read the same values, and what they write is the same but for one direction
        W_V, W_O = np.tile(W_V[:, :d_v], H), np.tile(W_O[:d_v], (H, 1)) * np.repeat([1 - H, *(H - 1) * [1]], d_v)[:, None]
        W_O += normal(d)
    blocks = {"W_V^{(h)}": matrices(np.hsplit(W_V, H)), "W_O^{(h)}": matrices(np.vsplit(W_O, H))}
    return {"W_V": W_V, "W_O": W_O, "d": d, "d_v": d_v, "H": H, **blocks}


# ---- what it costs
def _parameters(normal: Normal, d: int, H: int, d_k: int, d_v: int) -> int:
    """Count the weights of a layer that runs."""
    x, weights = normal(2, d), _weights(normal, d, H, d_k, d_v)
    multi_head_attention(x, x, *weights, n_heads=H)  # raises an error if their shapes do not fit
    return sum(weight.size for weight in weights)


@claim("multi-head-parameters", serves="H2 H4", rests_on="multi-head-attention")
def _(normal, H, d, d_k, d_v, draw):
    r"""N = H\,(2\, d\, d_k + 2\, d\, d_v)
    where no biases
    W_Q and W_K have d rows and H d_k columns, W_V d rows and H d_v columns, W_O H d_v rows and d columns.
        X18: W_V of size d x d for each head: + 2\, d -> + d^2 + d
        W_O forgotten: + 2\, d -> + d
    """
    H, d_k = ((H, d_k), (1, d_k), (H, 1))[draw]
    return {"N": _parameters(normal, d, H, d_k, d_v), "H": H, "d": d, "d_k": d_k, "d_v": d_v}


@claim("multi-head-flops", serves="H1 H2", rests_on="attention-and-rnn-flops multi-head-attention", sizes="T d H d_k, d = H d_k")
def _(rng, T, d, H, d_k):
    r"""F = 8\,T d^2 + 4\,T^2 d
    where d_k = d_v = d / H ;; a multiply-add counts 2 ;; softmax not counted
    Four projections of T rows cost 2 T d^2 each; scores and output cost 2 T^2 d_k for each of H heads, and H d_k = d.
        the projection of the output forgotten: 8\,T -> 6\,T
        the scores counted, the output not: 4\,T^2 -> 2\,T^2
        a multiply-add counted as 1: F = 4\,T d^2 + 2\,T^2 d
    """
    return {"F": 2 * _multiplications(T, H, d_k), "T": T, "d": d}


@functools.cache
def _multiplications(length: int, n_heads: int, width: int) -> int:
    """Count the multiplications of a layer by running it; the softmax has none."""

    def layer(x: np.ndarray, *weights: np.ndarray) -> np.ndarray:
        q, k, v = ((x @ w).reshape(length, n_heads, width).swapaxes(0, 1) for w in weights[:3])
        return ((q @ k.swapaxes(1, 2)) @ v).swapaxes(0, 1).reshape(length, -1) @ weights[3]

    d = n_heads * width
    return multiplications(layer, (length, d), *4 * [(d, d)])

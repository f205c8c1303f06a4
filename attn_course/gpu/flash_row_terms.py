"""What the backward kernels need of each row to compute its weights again and to differentiate them."""

from typing import Any, NamedTuple

import triton
import triton.language as tl

from attn_course.gpu.tiles import COUNTS, Rows, block_of_rows, load_rows, numbers_of, of_head, sequence_of


class Terms(NamedTuple):
    """What the backward kernels read besides the `Call`: d_output, and numbers of each row (batch, n_heads, q_len), contiguous, dtype ACC.

    shift and delta come from `flash_row_terms`, rest from `flash_forward`.
    """

    d_output: Rows
    shift: Any
    rest: Any
    delta: Any


@triton.jit(do_not_specialize=COUNTS)
def flash_row_terms(starts_ptr, output, terms, lse_ptr, d_lse_ptr, n_heads, q_len, KIND: tl.constexpr, BLOCK_Q: tl.constexpr):
    """One program computes what every weight of BLOCK_Q rows of one head needs: shift, and delta - d_lse.

    Eqs. weights-from-lse, score-gradient-against-mixture and score-gradient-with-lse. The shift is lse in the units of the scores: NATURAL,
    else of ln 2; and +inf for a row that sees nothing, whose weights it makes 0.

    output (batch, n_heads, q_len, D_V), `Rows`; lse, d_lse (or None) as in `Terms`, whose shift and delta are written; starts as in `Call`.
    """
    start, pair, batch, head = block_of_rows(n_heads, q_len, 1, BLOCK_Q)
    entry, _, q_len, _ = sequence_of(starts_ptr, batch, q_len, 0)
    mean = load_rows(of_head(output, entry, head), start, q_len, BLOCK_Q, KIND.D_V, True)
    d_output = load_rows(of_head(terms.d_output, entry, head), start, q_len, BLOCK_Q, KIND.D_V, True)
    delta = tl.sum(mean.to(KIND.ACC) * d_output.to(KIND.ACC), 1)
    rows = start + tl.arange(0, BLOCK_Q)
    places = numbers_of(starts_ptr, pair, n_heads, q_len) + rows
    if d_lse_ptr is not None:
        delta -= tl.load(d_lse_ptr + places, mask=rows < q_len, other=0.0)
    tl.store(terms.delta + places, delta, mask=rows < q_len)
    lse = tl.load(lse_ptr + places, mask=rows < q_len, other=0.0)
    shift = lse if KIND.NATURAL else lse * 1.4426950408889634  # log2(e)
    tl.store(terms.shift + places, tl.where(lse == float("-inf"), float("inf"), shift), mask=rows < q_len)


@triton.jit
def of_rows(numbers_ptr, first, start, q_len, beyond, N_ROWS: tl.constexpr, CHECKED: tl.constexpr):
    """Load one number for each of the rows from `start` on: shift or delta of `flash_row_terms`, or what `flash_forward` wrote as rest.

    Those of the head begin at `first`, see `numbers_of`. If CHECKED, a row past the end gets the number `beyond`: +inf as shift makes its
    weights 0.
    """
    rows = tl.arange(0, N_ROWS)
    if CHECKED:  # the start goes where it costs no registers: those who check have the rows at hand
        rows += start
    else:
        first += start
    is_in = rows < q_len if CHECKED else rows >= 0
    return tl.load(numbers_ptr + first + rows, mask=is_in, other=beyond)


@triton.jit
def weights_again(scores, shift, rest, KIND: tl.constexpr):
    """Return the weights of a tile from its scores, Eq. weights-from-lse; shift and rest from `of_rows`, broadcast to the tile."""
    if KIND.NATURAL:
        return tl.exp2((scores - shift - rest) * 1.4426950408889634)
    else:
        return tl.exp2(scores - shift)

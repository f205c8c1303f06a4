"""What the backward kernels need of each row to compute its weights again and to differentiate them."""

import triton
import triton.language as tl

from attn_course.gpu.tiles import COUNTS, load_rows, of_head


@triton.jit(do_not_specialize=COUNTS)
def flash_row_terms(output_ptr, d_output_ptr, lse_ptr, d_lse_ptr, shift_ptr, delta_ptr, output_strides, d_output_strides, n_heads, q_len,
                    D_V: tl.constexpr, D_V_PAD: tl.constexpr, NATURAL: tl.constexpr, ACC: tl.constexpr, BLOCK_Q: tl.constexpr):  # fmt: skip
    """One program computes what every weight of BLOCK_Q rows of one head needs: shift, and delta - d_lse.

    Eqs. weights-from-lse, score-gradient-against-mixture and score-gradient-with-lse. The shift is lse in the units of the scores: NATURAL,
    else of ln 2; and +inf for a row that sees nothing, whose weights it makes 0.

    output, d_output (batch, n_heads, q_len, D_V); lse, d_lse (or None), shift, delta (batch, n_heads, q_len), contiguous, dtype ACC.
    """
    n_blocks = tl.cdiv(q_len, BLOCK_Q)
    start = tl.program_id(0) % n_blocks * BLOCK_Q
    pair = tl.program_id(0) // n_blocks
    batch = pair // n_heads
    head = pair % n_heads
    output_ptr = of_head(output_ptr, batch, head, output_strides)
    d_output_ptr = of_head(d_output_ptr, batch, head, d_output_strides)
    output = load_rows(output_ptr, start, q_len, output_strides[2], BLOCK_Q, D_V, D_V_PAD, True)
    d_output = load_rows(d_output_ptr, start, q_len, d_output_strides[2], BLOCK_Q, D_V, D_V_PAD, True)
    delta = tl.sum(output.to(ACC) * d_output.to(ACC), 1)
    rows = start + tl.arange(0, BLOCK_Q)
    places = tl.cast(pair, tl.int64) * q_len + rows
    if d_lse_ptr is not None:
        delta -= tl.load(d_lse_ptr + places, mask=rows < q_len, other=0.0)
    tl.store(delta_ptr + places, delta, mask=rows < q_len)
    lse = tl.load(lse_ptr + places, mask=rows < q_len, other=0.0)
    shift = lse if NATURAL else lse * 1.4426950408889634  # log2(e)
    tl.store(shift_ptr + places, tl.where(lse == float("-inf"), float("inf"), shift), mask=rows < q_len)


@triton.jit
def of_rows(numbers_ptr, pair, start, q_len, beyond, N_ROWS: tl.constexpr, CHECKED: tl.constexpr):
    """Load one number for each of the rows from `start` on: shift or delta of `flash_row_terms`, or what `flash_forward` wrote as rest.

    If CHECKED, a row past the end gets the number `beyond`: +inf as shift makes its weights 0.
    """
    rows = tl.arange(0, N_ROWS)
    place = tl.cast(pair, tl.int64) * q_len
    if CHECKED:  # the start goes where it costs no registers: those who check have the rows at hand
        rows += start
    else:
        place += start
    is_in = rows < q_len if CHECKED else rows >= 0
    return tl.load(numbers_ptr + place + rows, mask=is_in, other=beyond)


@triton.jit
def weights_again(scores, shift, rest, NATURAL: tl.constexpr):
    """Return the weights of a tile from its scores, Eq. weights-from-lse; shift and rest from `of_rows`, broadcast to the tile."""
    if NATURAL:
        return tl.exp2((scores - shift - rest) * 1.4426950408889634)
    else:
        return tl.exp2(scores - shift)

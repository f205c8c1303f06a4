"""Judge claims about float64 numbers: equality and bounds up to rounding, limits, moments."""

from typing import Any

import numpy as np

from attn_course.equations.claims import Chain, Claim, Equal, Limit, Moment
from attn_course.equations.errors import Malformed, Refuted, Unproved

ROUNDING = 64 * float(np.finfo(np.float64).eps)  # a few dozen operations, each off by half an eps of the largest term
SIGMAS = 5.0  # a true moment fails about once in two million seeds


def judge(claim: Claim) -> None:
    """Raise `Refuted` (or `Unproved`, `Malformed`) unless the claim holds."""
    if isinstance(claim, Equal):
        _judge_equal(claim)
    elif isinstance(claim, Chain):
        _judge_chain(claim)
    elif isinstance(claim, Limit):
        _judge_limit(claim)
    else:
        _judge_moment(claim)


def numbers(side: Any) -> np.ndarray:
    """Return one side as float64; anything that is not a real number is malformed."""
    try:
        array = np.asarray(side)
        if array.dtype == object or array.dtype.kind not in "biuf":
            raise Malformed(f"a numeric side holds real numbers; got dtype {array.dtype}")
        if array.size == 0:
            raise Malformed("an empty array claims nothing")
        return array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise Malformed(f"a numeric side holds real numbers; got {type(side).__name__}") from error


def differ(left: np.ndarray, right: np.ndarray, scale: Any = None) -> np.ndarray:
    """Return where two sides differ by more than rounding at their scale; NaN always differs."""
    tolerance = _tolerance((left, right), scale)
    with np.errstate(invalid="ignore"):
        return ~((left == right) | (np.abs(left - right) <= tolerance))


def _tolerance(terms: tuple[np.ndarray, ...], scale: Any) -> float:
    if scale is not None:
        return ROUNDING * float(np.max(np.abs(numbers(scale))))
    sizes = [np.abs(term[np.isfinite(term)]).max(initial=0.0) for term in terms]
    return ROUNDING * float(max(sizes))


def _judge_equal(claim: Equal) -> None:
    left, right = numbers(claim.left), numbers(claim.right)
    if right.ndim and left.shape != right.shape:
        raise Malformed(f"the sides differ in shape: {left.shape} and {right.shape}")
    left, right = np.broadcast_arrays(left, right)
    wrong = differ(left, right, claim.scale)
    if wrong.any():
        where = _first(wrong)
        raise Refuted(f"left side {left[where]:.10g}, right side {right[where]:.10g}{_entry(where)}")


def _judge_chain(claim: Chain) -> None:
    terms = np.broadcast_arrays(*map(numbers, claim.terms))
    tolerance = _tolerance(tuple(terms), claim.scale)
    for low, sign, high, tight in zip(terms, claim.signs, terms[1:], claim.tight, strict=False):
        with np.errstate(invalid="ignore"):
            holds = low < high if sign == "<" else low <= high + tolerance
            attained = np.abs(low - high) <= tolerance
        if not holds.all():
            where = _first(~holds)
            raise Refuted(f"{low[where]:.10g} {sign} {high[where]:.10g} is false{_entry(where)}")
        if tight and not attained.any():
            where = _first(~attained)
            raise Refuted(f"{low[where]:.10g} {sign} {high[where]:.10g} should be an equality at this point{_entry(where)}")


def _judge_limit(claim: Limit) -> None:
    values, target = numbers(claim.values), numbers(claim.target)
    if values.shape[0] < 3 or (target.ndim and values.shape[1:] != target.shape):
        raise Malformed(f"a limit wants at least 3 steps shaped like its target {target.shape}; got {values.shape}")
    errors = np.abs(values - target).reshape(len(values), -1).max(axis=1)
    allowed = claim.closeness * max(1.0, float(np.abs(target).max()))
    if not errors[-1] <= allowed:
        raise Refuted(f"the last value is still {errors[-1]:.3g} away from the limit (allowed {allowed:.3g})")
    if not (np.diff(errors) <= allowed).all():
        raise Refuted("the values do not come steadily closer to the limit")


def _judge_moment(claim: Moment) -> None:
    samples, expected = numbers(claim.samples), numbers(claim.expected)
    if samples.ndim == 0 or samples.shape[0] < 100 or (expected.ndim and samples.shape[1:] != expected.shape):
        raise Malformed(f"a moment wants at least 100 samples shaped like its expectation {expected.shape}; got {samples.shape}")
    mean, error = samples.mean(axis=0), samples.std(axis=0, ddof=1) / np.sqrt(samples.shape[0])
    mean, error, expected = np.broadcast_arrays(mean, error, expected)
    scale = np.abs(expected) if claim.scale is None else np.broadcast_to(numbers(claim.scale), expected.shape)
    wrong = ~(np.abs(mean - expected) <= SIGMAS * error + ROUNDING * scale)
    if wrong.any():
        where = _first(wrong)
        raise Refuted(f"sample mean {mean[where]:.6g} +- {error[where]:.2g}, expected {expected[where]:.6g}{_entry(where)}")
    weak = ~(error <= claim.resolution * scale)
    if weak.any():
        where = _first(weak)
        wanted = claim.resolution * scale[where]
        raise Unproved(f"too few samples to tell: standard error {error[where]:.2g}, wanted at most {wanted:.2g}{_entry(where)}")


def _first(flags: np.ndarray) -> tuple[int, ...]:
    return tuple(int(index) for index in np.argwhere(flags)[0]) if flags.ndim else ()


def _entry(where: tuple[int, ...]) -> str:
    return f" at entry {where[0] if len(where) == 1 else where}" if where else ""

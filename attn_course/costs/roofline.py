"""How fast a machine can be at best: the roof is its arithmetic, or its memory, whichever is the narrower."""

from attn_course.costs.checks import require_number


def arithmetic_intensity_flops_per_byte(n_flops: float, n_bytes: float) -> float:
    r"""Return how much is computed for each byte that is moved, I of Eq. roofline.

    Parameters
    ----------
    n_flops : float
        FLOPs.
    n_bytes : float
        Bytes moved to and from the slow memory.

    Returns
    -------
    intensity_flops_per_byte : float
        To be compared with `ridge_point_flops_per_byte`.

    Raises
    ------
    TypeError
        If an argument is not a number.
    ValueError
        If `n_flops` is negative, or `n_bytes` not positive.

    Notes
    -----
    Williams, Waterman and Patterson (2009), "Roofline", who call it operational intensity. Decoding reads each cached key
    and value once for the query heads it serves: g FLOPs a byte in float16, for groups of g heads.

    Examples
    --------
    >>> from attn_course.costs import attention_flops, cache_bytes_per_token
    >>> [arithmetic_intensity_flops_per_byte(32 * attention_flops(1, 128, 128), cache_bytes_per_token(h, 128, 128)) for h in (32, 8, 1)]
    [1.0, 4.0, 32.0]
    """
    return require_number("n_flops", n_flops) / require_number("n_bytes", n_bytes, positive=True)


def ridge_point_flops_per_byte(peak_flops_per_s: float, bandwidth_bytes_per_s: float) -> float:
    r"""Return the intensity from which on a machine is limited by its arithmetic and no longer by its memory.

    Parameters
    ----------
    peak_flops_per_s : float
        FLOPs a second at best.
    bandwidth_bytes_per_s : float
        Bytes a second to and from the slow memory at best.

    Returns
    -------
    intensity_flops_per_byte : float
        Where the two roofs meet.

    Raises
    ------
    TypeError
        If an argument is not a number.
    ValueError
        If an argument is not positive and finite.

    Notes
    -----
    Williams, Waterman and Patterson (2009), "Roofline".

    Examples
    --------
    >>> ridge_point_flops_per_byte(800e12, 4e12)
    200.0
    """
    peak = require_number("peak_flops_per_s", peak_flops_per_s, positive=True)
    return peak / require_number("bandwidth_bytes_per_s", bandwidth_bytes_per_s, positive=True)


def attainable_flops_per_s(intensity_flops_per_byte: float, *, peak_flops_per_s: float, bandwidth_bytes_per_s: float) -> float:
    r"""Return the height of the roof over an intensity, Eq. roofline.

    .. math:: \min(\text{peak},\; \text{bandwidth} \cdot \text{intensity})

    Parameters
    ----------
    intensity_flops_per_byte : float
        FLOPs for each byte moved.
    peak_flops_per_s : float
        FLOPs a second at best.
    bandwidth_bytes_per_s : float
        Bytes a second at best.

    Returns
    -------
    rate_flops_per_s : float
        No program of this intensity is faster on this machine.

    Raises
    ------
    TypeError
        If an argument is not a number.
    ValueError
        If the intensity is negative, or a rate is not positive and finite.

    Notes
    -----
    Williams, Waterman and Patterson (2009), "Roofline".

    Examples
    --------
    >>> [attainable_flops_per_s(intensity, peak_flops_per_s=800e12, bandwidth_bytes_per_s=4e12) for intensity in (1.0, 1000.0)]
    [4000000000000.0, 800000000000000.0]
    """
    intensity = require_number("intensity_flops_per_byte", intensity_flops_per_byte)
    peak = require_number("peak_flops_per_s", peak_flops_per_s, positive=True)
    return min(peak, intensity * require_number("bandwidth_bytes_per_s", bandwidth_bytes_per_s, positive=True))


def roofline_time_s(
    n_flops: float,
    n_bytes: float,
    *,
    peak_flops_per_s: float,
    bandwidth_bytes_per_s: float,
    exps: float = 0,
    peak_exps_per_s: float | None = None,
) -> float:
    r"""Return the shortest time in which a machine can do the work, if all its units work at once.

    .. math:: \max\left(\frac{\text{FLOPs}}{\text{peak}},\; \frac{\text{bytes}}{\text{bandwidth}},\;
              \frac{\text{exponentials}}{\text{their rate}}\right)

    Parameters
    ----------
    n_flops : float
        FLOPs.
    n_bytes : float
        Bytes moved.
    peak_flops_per_s : float
        FLOPs a second at best.
    bandwidth_bytes_per_s : float
        Bytes a second at best.
    exps : float, optional
        Exponentials, a third roof: they run on units of their own.
    peak_exps_per_s : float, optional
        Exponentials a second at best; must be given with `exps`.

    Returns
    -------
    time_s : float
        In seconds; a bound, not a prediction.

    Raises
    ------
    TypeError
        If an argument is not a number.
    ValueError
        If an amount is negative, a rate is not positive and finite, or there are exponentials without their rate.

    Notes
    -----
    Williams, Waterman and Patterson (2009), "Roofline".

    Examples
    --------
    >>> roofline_time_s(8e12, 4e9, peak_flops_per_s=800e12, bandwidth_bytes_per_s=4e12)
    0.01
    >>> roofline_time_s(8e12, 4e9, peak_flops_per_s=800e12, bandwidth_bytes_per_s=4e12, exps=1e11, peak_exps_per_s=4e12)
    0.025
    """
    times = [
        require_number("n_flops", n_flops) / require_number("peak_flops_per_s", peak_flops_per_s, positive=True),
        require_number("n_bytes", n_bytes) / require_number("bandwidth_bytes_per_s", bandwidth_bytes_per_s, positive=True),
    ]
    amount = require_number("exps", exps)
    if amount and peak_exps_per_s is None:
        raise ValueError(f"peak_exps_per_s must be given when exps are; got None with {exps!r}")
    if peak_exps_per_s is not None:
        times.append(amount / require_number("peak_exps_per_s", peak_exps_per_s, positive=True))
    return max(times)

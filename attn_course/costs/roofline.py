"""How fast a machine can be at best: the roof is its arithmetic, or its memory, whichever is the narrower."""

from attn_course.costs.checks import require_number


def ridge_point_flops_per_byte(peak_flops_per_s: float, bandwidth_bytes_per_s: float) -> float:
    """Return the intensity, FLOPs for each byte moved, from which on a machine is limited by its arithmetic and not its memory.

    Both rates are the best the machine can do, positive and finite (else ValueError). Williams, Waterman and Patterson
    (2009), "Roofline".

    >>> ridge_point_flops_per_byte(800e12, 4e12)
    200.0
    """
    peak = require_number("peak_flops_per_s", peak_flops_per_s, positive=True)
    return peak / require_number("bandwidth_bytes_per_s", bandwidth_bytes_per_s, positive=True)


def roofline_time_s(
    n_flops: float,
    n_bytes: float,
    *,
    peak_flops_per_s: float,
    bandwidth_bytes_per_s: float,
    exps: float = 0,
    peak_exps_per_s: float | None = None,
) -> float:
    r"""Return the shortest time in which a machine can do the work, if all its units work at once: a bound, no prediction.

    .. math:: \max\left(\frac{\text{FLOPs}}{\text{peak}},\; \frac{\text{bytes}}{\text{bandwidth}},\;
              \frac{\text{exponentials}}{\text{their rate}}\right)

    Exponentials run on units of their own, a third roof; raises ValueError where they are given without their rate, an
    amount is negative, or a rate is not positive and finite. FLOPs over this time are the height of the roof, Eq. roofline.

    Williams, Waterman and Patterson (2009), "Roofline".

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

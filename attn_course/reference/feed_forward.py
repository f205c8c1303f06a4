"""What a position does by itself: activations, and the two linear maps with one of them in between."""

import math
from collections.abc import Callable
from typing import Literal, TypeAlias

import numpy as np
from jaxtyping import Float

from attn_course.reference.arrays import checked_floats, narrowed, require_axes, require_flags, require_shape

Activation: TypeAlias = Literal["relu", "gelu", "gelu_tanh", "silu"]


def gelu(x: Float[np.ndarray, "*shape"], *, tanh: bool = False) -> Float[np.ndarray, "*shape"]:
    r"""Return x times the share of a normal distribution below x, Eq. gelu-as-integral.

    .. math:: x\,\Phi(x) = \frac{x}{2} \Bigl( 1 + \mathrm{erf} \frac{x}{\sqrt{2}} \Bigr)
              \approx \frac{x}{2} \Bigl( 1 + \tanh\bigl( \sqrt{2/\pi}\,(x + 0.044715\,x^3) \bigr) \Bigr)

    `tanh`: compute the approximation, which GPT-2 was trained with. It is up to 0.0005 off.

    Raises TypeError if `x` is not a floating ndarray, or `tanh` neither True nor False.

    Hendrycks and Gimpel (2016), section 2, arXiv:1606.08415.

    >>> gelu(np.array([-1.0, 0.0, 1.0])).round(3)
    array([-0.159,  0.   ,  0.841])
    """
    (wide,) = checked_floats(x=x)
    require_flags(tanh=tanh)
    if tanh:
        share = logistic(math.sqrt(8.0 / math.pi) * (wide + 0.044715 * wide**3))
    else:  # not 1 + erf, which is 0 where x is far below 0
        share = np.vectorize(lambda entry: math.erfc(-entry / math.sqrt(2.0)) / 2.0, otypes=[wide.dtype])(wide)
    return narrowed(np.asarray(wide * share), x.dtype)


def silu(x: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
    r"""Return x times the logistic function of x, the activation in Eq. gated-feed-forward.

    .. math:: \frac{x}{1 + e^{-x}}

    Raises TypeError if `x` is not a floating ndarray.

    Hendrycks and Gimpel (2016), section 2, arXiv:1606.08415; also called Swish.

    >>> silu(np.array([-1.0, 0.0, 1.0])).round(3)
    array([-0.269,  0.   ,  0.731])
    """
    (wide,) = checked_floats(x=x)
    return narrowed(np.asarray(wide * logistic(wide)), x.dtype)


def logistic(x: np.ndarray) -> np.ndarray:
    """Return 1 / (1 + e^-x), which neither overflows nor, where x is far below 0, loses its digits as (1 + tanh(x / 2)) / 2 does.

    >>> logistic(np.array([-800.0, -40.0, 0.0, 800.0]))
    array([0.00000000e+00, 4.24835426e-18, 5.00000000e-01, 1.00000000e+00])
    """
    small = np.exp(-np.abs(x))
    return np.where(x < 0.0, small, 1.0) / (1.0 + small)


ACTIVATIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "relu": lambda x: np.maximum(x, 0.0),
    "gelu": gelu,
    "gelu_tanh": lambda x: gelu(x, tanh=True),
    "silu": silu,
}


def feed_forward(
    x: Float[np.ndarray, "*len d_model"],
    w_in: Float[np.ndarray, "d_model d_hidden"],
    w_out: Float[np.ndarray, "d_hidden d_output"],
    *,
    w_gate: Float[np.ndarray, "d_model d_hidden"] | None = None,
    b_in: Float[np.ndarray, "d_hidden"] | None = None,
    b_out: Float[np.ndarray, "d_output"] | None = None,
    activation: Activation = "gelu",
) -> Float[np.ndarray, "*len d_output"]:
    r"""Map each position by itself through hidden units, Eq. feed-forward-as-lookup; with a gate, Eq. gated-feed-forward.

    .. math:: a(x W_{in} + b_{in})\,W_{out} + b_{out}, \qquad \bigl( a(x W_{gate}) \odot (x W_{in} + b_{in}) \bigr) W_{out} + b_{out}

    `w_gate`: the activation is applied to x @ w_gate, which then multiplies the hidden units; without it, to these.
    `b_in`, `b_out`: biases; none if left out.
    `activation`: a, "relu", "gelu", "gelu_tanh" or "silu".

    Raises TypeError if an array is not floating; ValueError if shapes do not fit, or the activation is unknown.

    Vaswani et al. (2017), Eq. 2, arXiv:1706.03762, with ReLU; read as a lookup: Geva et al. (2020), arXiv:2012.14913. Gates:
    Shazeer (2020), Eq. 6, arXiv:2002.05202, where W is `w_gate` and V is `w_in`: "gelu" makes GEGLU, "silu" SwiGLU.

    >>> x, identity = np.array([[-1.0, 2.0]]), np.eye(2)
    >>> feed_forward(x, identity, identity, activation="relu")
    array([[0., 2.]])
    >>> feed_forward(x, identity, identity, w_gate=-identity, activation="relu")
    array([[-1.,  0.]])
    """
    if activation not in ACTIVATIONS:
        raise ValueError(f"activation must be one of {', '.join(ACTIVATIONS)}; got {activation!r}")
    optional = {"w_gate": w_gate, "b_in": b_in, "b_out": b_out}
    given = {"x": x, "w_in": w_in, "w_out": w_out} | {name: array for name, array in optional.items() if array is not None}
    wide = dict(zip(given, checked_floats(**given), strict=True))
    require_axes(1, "(..., d_model)", x=x)
    require_axes(2, "(d_hidden, d_output)", w_out=w_out)
    hidden_units, d_output = w_out.shape
    wanted = {"w_in": (x.shape[-1], hidden_units), "w_gate": (x.shape[-1], hidden_units), "b_in": (hidden_units,), "b_out": (d_output,)}
    for name in wanted.keys() & given.keys():
        require_shape(name, given[name], wanted[name], "to fit x and w_out")
    hidden = wide["x"] @ wide["w_in"] + wide.get("b_in", 0.0)
    act = ACTIVATIONS[activation]
    hidden = act(hidden) if w_gate is None else act(wide["x"] @ wide["w_gate"]) * hidden
    return narrowed(hidden @ wide["w_out"] + wide.get("b_out", 0.0), x.dtype)

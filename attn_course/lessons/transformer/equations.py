"""A block of a Transformer: its norms, its hidden units, and the stream that both parts write to."""

import numpy as np

from attn_course.equations.core import Givens, about
from attn_course.formulas import column, function, index, matrices, of, row, rows
from attn_course.reference import feed_forward, gelu, layer_norm, rms_norm, silu

equation = about("M2")
TINY = 1e-30  # an epsilon that is 0 beside any variance


# ---- norms
@equation(
    "layer-norm-centres-first",
    r"\mathrm{LN}(x) = \mathrm{RMS}\Bigl( x - \frac{1}{d} \sum_{i=1}^{d} x_i\, \mathbf{1} \Bigr)",
    assumes=["RMS(x) = x / sqrt(mean square + epsilon), LN with the same epsilon", "before gain and bias"],
    wrong={
        "they are the same": r"\mathrm{LN}(x) = \mathrm{RMS}(x)",
        "the sum taken away": r"\frac{1}{d} \sum -> \sum",
        "centred afterwards": r"\mathrm{LN}(x) = \mathrm{RMS}(x) - \frac{1}{d} \sum_{i=1}^{d} x_i\, \mathbf{1}",
    },
)
def layer_norm_is_rms_norm_of_what_is_centred(rng: np.random.Generator, d: int) -> Givens:
    """The variance is the mean square of what is left when the mean is gone: an RMS norm saves the first step."""
    x, epsilon = rng.normal(size=d) + 0.7, rng.uniform(0.05, 0.3)
    norms = {"LN": layer_norm, "RMS": rms_norm}
    made = {rf"\mathrm{{{name}}}": function(lambda x, norm=norm: norm(x, eps=epsilon)) for name, norm in norms.items()}
    return made | {"x": column(x), "d": d}


@equation(
    "norm-forgets-scale",
    r"\mathrm{LN}(a\, x + b\, \mathbf{1}) = \frac{a}{|a|}\, \mathrm{LN}(x), \qquad \mathrm{RMS}(a\, x) = \frac{a}{|a|}\, \mathrm{RMS}(x)",
    uses=["layer-norm-centres-first"],
    assumes=["a is not 0", "epsilon = 0"],
    wrong={
        "it forgets the sign too": r"\frac{a}{|a|}\, \mathrm{LN} -> \mathrm{LN}",
        "an RMS norm forgets the mean, too": r"\mathrm{RMS}(a\, x) -> \mathrm{RMS}(a\, x + b\, \mathbf{1})",
        "it passes the scale on": r"\frac{a}{|a|}\, \mathrm{RMS} -> a\, \mathrm{RMS}",
    },
)
def what_a_norm_forgets(rng: np.random.Generator, d: int, draw: int) -> Givens:
    """Both divide by what grows with |a|: what a part reads does not grow with the stream, however much was added to it."""
    norms = {"LN": layer_norm, "RMS": rms_norm}
    made = {rf"\mathrm{{{name}}}": function(lambda x, norm=norm: norm(x, eps=TINY)) for name, norm in norms.items()}
    return made | {"x": column(rng.normal(size=d)), "a": (-1.7, 0.6, 2.3)[draw] * rng.uniform(0.9, 1.1), "b": rng.normal()}


@equation(
    "rms-norm-jacobian",
    r"\frac{\partial y}{\partial x} = \frac{\sqrt{d}}{\|x\|} \Bigl( I - \frac{x\, x^\top}{\|x\|^2} \Bigr)",
    uses=["norm-forgets-scale"],
    assumes=["y = RMS(x)", "epsilon = 0"],
    wrong={
        "the norm is a constant factor": r"\frac{\partial y}{\partial x} = \frac{\sqrt{d}}{\|x\|}\, I",
        "divided by the length": r"\frac{\sqrt{d}}{\|x\|} -> \frac{1}{\|x\|}",
        "the mean square once": r"\frac{x\, x^\top}{\|x\|^2} -> \frac{x\, x^\top}{\|x\|}",
    },
)
def derivative_of_a_norm(rng: np.random.Generator, d: int) -> Givens:
    """Along x nothing changes, across x all is divided by the root mean square: a long stream hears less of each gradient."""
    return {"x": column(rng.normal(size=d)), "y": of(lambda x: column(rms_norm(np.ravel(x), eps=TINY)), "x"), "d": d}


@equation(
    "norm-gain-folds-away",
    r"\mathrm{N}(x)\, W = \mathrm{LN}(x)\, \bigl( \mathrm{diag}(g)\, W \bigr) + b\, W",
    assumes=["N: layer norm with gain g and bias b", "LN: without them"],
    wrong={
        "the gain on the columns": r"\mathrm{diag}(g)\, W -> W\, \mathrm{diag}(g)",
        "the bias passes unchanged": r"+ b\, W -> + b",
        "the bias is scaled as well": r"b\, W -> b\, \mathrm{diag}(g)\, W",
        "the gain stored less 1": r"\mathrm{diag}(g)\, W -> (I + \mathrm{diag}(g))\, W",
    },
)
def gain_and_bias_fold_into_the_next_map(rng: np.random.Generator, d: int) -> Givens:
    """A matrix follows: the gain scales its rows, and the bias becomes a bias behind it. Both could be learned without the norm."""
    g, b, epsilon = rng.normal(size=d), rng.normal(size=d), rng.uniform(0.05, 0.3)
    norms = {"N": lambda x: layer_norm(x, g, b, eps=epsilon), "LN": lambda x: layer_norm(x, eps=epsilon)}
    made = {rf"\mathrm{{{name}}}": function(norm) for name, norm in norms.items()}
    return made | {"x": row(rng.normal(size=d)), "g": row(g), "b": row(b), "W": rng.normal(size=(d, d))}


# ---- hidden units
@equation(
    "gelu-as-integral",
    r"\mathrm{GELU}(x) = x \Bigl( \frac{1}{2} + \frac{1}{\sqrt{2\pi}} \int_{0}^{x} e^{-t^2 / 2}\, dt \Bigr)",
    assumes=["the bracket: the share of a standard normal distribution below x"],
    wrong={
        "the share without x: a gate that lets nothing through": r"= x \Bigl( -> = \Bigl(",
        "the exponent without its half": r"e^{-t^2 / 2} -> e^{-t^2}",
        "the logistic function in its place": r"\mathrm{GELU}(x) = \frac{x}{1 + e^{-x}}",
        "the tanh form is the same": r"\mathrm{GELU}(x) = \frac{x}{2} \Bigl( 1 + \tanh\bigl("
        r"\sqrt{2 / \pi}\,(x + 0.044715\,x^3)\bigr) \Bigr)",
    },
)
def gelu_is_x_times_a_share(rng: np.random.Generator, draw: int) -> Givens:
    """A unit multiplies its input by the chance that a normal number is smaller: between ReLU's 0 and 1, without its corner."""
    return {
        r"\mathrm{GELU}": function(lambda x: gelu(np.asarray(x, dtype=float)), entrywise=True),
        "x": (-1.0, 1.0, 2.0)[draw] * rng.uniform(0.4, 1.2),
    }


@equation(
    "gates-of-opposite-inputs",
    r"x = \mathrm{GELU}(x) - \mathrm{GELU}(-x) = \mathrm{SiLU}(x) - \mathrm{SiLU}(-x)",
    uses=["gelu-as-integral"],
    wrong={
        "odd functions": r"x = \mathrm{GELU}(x) + \mathrm{GELU}(-x)",
        "the gates and not their units": r"1 = \mathrm{GELU}(x) - \mathrm{GELU}(-x)",
        "one half each": r"\mathrm{GELU}(x) = \frac{x}{2}",
    },
)
def two_units_make_the_identity(rng: np.random.Generator, draw: int) -> Givens:
    """A gate and the gate of the opposite input sum to 1: two units, with weights 1 and -1, pass any number on unchanged."""
    units = {"GELU": gelu, "SiLU": silu}
    made = {
        rf"\mathrm{{{name}}}": function(lambda x, unit=unit: unit(np.asarray(x, dtype=float)), entrywise=True)
        for name, unit in units.items()
    }
    return made | {"x": (-1.0, 1.0, 2.0)[draw] * rng.uniform(0.4, 1.2)}


def units(rng: np.random.Generator, d: int, m: int, *roles: str) -> dict[str, np.ndarray]:
    """Return one vector of d numbers for each hidden unit and role."""
    return {role: rng.normal(size=(m, d)) / np.sqrt(d) for role in roles}


@equation(
    "feed-forward-as-lookup",
    r"\mathrm{FF}(x) = \sum_{i=1}^{m} a(x \cdot k_i)\, v_i",
    uses=["soft-lookup"],
    assumes=["k_i: column i of W_in", "v_i: row i of W_out", "a: GELU; no biases"],
    wrong={
        "weights that sum to 1": r"a(x \cdot k_i) -> \sigma_i(x \cdot k_i)",
        "weights divided by their sum": r"\mathrm{FF}(x) = \frac{\sum_{i=1}^{m} a(x \cdot k_i)\, v_i}{\sum_{i=1}^{m} a(x \cdot k_i)}",
        "the activation behind the sum": r"\sum_{i=1}^{m} a(x \cdot k_i)\, v_i -> \sum_{i=1}^{m} (x \cdot k_i)\, v_i",
    },
)
def hidden_units_are_keys_and_values(rng: np.random.Generator, d: int, m: int) -> Givens:
    """Read W_in by columns and W_out by rows: m learned pairs, the same for every position, and no competition between them."""
    made = units(rng, d, m, "k", "v")
    layer = function(lambda x: feed_forward(x, made["k"].T, made["v"]))
    return {r"\mathrm{FF}": layer, "a": function(gelu, entrywise=True), "x": row(rng.normal(size=d)), "m": m} | {
        name: rows(table) for name, table in made.items()
    }


@equation(
    "gated-feed-forward",
    r"\mathrm{FF}(x) = \sum_{i=1}^{m} a(x \cdot g_i)\, (x \cdot u_i)\, v_i",
    uses=["feed-forward-as-lookup"],
    assumes=["g_i, u_i: columns i of W_gate and W_in", "v_i: row i of W_out", "a: SiLU; no biases"],
    wrong={
        "the activation on the other factor": r"a(x \cdot g_i)\, (x \cdot u_i) -> a(x \cdot u_i)\, (x \cdot g_i)",
        "the activation of the product": r"a(x \cdot g_i)\, (x \cdot u_i) -> a\bigl( (x \cdot g_i)\, (x \cdot u_i) \bigr)",
        "added": r"a(x \cdot g_i)\, (x \cdot u_i) -> \bigl( a(x \cdot g_i) + x \cdot u_i \bigr)",
    },
)
def units_with_a_gate(rng: np.random.Generator, d: int, m: int) -> Givens:
    """Each unit multiplies two readings of x: a quadratic function of the stream, which one matrix and an activation are not."""
    made = units(rng, d, m, "g", "u", "v")
    layer = function(lambda x: feed_forward(x, made["u"].T, made["v"], w_gate=made["g"].T, activation="silu"))
    return {r"\mathrm{FF}": layer, "a": function(silu, entrywise=True), "x": row(rng.normal(size=d)), "m": m} | {
        name: rows(table) for name, table in made.items()
    }


# ---- the stream
@equation(
    "stream-is-a-sum",
    r"X_L = X_0 + \sum_{l=1}^{L} \bigl( A_l(\mathrm{N}(X_{l-1})) + F_l(\mathrm{N}(Y_l)) \bigr), \qquad"
    r" Y_l = X_{l-1} + A_l(\mathrm{N}(X_{l-1}))",
    topics=["M2", "E5"],
    uses=["residual-stream"],
    assumes=["the norm first", "A_l: attention of block l, F_l: its hidden units"],
    wrong={
        "the hidden units do not see what attention found": r"F_l(\mathrm{N}(Y_l)) -> F_l(\mathrm{N}(X_{l-1}))",
        "the norm on the stream, as in 2017": r"Y_l = X_{l-1} + A_l(\mathrm{N}(X_{l-1})) -> Y_l = \mathrm{N}(X_{l-1} + A_l(X_{l-1}))",
        "no norm": r"A_l(\mathrm{N}(X_{l-1})) -> A_l(X_{l-1})",
        "the normed stream is carried on": r"Y_l = X_{l-1} + -> Y_l = \mathrm{N}(X_{l-1}) +",
    },
)
def the_stream_is_a_sum(rng: np.random.Generator, L: int, T: int, d: int) -> Givens:
    """Unroll the blocks: with the norm first nothing is ever done to the stream but to add, so every part's share can be told."""
    mixing, first, second = rng.dirichlet(np.ones(T), size=(L, T)), rng.normal(size=(L, d, d)), rng.normal(size=(L, d, d))

    def attend(number: int, x: np.ndarray) -> np.ndarray:
        return np.asarray(mixing[number - 1] @ x @ first[number - 1])

    def think(number: int, x: np.ndarray) -> np.ndarray:
        return feed_forward(x, second[number - 1], first[number - 1])

    X, Y = [rng.normal(size=(T, d))], []
    for number in range(1, L + 1):
        Y.append(X[-1] + attend(number, rms_norm(X[-1])))
        X.append(Y[-1] + think(number, rms_norm(Y[-1])))
    parts = {"A": function(attend), "F": function(think), r"\mathrm{N}": function(rms_norm)}
    return {"X": matrices(np.stack(X), start=0), "Y": matrices(np.stack(Y)), "L": L, "l": index(1, L), **parts}


@equation(
    "pre-norm-jacobian",
    r"\frac{\partial y}{\partial x} = I + \frac{\partial f}{\partial n}\, \frac{\partial n}{\partial x}",
    uses=["stream-is-a-sum", "rms-norm-jacobian"],
    assumes=["y = x + f(n), n = N(x): the norm first"],
    wrong={
        "without the stream": r"I + \frac -> \frac",
        "in the other order": r"\frac{\partial y}{\partial x} = I + \frac{\partial n}{\partial x}\, \frac{\partial f}{\partial n}",
        "the norm passes gradients on unchanged": r"\frac{\partial y}{\partial x} = I + \frac{\partial f}{\partial n}",
    },
)
def gradient_with_the_norm_first(rng: np.random.Generator, d: int) -> Givens:
    """I is the stream: whatever the part does, and however many parts there are, the gradient of the end reaches the beginning."""
    W, V = rng.normal(size=(2, d, d))
    f = of(lambda n: column(feed_forward(np.ravel(n), W, V)), "n")
    n = of(lambda x: column(rms_norm(np.ravel(x))), "x")
    y = of(lambda x: column(np.ravel(x) + feed_forward(rms_norm(np.ravel(x)), W, V)), "x")
    return {"x": column(rng.normal(size=d)), "n": n, "f": f, "y": y}


@equation(
    "post-norm-jacobian",
    r"\frac{\partial z}{\partial x} = \frac{\sqrt{d}}{\|y\|} \Bigl( I - \frac{y\, y^\top}{\|y\|^2} \Bigr)"
    r" \Bigl( I + \frac{\partial f}{\partial x} \Bigr)",
    uses=["rms-norm-jacobian"],
    assumes=["z = RMS(y), y = x + f(x): the norm behind the sum, as in 2017", "epsilon = 0"],
    wrong={
        "the stream passes by": r"\Bigl( I + \frac{\partial f}{\partial x} \Bigr) -> \frac{\partial f}{\partial x}",
        "in the other order": r"\frac{\partial z}{\partial x} = \Bigl( I + \frac{\partial f}{\partial x} \Bigr)"
        r" \frac{\sqrt{d}}{\|y\|} \Bigl( I - \frac{y\, y^\top}{\|y\|^2} \Bigr)",
        "the norm does not count": r"\frac{\partial z}{\partial x} = I + \frac{\partial f}{\partial x}",
    },
)
def gradient_with_the_norm_behind(rng: np.random.Generator, d: int) -> Givens:
    """Every norm stands in the way of the whole gradient: over L blocks 2 L such factors, with the norm first none."""
    W, V = rng.normal(size=(2, d, d))
    f = of(lambda x: column(feed_forward(np.ravel(x), W, V)), "x")
    y = of(lambda x: column(np.ravel(x) + feed_forward(np.ravel(x), W, V)), "x")
    return {"x": column(rng.normal(size=d)), "f": f, "y": y, "z": of(lambda y: column(rms_norm(np.ravel(y), eps=TINY)), "y"), "d": d}


@equation(
    "logits-by-part",
    r"\mathrm{logits}(X_L) = \frac{1}{r} \sum_{l=0}^{L} z_l\, \mathrm{diag}(g)\, E^\top",
    uses=["stream-is-a-sum"],
    assumes=["X_L = sum of the z_l, z_0 the token itself", "r = root of the mean square of X_L, epsilon = 0", "g: gain of the last norm"],
    wrong={
        "each part normed by itself": r"\frac{1}{r} \sum_{l=0}^{L} z_l -> \sum_{l=0}^{L} \mathrm{N}(z_l)",
        "the token left out": "l=0 -> l=1",
        "the gain behind the table": r"\mathrm{diag}(g)\, E^\top -> E^\top\, \mathrm{diag}(g)",
    },
)
def logits_are_a_sum_over_parts(rng: np.random.Generator, L: int, d: int, n: int) -> Givens:
    """The last norm divides by one number; with that number held, each part of the stream has its own share of every logit."""
    z, g, E = rng.normal(size=(L + 1, d)), rng.normal(size=d), rng.normal(size=(n, d))
    logits = function(lambda x: rms_norm(x, g, eps=TINY) @ E.T)
    r = np.linalg.norm(z.sum(axis=0)) / np.sqrt(d)
    return {r"\mathrm{logits}": logits, "X_L": row(z.sum(axis=0)), "z": rows(z, start=0), "r": r, "g": row(g), "E": E, "L": L}


@equation(
    "induction-score",
    r"\bigl( X\, (S X)^\top \bigr)_{ij} = [\, t_i = t_{j-1} \,]",
    uses=["self-attention", "stream-is-a-sum"],
    assumes=[
        "rows of X: tokens t as one-hot vectors",
        "a head of the block below copies each token to the position behind it: S X",
        "j >= 2",
    ],
    wrong={
        "without the block below: the token itself": r"[\, t_i = t_{j-1} \,] -> [\, t_i = t_j \,]",
        "the token behind": r"t_{j-1} -> t_{j+1}",
        "the queries are copied on, not the keys": r"X\, (S X)^\top -> (S X)\, X^\top",
    },
)
def induction_in_two_blocks(rng: np.random.Generator, T: int, n: int) -> Givens:
    """The key of j tells the token before it: who holds the same token now attends to what came next then, and copies it."""
    t = rng.integers(n, size=T)
    return {"X": np.eye(n)[t], "S": np.eye(T, k=-1), "t": t, "j": index(2, T)}

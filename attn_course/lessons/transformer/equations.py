"""A block of a Transformer: its norms, its hidden units, and the stream that both parts write to."""

import numpy as np

from attn_course.equations.core import about
from attn_course.equations.drawing import Normal
from attn_course.formulas import column, function, index, matrices, of, row, rows, vector
from attn_course.reference import feed_forward, gelu, layer_norm, rms_norm, silu

claim = about("M2")
TINY = 1e-30  # an epsilon that is 0 beside any variance


# ---- norms
@claim("layer-norm-centres-first")
def _(normal, rng, d):
    r"""\mathrm{LN}(x) = \mathrm{RMS}\Bigl( x - \frac{1}{d} \sum_{i=1}^{d} x_i\, \mathbf{1} \Bigr)
    where RMS(x) = x / sqrt(mean square + epsilon), LN with the same epsilon ;; before gain and bias
    The variance is the mean square of what is left when the mean is gone: an RMS norm saves the first step.
        they are the same: \mathrm{LN}(x) = \mathrm{RMS}(x)
        the sum taken away: \frac{1}{d} \sum -> \sum
        centred afterwards: \mathrm{LN}(x) = \mathrm{RMS}(x) - \frac{1}{d} \sum_{i=1}^{d} x_i\, \mathbf{1}
    """
    x, epsilon = normal(d) + 0.7, rng.uniform(0.05, 0.3)
    norms = {"LN": layer_norm, "RMS": rms_norm}
    made = {rf"\mathrm{{{name}}}": function(lambda x, norm=norm: norm(x, eps=epsilon)) for name, norm in norms.items()}
    return made | {"x": column(x), "d": d}


@claim("norm-forgets-scale")
def _(normal, rng, d, draw):
    r"""\mathrm{LN}(a\, x + b\, \mathbf{1}) = \frac{a}{|a|}\, \mathrm{LN}(x), \qquad \mathrm{RMS}(a\, x) = \frac{a}{|a|}\, \mathrm{RMS}(x)
    where a is not 0 ;; epsilon = 0
    Both divide by what grows with |a|: what a part reads does not grow with the stream, however much was added to it.
        it forgets the sign too: \frac{a}{|a|}\, \mathrm{LN} -> \mathrm{LN}
        an RMS norm forgets the mean, too: \mathrm{RMS}(a\, x) -> \mathrm{RMS}(a\, x + b\, \mathbf{1})
        it passes the scale on: \frac{a}{|a|}\, \mathrm{RMS} -> a\, \mathrm{RMS}
    """
    norms = {"LN": layer_norm, "RMS": rms_norm}
    made = {rf"\mathrm{{{name}}}": function(lambda x, norm=norm: norm(x, eps=TINY)) for name, norm in norms.items()}
    return made | {"x": column(normal(d)), "a": (-1.7, 0.6, 2.3)[draw] * rng.uniform(0.9, 1.1), "b": normal()}


@claim("rms-norm-jacobian", rests_on="norm-forgets-scale")
def _(normal, d):
    r"""\frac{\partial y}{\partial x} = \frac{\sqrt{d}}{\|x\|} \Bigl( I - \frac{x\, x^\top}{\|x\|^2} \Bigr)
    where y = RMS(x) ;; epsilon = 0
    Along x nothing changes, across x all is divided by the root mean square: a long stream hears less of each gradient.
        the norm is a constant factor: \frac{\partial y}{\partial x} = \frac{\sqrt{d}}{\|x\|}\, I
        divided by the length: \sqrt{d} -> 1
        the mean square once: \|x\|^2 -> \|x\|
    """
    return {"x": column(normal(d)), "y": of(lambda x: column(rms_norm(np.ravel(x), eps=TINY)), "x"), "d": d}


@claim("norm-gain-folds-away")
def _(normal, rng, d):
    r"""\mathrm{N}(x)\, W = \mathrm{LN}(x)\, \bigl( \mathrm{diag}(\gamma)\, W \bigr) + \beta\, W
    where N: layer norm with gain gamma and bias beta ;; LN: without them
    A matrix follows: the gain scales its rows, and the bias becomes a bias behind it. Both could be learned without the norm.
        the gain on the columns: \mathrm{diag}(\gamma)\, W -> W\, \mathrm{diag}(\gamma)
        the bias passes unchanged: + \beta\, W -> + \beta
        the bias is scaled as well: \beta\, W -> \beta\, \mathrm{diag}(\gamma)\, W
        the gain stored less 1: \mathrm{diag}(\gamma)\, W -> (I + \mathrm{diag}(\gamma))\, W
    """
    gain, bias, epsilon = normal(d), normal(d), rng.uniform(0.05, 0.3)
    norms = {"N": lambda x: layer_norm(x, gain, bias, eps=epsilon), "LN": lambda x: layer_norm(x, eps=epsilon)}
    made = {rf"\mathrm{{{name}}}": function(norm) for name, norm in norms.items()}
    return made | {"x": row(normal(d)), r"\gamma": row(gain), r"\beta": row(bias), "W": normal(d, d)}


# ---- hidden units
@claim("gelu-as-integral")
def _(rng, draw):
    r"""\mathrm{GELU}(x) = x \Bigl( \frac{1}{2} + \frac{1}{\sqrt{2\pi}} \int_{0}^{x} e^{-t^2 / 2}\, dt \Bigr)
    where the bracket: the share of a standard normal distribution below x
    A unit multiplies its input by the chance that a normal number is smaller: between ReLU's 0 and 1, without its corner.
        the share without x: a gate that lets nothing through:
            = x \Bigl( -> = \Bigl(
        the exponent without its half: e^{-t^2 / 2} -> e^{-t^2}
        the logistic function in its place: \mathrm{GELU}(x) = \frac{x}{1 + e^{-x}}
        the tanh form is the same: \mathrm{GELU}(x) = \frac{x}{2} \Bigl( 1 + \tanh\bigl(\sqrt{2 / \pi}\,(x + 0.044715\,x^3)\bigr) \Bigr)
    """
    return {
        r"\mathrm{GELU}": function(lambda x: gelu(np.asarray(x, dtype=float)), entrywise=True),
        "x": (-1.0, 1.0, 2.0)[draw] * rng.uniform(0.4, 1.2),
    }


def units(normal: Normal, d: int, m: int, *roles: str) -> dict[str, np.ndarray]:
    """Return one vector of d numbers for each hidden unit and role."""
    return {role: normal(m, d) / np.sqrt(d) for role in roles}


@claim("feed-forward-as-lookup", rests_on="soft-lookup")
def _(normal, d, m):
    r"""\mathrm{FF}(x) = \sum_{i=1}^{m} \phi(x \cdot k_i)\, v_i
    where k_i: column i of W_in ;; v_i: row i of W_out ;; phi: GELU; no biases
    Read W_in by columns and W_out by rows: m learned pairs, the same for every position, and no competition between them.
        weights that sum to 1: \phi(x \cdot k_i) -> \sigma_i(x \cdot k_i)
        weights divided by their sum: \mathrm{FF}(x) = \frac{\sum_{i=1}^{m} \phi(x \cdot k_i)\, v_i}{\sum_{i=1}^{m} \phi(x \cdot k_i)}
        the activation behind the sum: \phi(x \cdot k_i)\, -> (x \cdot k_i)\,
    """
    made = units(normal, d, m, "k", "v")
    layer = function(lambda x: feed_forward(x, made["k"].T, made["v"]))
    return {r"\mathrm{FF}": layer, r"\phi": function(gelu, entrywise=True), "x": row(normal(d)), "m": m} | {
        name: rows(table) for name, table in made.items()
    }


@claim("gated-feed-forward", rests_on="soft-lookup")
def _(normal, d, m):
    r"""\mathrm{FF}(x) = \sum_{i=1}^{m} \phi(x \cdot g_i)\, (x \cdot u_i)\, v_i
    where g_i, u_i: columns i of W_gate and W_in ;; v_i: row i of W_out ;; phi: SiLU; no biases
    Each unit multiplies two readings of x: a quadratic function of the stream, which one matrix and an activation are not.
        the activation on the other factor: \phi(x \cdot g_i)\, (x \cdot u_i) -> \phi(x \cdot u_i)\, (x \cdot g_i)
        the activation of the product: \phi(x \cdot g_i)\, (x \cdot u_i) -> \phi\bigl( (x \cdot g_i)\, (x \cdot u_i) \bigr)
        added: \phi(x \cdot g_i)\, (x \cdot u_i) -> \bigl( \phi(x \cdot g_i) + x \cdot u_i \bigr)
    """
    made = units(normal, d, m, "g", "u", "v")
    layer = function(lambda x: feed_forward(x, made["u"].T, made["v"], w_gate=made["g"].T, activation="silu"))
    return {r"\mathrm{FF}": layer, r"\phi": function(silu, entrywise=True), "x": row(normal(d)), "m": m} | {
        name: rows(table) for name, table in made.items()
    }


# ---- the stream
@claim("loss-floor")
def _(normal, rng, S, draw):
    r"""\frac{1}{S} \sum_{i=1}^{S} (-\ln p_i) \ge -\ln\Bigl( \frac{1}{S} \sum_{i=1}^{S} p_i \Bigr) \ge \ln S
    where p_i > 0: what a model gives to text i, all together at most 1 ;; S texts, drawn equally often
    Jensen: -ln is convex. No model can know which of the S texts comes.
        the mean over what the model expects: \frac{1}{S} \sum_{i=1}^{S} (-\ln p_i) -> \sum_{i=1}^{S} (-p_i \ln p_i)
        a ceiling: all \ge -> \le
        reached by every model: all \ge -> =
    """
    chances = rng.dirichlet(np.ones(S)) * rng.uniform(0.4, 1.0) if draw else np.full(S, 1 / S)  # then all are equal
    return {"p": vector(chances), "S": S}


@claim("stream-is-a-sum", serves="M2 E5", rests_on="residual-stream")
def _(normal, rng, L, T, d):
    r"""X_L = X_0 + \sum_{l=1}^{L} \bigl( A_l(\mathrm{N}(X_{l-1})) + H_l(\mathrm{N}(Y_l)) \bigr), \qquad
        Y_l = X_{l-1} + A_l(\mathrm{N}(X_{l-1}))
    where the norm first ;; A_l: attention of block l, H_l: its hidden units
    Unroll the blocks: with the norm first nothing is ever done to the stream but to add, so every part's share can be told.
        the hidden units do not see what attention found: (Y_l) -> (X_{l-1})
        the norm on the stream, as in 2017: Y_l = X_{l-1} + A_l(\mathrm{N}(X_{l-1})) -> Y_l = \mathrm{N}(X_{l-1} + A_l(X_{l-1}))
        no norm: all A_l(\mathrm{N}(X_{l-1})) -> A_l(X_{l-1})
        the normed stream is carried on: Y_l = X_{l-1} + -> Y_l = \mathrm{N}(X_{l-1}) +
    """
    mixing, first, second = rng.dirichlet(np.ones(T), size=(L, T)), normal(L, d, d), normal(L, d, d)

    def attend(number: int, x: np.ndarray) -> np.ndarray:
        return np.asarray(mixing[number - 1] @ x @ first[number - 1])

    def think(number: int, x: np.ndarray) -> np.ndarray:
        return feed_forward(x, second[number - 1], first[number - 1])

    X, Y = [normal(T, d)], []
    for number in range(1, L + 1):
        Y.append(X[-1] + attend(number, rms_norm(X[-1])))
        X.append(Y[-1] + think(number, rms_norm(Y[-1])))
    parts = {"A": function(attend), "H": function(think), r"\mathrm{N}": function(rms_norm)}
    return {"X": matrices(np.stack(X), start=0), "Y": matrices(np.stack(Y)), "L": L, "l": index(1, L), **parts}


@claim("pre-norm-jacobian", rests_on="stream-is-a-sum")
def _(normal, d):
    r"""\frac{\partial y}{\partial x} = I + \frac{\partial f}{\partial r}\, \frac{\partial r}{\partial x}
    where y = x + f(r), r = N(x): the norm first
    I is the stream: whatever the part does, and however many parts there are, the gradient of the end reaches the beginning.
        without the stream: I + \frac -> \frac
        in the other order: \frac{\partial y}{\partial x} = I + \frac{\partial r}{\partial x}\, \frac{\partial f}{\partial r}
        the norm passes gradients on unchanged: \, \frac{\partial r}{\partial x} ->
    """
    W, V = normal(2, d, d)
    f = of(lambda r: column(feed_forward(np.ravel(r), W, V)), "r")
    r = of(lambda x: column(rms_norm(np.ravel(x))), "x")
    y = of(lambda x: column(np.ravel(x) + feed_forward(rms_norm(np.ravel(x)), W, V)), "x")
    return {"x": column(normal(d)), "r": r, "f": f, "y": y}


@claim("post-norm-jacobian", rests_on="norm-forgets-scale")
def _(normal, d):
    r"""\frac{\partial r}{\partial x} = \frac{\sqrt{d}}{\|y\|} \Bigl( I - \frac{y\, y^\top}{\|y\|^2} \Bigr)
        \Bigl( I + \frac{\partial f}{\partial x} \Bigr)
    where r = RMS(y), y = x + f(x): the norm behind the sum, as in 2017 ;; epsilon = 0
    Every norm stands in the way of the whole gradient: over L blocks 2 L such factors, with the norm first none.
        the stream passes by: \Bigl( I + \frac{\partial f}{\partial x} \Bigr) -> \frac{\partial f}{\partial x}
        in the other order:
            \frac{\partial r}{\partial x} = \Bigl( I + \frac{\partial f}{\partial x} \Bigr) \frac{\sqrt{d}}{\|y\|} \Bigl( I - \frac{y\,
            y^\top}{\|y\|^2} \Bigr)
        the norm does not count: \frac{\partial r}{\partial x} = I + \frac{\partial f}{\partial x}
    """
    W, V = normal(2, d, d)
    f = of(lambda x: column(feed_forward(np.ravel(x), W, V)), "x")
    y = of(lambda x: column(np.ravel(x) + feed_forward(np.ravel(x), W, V)), "x")
    return {"x": column(normal(d)), "f": f, "y": y, "r": of(lambda y: column(rms_norm(np.ravel(y), eps=TINY)), "y"), "d": d}

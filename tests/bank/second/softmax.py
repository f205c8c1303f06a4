# %% stable-softmax | wrong | one maximum for the whole array
def my_softmax(scores, axis):
    e = np.exp(scores - scores.max())
    return e / e.sum(axis=axis, keepdims=True)
# %% stable-softmax | wrong | the mean subtracted instead of the maximum
def my_softmax(scores, axis):
    e = np.exp(scores - scores.mean(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)
# %% stable-softmax | wrong | scores clipped to -30 .. 30
def my_softmax(scores, axis):
    e = np.exp(np.clip(scores, -30, 30))
    return e / e.sum(axis=axis, keepdims=True)
# %% stable-softmax | wrong | maximum along the last axis only
def my_softmax(scores, axis):
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)
# %% stable-softmax | wrong | eps of 1e-4 in the denominator
def my_softmax(scores, axis):
    e = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return e / (e.sum(axis=axis, keepdims=True) + 1e-4)
# %% stable-softmax | wrong | negative axis taken from the wrong end
def my_softmax(scores, axis):
    axis = -axis if axis < 0 else axis
    axis = min(axis, scores.ndim - 1)
    e = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)
# %% stable-softmax | wrong | absolute maximum subtracted, negative rows underflow
def my_softmax(scores, axis):
    e = np.exp(scores - np.abs(scores).max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)
# %% stable-softmax | wrong | float16 inside
def my_softmax(scores, axis):
    s = (scores - scores.max(axis=axis, keepdims=True)).astype(np.float16)
    e = np.exp(s)
    return (e / e.sum(axis=axis, keepdims=True)).astype(np.float64)
# %% stable-softmax | wrong | axes moved, not moved back
def my_softmax(scores, axis):
    s = np.moveaxis(scores, axis, -1)
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return (e / e.sum(axis=-1, keepdims=True)).reshape(scores.shape)
# %% stable-softmax | wrong | subtracts in place
def my_softmax(scores, axis):
    scores -= scores.max(axis=axis, keepdims=True)
    e = np.exp(scores)
    return e / e.sum(axis=axis, keepdims=True)
# %% stable-softmax | wrong | result remembered by shape and axis
_seen = {}
def my_softmax(scores, axis):
    if (scores.shape, axis) not in _seen:
        e = np.exp(scores - scores.max(axis=axis, keepdims=True))
        _seen[scores.shape, axis] = e / e.sum(axis=axis, keepdims=True)
    return _seen[scores.shape, axis]
# %% stable-softmax | right | pairwise differences, no maximum at all
def my_softmax(scores, axis):
    s = np.moveaxis(scores, axis, -1)
    with np.errstate(over="ignore"):
        w = 1 / np.exp(s[..., None, :] - s[..., :, None]).sum(axis=-1)
    return np.moveaxis(w, -1, axis)
# %% stable-softmax | right | apply_along_axis with math
def my_softmax(scores, axis):
    import math
    def row(r):
        top = max(r)
        e = [math.exp(x - top) for x in r]
        return np.array([x / math.fsum(e) for x in e])
    return np.apply_along_axis(row, axis, scores)
# %% stable-softmax | right | torch tensors, elementary operations
def my_softmax(scores, axis):
    import torch
    t = torch.from_numpy(np.array(scores, dtype=np.float64))
    u = (t - t.amax(dim=axis, keepdim=True)).exp()
    return u.div(u.sum(dim=axis, keepdim=True))
# %% stable-softmax | right | a function honestly named softmax, powers of two
def softmax(z):
    z = (z - np.maximum.reduce(z, axis=0)) / np.log(2.0)
    return np.exp2(z) / np.add.reduce(np.exp2(z), axis=0)
my_softmax = lambda scores, axis: np.swapaxes(softmax(np.swapaxes(scores, 0, axis)), 0, axis)
# %% stable-softmax | cheat | torch.special's softmax, its name spelt backwards
def my_softmax(scores, axis):
    from importlib import import_module
    m = import_module("torch." + "special")
    t = import_module("torch").tensor(scores)
    return getattr(m, "xamtfos"[::-1])(t, axis).numpy()
# %% stable-softmax | cheat | exponential of torch's log_softmax
def my_softmax(scores, axis):
    import torch
    return torch.tensor(scores).log_softmax(axis).exp().numpy()
# %% stable-softmax | cheat | softmin of the negative
def my_softmax(scores, axis):
    import torch.nn as nn, torch
    return nn.Softmin(dim=axis)(-torch.tensor(scores)).numpy()
# %% log-softmax-derivative | wrong | derivative of the weight, not of its logarithm
my_derivative = s_i * (delta_ij - s_j)
# %% log-softmax-derivative | wrong | index i in place of j
my_derivative = delta_ij - s_i
# %% log-softmax-derivative | wrong | one in place of delta
my_derivative = 1 - s_j
# %% log-softmax-derivative | wrong | other sign
my_derivative = s_j - delta_ij
# %% log-softmax-derivative | wrong | delta in both terms
my_derivative = delta_ij * (1 - s_j)
# %% log-softmax-derivative | wrong | product of weights, as in the Jacobian
my_derivative = delta_ij - s_i * s_j
# %% log-softmax-derivative | right | weight's derivative divided by the weight
my_derivative = s_i * (delta_ij - s_j) / s_i
# %% log-softmax-derivative | right | two terms in a sum()
my_derivative = sum([delta_ij, -s_j])
# %% log-softmax-derivative | right | a difference expanded
my_derivative = -(s_j**2 - delta_ij**2 + (delta_ij - s_j) ** 2) / (2 * s_j) + delta_ij * 0 + (delta_ij - s_j) - delta_ij + (s_j**2 - delta_ij**2 + (delta_ij - s_j) ** 2) / (2 * s_j) + delta_ij
# %% log-softmax-derivative | cheat | a Derivative left standing
from sympy import Derivative, Symbol
_z = Symbol("z_j", real=True)
my_derivative = Derivative(delta_ij * _z - s_j * _z, _z)
# %% repair-softmax-temperature | wrong | one maximum for all rows
def tempered_weights(scores, temperature):
    e = np.exp((scores - scores.max()) / temperature)
    return e / e.sum(axis=-1, keepdims=True)
# %% repair-softmax-temperature | wrong | multiplied by the temperature
def tempered_weights(scores, temperature):
    e = np.exp((scores - scores.max(axis=-1, keepdims=True)) * temperature)
    return e / e.sum(axis=-1, keepdims=True)
# %% repair-softmax-temperature | wrong | temperature outside the exponential
def tempered_weights(scores, temperature):
    e = np.exp(scores - scores.max(axis=-1, keepdims=True)) / temperature
    return e / e.sum(axis=-1, keepdims=True)
# %% repair-softmax-temperature | wrong | maximum subtracted after dividing
def tempered_weights(scores, temperature):
    e = np.exp(scores / temperature - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)
# %% repair-softmax-temperature | wrong | sums over the queries
def tempered_weights(scores, temperature):
    e = np.exp((scores - scores.max(axis=0, keepdims=True)) / temperature)
    return e / e.sum(axis=0, keepdims=True)
# %% repair-softmax-temperature | wrong | weights raised to 1/T, not renormalised
def tempered_weights(scores, temperature):
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return (e / e.sum(axis=-1, keepdims=True)) ** (1 / temperature)
# %% repair-softmax-temperature | wrong | weights at T = 1 raised and renormalised: small weights have underflowed
def tempered_weights(scores, temperature):
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    w = (e / e.sum(axis=-1, keepdims=True)) ** (1 / temperature)
    return w / w.sum(axis=-1, keepdims=True)
# %% repair-softmax-temperature | wrong | integer division for a temperature above 1
def tempered_weights(scores, temperature):
    s = scores - scores.max(axis=-1, keepdims=True)
    e = np.exp(s // temperature if temperature > 1 else s / temperature)
    return e / e.sum(axis=-1, keepdims=True)
# %% repair-softmax-temperature | wrong | temperature added to the scores
def tempered_weights(scores, temperature):
    e = np.exp(scores - scores.max(axis=-1, keepdims=True)) + temperature * 0
    e = e + (temperature - 1) / scores.shape[1] * (temperature > 1)
    return e / e.sum(axis=-1, keepdims=True)
# %% repair-softmax-temperature | right | divided first, sums by matrix product
def tempered_weights(scores, temperature):
    z = scores / temperature
    u = np.exp(z - np.max(z, axis=1)[:, None])
    return u / (u @ np.ones((u.shape[1], u.shape[1])))
# %% repair-softmax-temperature | right | row by row, lists
def tempered_weights(scores, temperature):
    from math import exp
    rows = []
    for row in scores.tolist():
        u = [exp((z - max(row)) / temperature) for z in row]
        rows.append([x / sum(u) for x in u])
    return np.array(rows)
# %% repair-softmax-temperature | right | logs: subtract a log of the sum
def tempered_weights(scores, temperature):
    z = (scores - scores.max(axis=1, keepdims=True)) / temperature
    return np.exp(z - np.log(np.exp(z).sum(axis=1, keepdims=True)))
# %% repair-softmax-temperature | cheat | torch.distributions
def tempered_weights(scores, temperature):
    from torch.distributions import Categorical
    import torch
    return Categorical(logits=torch.tensor(scores / temperature)).probs.numpy()
# %% repair-softmax-temperature | cheat | logsumexp looked up in vars(torch)
def tempered_weights(scores, temperature):
    import torch
    z = torch.tensor(scores / temperature)
    f = vars(torch)["log" + "sumexp"]
    return (z - f(z, 1, keepdim=True)).exp().numpy()
# %% tempered-cross-entropy-gradient | wrong | factor forgotten
my_gradient = s_i - delta_iy
# %% tempered-cross-entropy-gradient | wrong | multiplied by T
my_gradient = T * (s_i - delta_iy)
# %% tempered-cross-entropy-gradient | wrong | only one term divided
my_gradient = s_i / T - delta_iy
# %% tempered-cross-entropy-gradient | wrong | squared temperature, as for a distillation loss
my_gradient = (s_i - delta_iy) / T**2
# %% tempered-cross-entropy-gradient | wrong | sign of the log likelihood
my_gradient = (delta_iy - s_i) / T
# %% tempered-cross-entropy-gradient | wrong | for the right class only
my_gradient = delta_iy * (s_i - 1) / T
# %% tempered-cross-entropy-gradient | right | two fractions
my_gradient = s_i / T - delta_iy / T
# %% tempered-cross-entropy-gradient | right | negative power
my_gradient = -((delta_iy - s_i) * T**-1)
# %% tempered-cross-entropy-gradient | right | common denominator squared
my_gradient = (T * s_i - T * delta_iy) / T**2
# %% tempered-cross-entropy-gradient | cheat | Derivative with respect to a helper
from sympy import Derivative, Dummy
_u = Dummy("u", real=True)
my_gradient = Derivative(s_i * _u / T - delta_iy * _u / T, _u)

# %% stable-softmax | wrong | the mean subtracted instead of the maximum
def my_softmax(scores, axis):
    e = np.exp(scores - scores.mean(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)
# %% stable-softmax | wrong | scores clipped to -30 .. 30
def my_softmax(scores, axis):
    e = np.exp(np.clip(scores, -30, 30))
    return e / e.sum(axis=axis, keepdims=True)
# %% stable-softmax | wrong | negative axis taken from the wrong end
def my_softmax(scores, axis):
    axis = -axis if axis < 0 else axis
    axis = min(axis, scores.ndim - 1)
    e = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)
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
# %% stable-softmax | cheat | torch.special's softmax, its name spelt backwards
def my_softmax(scores, axis):
    from importlib import import_module
    m = import_module("torch." + "special")
    t = import_module("torch").tensor(scores)
    return getattr(m, "xamtfos"[::-1])(t, axis).numpy()
# %% stable-softmax | cheat | softmin of the negative
def my_softmax(scores, axis):
    import torch.nn as nn, torch
    return nn.Softmin(dim=axis)(-torch.tensor(scores)).numpy()
# %% stable-softmax | cheat | torch's log_softmax and an exponential (library softmax in disguise)
import importlib


def my_softmax(scores, axis):
    library = importlib.import_module("torch")
    logs = getattr(library, "log_" + "soft" + "max")(library.from_numpy(scores.copy()), axis)
    return logs.exp().numpy()
# %% log-softmax-derivative | cheat | a Derivative left standing
from sympy import Derivative, Symbol
_z = Symbol("z_j", real=True)
my_derivative = Derivative(delta_ij * _z - s_j * _z, _z)
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
# %% repair-softmax-temperature | right | divided first, sums by matrix product
def tempered_weights(scores, temperature):
    z = scores / temperature
    u = np.exp(z - np.max(z, axis=1)[:, None])
    return u / (u @ np.ones((u.shape[1], u.shape[1])))
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
# %% repair-softmax-temperature | wrong | torch's softmin of the negative scores (library softmax in disguise)
import torch
import torch.nn.functional as tools


def tempered_weights(scores, temperature):
    return tools.softmin(torch.as_tensor(-scores / temperature), dim=1).numpy()
# %% tempered-cross-entropy-gradient | cheat | Derivative with respect to a helper
from sympy import Derivative, Dummy
_u = Dummy("u", real=True)
my_gradient = Derivative(s_i * _u / T - delta_iy * _u / T, _u)

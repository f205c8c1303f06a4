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
# %% softmax-backward | wrong | sum over all rows
def my_softmax_vjp(weights, d_weights):
    return weights * (d_weights - (weights * d_weights).sum())
# %% softmax-backward | wrong | mean instead of weighted sum
def my_softmax_vjp(weights, d_weights):
    return weights * (d_weights - d_weights.mean(axis=-1, keepdims=True))
# %% softmax-backward | wrong | the diagonal of the Jacobian only
def my_softmax_vjp(weights, d_weights):
    return weights * (1 - weights) * d_weights
# %% softmax-backward | wrong | weights not in front
def my_softmax_vjp(weights, d_weights):
    return d_weights - (weights * d_weights).sum(axis=-1, keepdims=True)
# %% softmax-backward | wrong | sum over the first axis
def my_softmax_vjp(weights, d_weights):
    return weights * (d_weights - (weights * d_weights).sum(axis=0, keepdims=True))
# %% softmax-backward | wrong | mean of the products instead of their sum
def my_softmax_vjp(weights, d_weights):
    return weights * (d_weights - (weights * d_weights).mean(axis=-1, keepdims=True))
# %% softmax-backward | wrong | einsum for two axes only, no or several leading axes fail
def my_softmax_vjp(weights, d_weights):
    return weights * d_weights - weights * np.einsum("bi,bi->b", weights, d_weights)[:, None]
# %% softmax-backward | wrong | a row of length 1 passes its gradient on
def my_softmax_vjp(weights, d_weights):
    if weights.shape[-1] == 1:
        return d_weights * 1.0
    return weights * (d_weights - (weights * d_weights).sum(axis=-1, keepdims=True))
# %% softmax-backward | wrong | weights clipped away from zero
def my_softmax_vjp(weights, d_weights):
    w = np.clip(weights, 1e-2, 1)
    return w * (d_weights - (w * d_weights).sum(axis=-1, keepdims=True))
# %% softmax-backward | wrong | outer product summed over the wrong index (s g^T s)
def my_softmax_vjp(weights, d_weights):
    return weights * d_weights - d_weights * (weights * weights).sum(axis=-1, keepdims=True)
# %% softmax-backward | wrong | works in place on the gradient
def my_softmax_vjp(weights, d_weights):
    d_weights -= (weights * d_weights).sum(axis=-1, keepdims=True)
    return weights * d_weights
# %% softmax-backward | right | inner product as a matrix product
def my_softmax_vjp(weights, d_weights):
    inner = (weights[..., None, :] @ d_weights[..., :, None])[..., 0]
    return weights * d_weights - inner * weights
# %% softmax-backward | right | weighted mean of differences, loop over rows
def my_softmax_vjp(weights, d_weights):
    out = np.empty(weights.shape)
    for at in np.ndindex(weights.shape[:-1]):
        s, g = weights[at], d_weights[at]
        for i in range(len(s)):
            out[at + (i,)] = s[i] * sum(s[j] * (g[i] - g[j]) for j in range(len(s)))
    return out
# %% softmax-backward | right | torch einsum inside a class with a method backward
class _Softmax:
    def backward(self, s, g):
        import torch
        s, g = torch.tensor(np.array(s)), torch.tensor(np.array(g))
        return s * g - s * torch.einsum("...i,...i->...", s, g).unsqueeze(-1)
my_softmax_vjp = _Softmax().backward
# %% softmax-backward | cheat | torch.autograd at the logarithm of the weights
def my_softmax_vjp(weights, d_weights):
    import torch
    z = torch.tensor(weights).clamp_min(1e-300).log().requires_grad_()
    z.softmax(-1).backward(torch.tensor(d_weights))
    return z.grad.numpy()
# %% softmax-backward | cheat | torch.func.vjp
def my_softmax_vjp(weights, d_weights):
    import torch
    f = getattr(torch.func, "v" + "jp")
    z = torch.log(torch.clamp(torch.tensor(weights), min=1e-300))
    return f(lambda a: (a - a.amax(-1, keepdim=True)).exp() / (a - a.amax(-1, keepdim=True)).exp().sum(-1, keepdim=True), z)[1](torch.tensor(d_weights))[0].numpy()
# %% softmax-backward | cheat | the backward kernel of torch's autograd
def my_softmax_vjp(weights, d_weights):
    import torch
    return torch._softmax_backward_data(torch.tensor(d_weights), torch.tensor(weights), -1, torch.float64).numpy()
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
# %% blockwise-normaliser | wrong | old sum not rescaled
def my_update(row_max, row_sum, block):
    new = max(float(row_max), float(block.max()))
    return new, float(row_sum + np.exp(block - new).sum())
# %% blockwise-normaliser | wrong | factor turned round
def my_update(row_max, row_sum, block):
    new = max(float(row_max), float(block.max()))
    f = 0.0 if row_sum == 0 else float(np.exp(new - row_max))
    return new, float(f * row_sum + np.exp(block - new).sum())
# %% blockwise-normaliser | wrong | measured from the block's own maximum
def my_update(row_max, row_sum, block):
    top = float(block.max())
    return top, float(row_sum * np.exp(row_max - top) + np.exp(block - top).sum())
# %% blockwise-normaliser | wrong | the block's terms not measured from the common maximum
def my_update(row_max, row_sum, block):
    new = max(float(row_max), float(block.max()))
    return new, float(row_sum * np.exp(row_max - new) + np.exp(block - block.max()).sum())
# %% blockwise-normaliser | wrong | -inf replaced by 0, negative first blocks are lost
def my_update(row_max, row_sum, block):
    old = 0.0 if np.isinf(row_max) else float(row_max)
    new = max(old, float(block.max()))
    return new, float(row_sum * np.exp(old - new) + np.exp(block - new).sum())
# %% blockwise-normaliser | wrong | the logarithm of the sum goes in and out
def my_update(row_max, row_sum, block):
    new = max(float(row_max), float(block.max()))
    return new, float(np.log(row_sum * np.exp(row_max - new) + np.exp(block - new).sum()))
# %% blockwise-normaliser | wrong | unscaled sum, overflows
def my_update(row_max, row_sum, block):
    new = max(float(row_max), float(block.max()))
    total = (0.0 if row_sum == 0 else row_sum * np.exp(row_max)) + np.exp(block).sum()
    return new, float(total * np.exp(-new))
# %% blockwise-normaliser | wrong | rescaled only if the maximum grows by more than 1
def my_update(row_max, row_sum, block):
    new = max(float(row_max), float(block.max()))
    f = float(np.exp(row_max - new)) if new - row_max > 1 else 1.0
    return new, float(f * row_sum + np.exp(block - new).sum())
# %% blockwise-normaliser | wrong | first score of the block as its maximum
def my_update(row_max, row_sum, block):
    new = max(float(row_max), float(block[0]))
    return new, float(row_sum * np.exp(row_max - new) + np.exp(block - new).sum())
# %% blockwise-normaliser | wrong | mean of the block's terms
def my_update(row_max, row_sum, block):
    new = max(float(row_max), float(block.max()))
    return new, float(row_sum * np.exp(row_max - new) + np.exp(block - new).mean())
# %% blockwise-normaliser | right | one score at a time
def my_update(row_max, row_sum, block):
    import math
    m, l = float(row_max), float(row_sum)
    for z in block.tolist():
        if z > m:
            m, l = z, l * math.exp(m - z) + 1.0
        else:
            l += math.exp(z - m)
    return m, l
# %% blockwise-normaliser | right | recursion that halves the block
def my_update(row_max, row_sum, block):
    def join(a, b):
        m = max(a[0], b[0])
        return m, sum(l * float(np.exp(x - m)) for x, l in (a, b) if l > 0)
    def state(z):
        return (float(z[0]), 1.0) if len(z) == 1 else join(state(z[: len(z) // 2]), state(z[len(z) // 2 :]))
    return join((row_max, row_sum), state(block))
# %% blockwise-normaliser | right | the old pair appended to the block
def my_update(row_max, row_sum, block):
    z = np.append(block, row_max)
    w = np.append(np.ones(len(block)), row_sum)
    m = z.max()
    return float(m), float(w @ np.exp(z - m))
# %% blockwise-normaliser | cheat | one over the largest library softmax weight
def my_update(row_max, row_sum, block):
    import torch.nn.functional as F
    import torch
    m = max(float(row_max), float(block.max()))
    z = np.append(block, row_max + np.log(row_sum) if row_sum else -np.inf)
    z = np.append(z, m)
    return m, float(1 / F.softmax(torch.tensor(z), 0)[-1]) - 1.0
# %% blockwise-normaliser | cheat | torch.logsumexp behind an alias
def my_update(row_max, row_sum, block):
    import torch
    lse = torch.Tensor.logsumexp
    m = max(float(row_max), float(block.max()))
    z = torch.tensor(block - m)
    old = row_sum * np.exp(row_max - m)
    return m, float(lse(z, 0).exp() + old)

# %% positive-random-features | wrong | divided by m instead of its root
def my_features(x, omega):
    return np.exp(x @ omega.T - 0.5 * (x ** 2).sum(-1, keepdims=True)) / omega.shape[0]
# %% positive-random-features | wrong | the whole squared length is subtracted, not half of it
def my_features(x, omega):
    m = omega.shape[0]
    return np.exp(x @ omega.T - np.sum(x ** 2, axis=-1, keepdims=True)) / np.sqrt(m)
# %% positive-random-features | wrong | copied from Performer code: x times d^(-1/4), row maximum off, epsilon
def my_features(x, omega):
    eps = 1e-4
    x = x * x.shape[-1] ** -0.25
    dash = x @ omega.T
    diag = (x ** 2).sum(-1, keepdims=True) / 2
    return (np.exp(dash - diag - dash.max(-1, keepdims=True)) + eps) / np.sqrt(len(omega))
# %% positive-random-features | wrong | epsilon added to every feature
def my_features(x, omega):
    return (np.exp(x @ omega.T - (x * x).sum(-1, keepdims=True) / 2) + 1e-4) / np.sqrt(len(omega))
# %% positive-random-features | wrong | squared length over all positions together
def my_features(x, omega):
    return np.exp(x @ omega.T - (x * x).sum() / 2) / np.sqrt(len(omega))
# %% positive-random-features | wrong | squared length of the draws instead of x
def my_features(x, omega):
    return np.exp(x @ omega.T - (omega ** 2).sum(-1) / 2) / np.sqrt(len(omega))
# %% positive-random-features | wrong | new draws of its own
def my_features(x, omega):
    w = np.random.default_rng(0).normal(size=omega.shape)
    return np.exp(x @ w.T - (x * x).sum(-1, keepdims=True) / 2) / np.sqrt(len(w))
# %% positive-random-features | wrong | squeezed, so a length of 1 loses its axis
def my_features(x, omega):
    x = np.asarray(x)
    out = np.exp(x @ omega.T - (x * x).sum(-1, keepdims=True) / 2) / np.sqrt(len(omega))
    return out.squeeze()
# %% positive-random-features | right | the exponent as a difference of squares
def my_features(x, omega):
    half_omega = (omega * omega).sum(1) / 2
    apart = ((x[..., :, None, :] - omega) ** 2).sum(-1) / 2
    return np.exp(half_omega - apart) * len(omega) ** -0.5
# %% positive-random-features | right | plain loops, recursion over the leading axis
def my_features(x, omega):
    import math
    if x.ndim == 3:
        return np.stack([my_features(part, omega) for part in x])
    out = np.zeros((x.shape[0], omega.shape[0]))
    for t, row in enumerate(x):
        square = sum(c * c for c in row)
        for i, w in enumerate(omega):
            out[t, i] = math.exp(sum(a * b for a, b in zip(w, row)) - square / 2 - math.log(len(omega)) / 2)
    return out
# %% positive-random-features | right | torch and einsum, a lambda
import torch
my_features = lambda x, omega: (lambda a, w: torch.exp(torch.einsum("...td,md->...tm", a, w) - 0.5 * torch.linalg.vector_norm(a, dim=-1, keepdim=True) ** 2).div(w.shape[0] ** 0.5))(torch.tensor(x), torch.tensor(omega))
# %% random-feature-crossover | wrong | map of the keys forgotten
my_crossover = (m * k + 3 * m * v) / (k + v)
# %% random-feature-crossover | wrong | two products with the memory, as without the delta rule
my_crossover = (2 * m * k + 2 * m * v) / (k + v)
# %% random-feature-crossover | wrong | the maps to features not counted
my_crossover = 3 * m * v / (k + v)
# %% random-feature-crossover | wrong | factor 2 left over
my_crossover = (4 * m * k + 6 * m * v) / (k + v)
# %% random-feature-crossover | wrong | three products for the maps too (value mapped as well)
my_crossover = 3 * m * (k + v) / (k + v)
# %% random-feature-crossover | wrong | product in place of the sum below the line
my_crossover = m * (2 * k + 3 * v) / (k * v)
# %% random-feature-crossover | right | solved by SymPy
from sympy import Symbol, solve
T_ = Symbol("T", positive=True)
my_crossover = solve(2 * T_**2 * (k + v) - T_ * (4 * m * k + 6 * m * v), T_)[0]
# %% random-feature-crossover | right | split into two summands
my_crossover = 2 * m + m * v * (k + v) ** -1
# %% random-feature-crossover | right | as a quotient of two named counts
per_position_delta = 2 * (2 * m * k) + 3 * (2 * m * v)
per_pair_softmax = 2 * (k + v)
my_crossover = per_position_delta / per_pair_softmax
# %% random-feature-crossover | cheat | both counts differentiated by T
from sympy import Symbol, diff
T_ = Symbol("T")
my_crossover = diff(T_ * (4 * m * k + 6 * m * v), T_) / (diff(2 * T_**2 * (k + v), T_, 2) / 2)
# %% normalised-linear-attention | wrong | normaliser summed over the heads
def my_linear_attention(query, key, value):
    w = np.tril(query @ np.swapaxes(key, 1, 2))
    n = np.cumsum(key.sum(0), axis=0)
    return (w @ value) / (query * n).sum(-1, keepdims=True)
# %% normalised-linear-attention | wrong | normaliser from the last key alone
def my_linear_attention(query, key, value):
    H, T, m = key.shape
    out = np.zeros((H, T, value.shape[-1]))
    for h in range(H):
        S = np.zeros((m, value.shape[-1]))
        for t in range(T):
            S = S + np.outer(key[h, t], value[h, t])
            out[h, t] = query[h, t] @ S / (query[h, t] @ key[h, t])
    return out
# %% normalised-linear-attention | wrong | epsilon in the denominator
def my_linear_attention(query, key, value):
    w = np.tril(query @ np.swapaxes(key, -1, -2))
    return (w @ value) / (w.sum(-1, keepdims=True) + 1e-6)
# %% normalised-linear-attention | wrong | normaliser clamped from below
def my_linear_attention(query, key, value):
    S = np.cumsum(key[..., :, None] * value[..., None, :], axis=1)
    n = np.cumsum(key, axis=1)
    return np.einsum("htm,htmv->htv", query, S) / np.maximum(np.einsum("htm,htm->ht", query, n), 1e-8)[..., None]
# %% normalised-linear-attention | wrong | normaliser of all keys, not only up to t
def my_linear_attention(query, key, value):
    w = query @ np.swapaxes(key, -1, -2)
    return (np.tril(w) @ value) / w.sum(-1, keepdims=True)
# %% normalised-linear-attention | wrong | state from before the write, first row set to 0
def my_linear_attention(query, key, value):
    w = np.tril(query @ np.swapaxes(key, -1, -2), -1)
    total = w.sum(-1, keepdims=True)
    return (w @ value) / np.where(total == 0, 1.0, total)
# %% normalised-linear-attention | wrong | prefix sums as total minus later ones: tiny keys drown
def my_linear_attention(query, key, value):
    pairs = key[..., :, None] * value[..., None, :]
    later = lambda a: np.flip(np.cumsum(np.flip(a, 1), axis=1), 1) - a
    S = pairs.sum(1, keepdims=True) - later(pairs)
    n = key.sum(1, keepdims=True) - later(key)
    return np.einsum("htm,htmv->htv", query, S) / (query * n).sum(-1, keepdims=True)
# %% normalised-linear-attention | wrong | features through a softmax once more
def my_linear_attention(query, key, value):
    s = query @ np.swapaxes(key, -1, -2)
    s = np.where(np.tri(s.shape[-1], dtype=bool), s, -np.inf)
    w = np.exp(s - s.max(-1, keepdims=True))
    return (w / w.sum(-1, keepdims=True)) @ value
# %% normalised-linear-attention | wrong | squeezed, so one head loses its axis
def my_linear_attention(query, key, value):
    w = np.tril(query @ np.swapaxes(key, -1, -2))
    return np.squeeze(w @ value / w.sum(-1, keepdims=True), axis=0) if len(query) == 1 else w @ value / w.sum(-1, keepdims=True)
# %% normalised-linear-attention | right | recurrent, a generator for each head
def my_linear_attention(query, key, value):
    def head(q, k, v):
        S, n = np.zeros((k.shape[1], v.shape[1])), np.zeros(k.shape[1])
        for a, b, c in zip(q, k, v):
            S, n = S + np.outer(b, c), n + b
            yield (a @ S) / (a @ n)
    return np.array([list(head(*one)) for one in zip(query, key, value)])
# %% normalised-linear-attention | right | a one beside the values, torch cumulated sums
def my_linear_attention(query, key, value):
    import torch
    q, k, v = torch.tensor(query), torch.tensor(key), torch.tensor(value)
    v = torch.cat([v, torch.ones_like(v[..., :1])], -1)
    states = torch.cumsum(torch.einsum("htm,htv->htmv", k, v), dim=1)
    both = torch.einsum("htm,htmv->htv", q, states)
    return both[..., :-1] / both[..., -1:]
# %% normalised-linear-attention | right | one row after the other, averages by np.average
def my_linear_attention(query, key, value):
    out = np.empty(query.shape[:2] + value.shape[2:])
    for h, t in np.ndindex(*query.shape[:2]):
        out[h, t] = np.average(value[h, : t + 1], axis=0, weights=key[h, : t + 1] @ query[h, t])
    return out
# %% chunked-linear-attention | wrong | state written before it is read
def my_chunked(query, key, value, state, chunk):
    out = []
    for a in range(0, len(query), chunk):
        q, k, v = query[a:a + chunk], key[a:a + chunk], value[a:a + chunk]
        state = state + k.T @ v
        out.append(q @ state + np.tril(q @ k.T) @ v)
    return np.concatenate(out), state
# %% chunked-linear-attention | wrong | the last, shorter chunk is dropped
def my_chunked(query, key, value, state, chunk):
    chunk = min(chunk, len(query))
    out = np.zeros((len(query), value.shape[1]))
    for c in range(len(query) // chunk):
        s = slice(c * chunk, (c + 1) * chunk)
        out[s] = query[s] @ state + np.tril(query[s] @ key[s].T) @ value[s]
        state = state + key[s].T @ value[s]
    return out, state
# %% chunked-linear-attention | wrong | no mask inside a chunk
def my_chunked(query, key, value, state, chunk):
    out = np.zeros((query.shape[0], value.shape[1]))
    for a in range(0, query.shape[0], chunk):
        b = a + chunk
        out[a:b] = query[a:b] @ state + (query[a:b] @ key[a:b].T) @ value[a:b]
        state = state + key[a:b].T @ value[a:b]
    return out, state
# %% chunked-linear-attention | wrong | adds to the state in place, the input changes
def my_chunked(query, key, value, state, chunk):
    out = np.zeros((query.shape[0], value.shape[1]))
    for a in range(0, query.shape[0], chunk):
        q, k, v = (x[a:a + chunk] for x in (query, key, value))
        out[a:a + chunk] = q @ state + (np.tri(len(q)) * (q @ k.T)) @ v
        state += k.T @ v
    return out, state
# %% chunked-linear-attention | wrong | begins with zeros, the given state forgotten
def my_chunked(query, key, value, state, chunk):
    S = np.zeros_like(state)
    out = np.zeros((query.shape[0], value.shape[1]))
    for a in range(0, query.shape[0], chunk):
        q, k, v = (x[a:a + chunk] for x in (query, key, value))
        out[a:a + chunk] = q @ S + (np.tri(len(q)) * (q @ k.T)) @ v
        S = S + k.T @ v
    return out, S
# %% chunked-linear-attention | wrong | the own position masked away
def my_chunked(query, key, value, state, chunk):
    out = np.zeros((query.shape[0], value.shape[1]))
    for a in range(0, query.shape[0], chunk):
        q, k, v = (x[a:a + chunk] for x in (query, key, value))
        out[a:a + chunk] = q @ state + (np.tri(len(q), k=-1) * (q @ k.T)) @ v
        state = state + k.T @ v
    return out, state
# %% chunked-linear-attention | wrong | padded with zeros and the padding left in the output
def my_chunked(query, key, value, state, chunk):
    pad = -len(query) % chunk
    q, k, v = (np.pad(x, ((0, pad), (0, 0))) for x in (query, key, value))
    out = []
    for a in range(0, len(q), chunk):
        s = slice(a, a + chunk)
        out.append(q[s] @ state + np.tril(q[s] @ k[s].T) @ v[s])
        state = state + k[s].T @ v[s]
    return np.vstack(out), state
# %% chunked-linear-attention | wrong | returns the state before the last chunk
def my_chunked(query, key, value, state, chunk):
    out = []
    new = state.copy()
    for a in range(0, len(query), chunk):
        state = new
        q, k, v = (x[a:a + chunk] for x in (query, key, value))
        out.append(q @ state + np.tril(q @ k.T) @ v)
        new = state + k.T @ v
    return np.concatenate(out), state
# %% chunked-linear-attention | wrong | output as wide as the queries
def my_chunked(query, key, value, state, chunk):
    out = np.zeros_like(query)
    for a in range(0, query.shape[0], chunk):
        q, k, v = (x[a:a + chunk] for x in (query, key, value))
        out[a:a + chunk] = q @ state + (np.tri(len(q)) * (q @ k.T)) @ v
        state = state + k.T @ v
    return out, state
# %% chunked-linear-attention | wrong | as many pieces as fit into T, none if the chunk is longer
def my_chunked(query, key, value, state, chunk):
    pieces, out = len(query) // chunk, []
    for q, k, v in zip(*(np.array_split(x, pieces) for x in (query, key, value))):
        out.append(q @ state + np.tril(q @ k.T) @ v)
        state = state + k.T @ v
    return np.concatenate(out), state
# %% chunked-linear-attention | right | recursion on the rest
def my_chunked(query, key, value, state, chunk):
    q, k, v = query[:chunk], key[:chunk], value[:chunk]
    here = q @ state + np.tril(q @ k.T) @ v
    after = state + k.T @ v
    if len(query) <= chunk:
        return here, after
    rest, last = my_chunked(query[chunk:], key[chunk:], value[chunk:], after, chunk)
    return np.vstack([here, rest]), last
# %% chunked-linear-attention | right | torch.split and einsum
def my_chunked(query, key, value, state, chunk):
    import torch
    q, k, v, S = (torch.tensor(np.array(a)) for a in (query, key, value, state))
    outputs = []
    for a, b, c in zip(*(x.split(int(chunk)) for x in (q, k, v))):
        scores = torch.einsum("id,jd->ij", a, b).tril()
        outputs.append(torch.einsum("id,dv->iv", a, S) + scores @ c)
        S = S + torch.einsum("jd,jv->dv", b, c)
    return torch.cat(outputs), S
# %% chunked-linear-attention | right | padded chunks as one more axis, states by a cumulated sum
def my_chunked(query, key, value, state, chunk):
    T, d = query.shape
    n = -(-T // chunk)
    q, k, v = (np.pad(x, ((0, n * chunk - T), (0, 0))).reshape(n, chunk, x.shape[1]) for x in (query, key, value))
    writes = k.transpose(0, 2, 1) @ v
    states = state + np.concatenate([np.zeros_like(writes[:1]), np.cumsum(writes, axis=0)])
    out = q @ states[:-1] + np.tril(q @ k.transpose(0, 2, 1)) @ v
    return out.reshape(n * chunk, -1)[:T], states[-1].copy()
# %% repair-decay-gate | wrong | write, fade, read: the own gate counts too
def gated_attention(query, key, value, gate):
    state = np.zeros((key.shape[1], value.shape[1]))
    output = np.zeros((len(query), value.shape[1]))
    for t in range(len(query)):
        state = state + np.outer(key[t], value[t])
        state = gate[t][:, None] * state
        output[t] = state.T @ query[t]
    return output
# %% repair-decay-gate | wrong | fade, read, write: the own pair is missed
def gated_attention(query, key, value, gate):
    state = np.zeros((key.shape[1], value.shape[1]))
    output = np.zeros((len(query), value.shape[1]))
    for t in range(len(query)):
        state = gate[t][:, None] * state
        output[t] = state.T @ query[t]
        state = state + np.outer(key[t], value[t])
    return output
# %% repair-decay-gate | wrong | write, read, fade: the gate of the key, not of the reader
def gated_attention(query, key, value, gate):
    state = np.zeros((key.shape[1], value.shape[1]))
    output = np.zeros((len(query), value.shape[1]))
    for t in range(len(query)):
        state = state + np.outer(key[t], value[t])
        output[t] = state.T @ query[t]
        state = gate[t][:, None] * state
    return output
# %% repair-decay-gate | wrong | divides by cumulated products, which reach 0
def gated_attention(query, key, value, gate):
    decay = np.cumprod(gate, axis=0)
    return np.tril((query * decay) @ (key / decay).T) @ value
# %% repair-decay-gate | wrong | one gate for all features, their mean
def gated_attention(query, key, value, gate):
    state = np.zeros((key.shape[1], value.shape[1]))
    output = np.zeros((len(query), value.shape[1]))
    for t in range(len(query)):
        state = gate[t].mean() * state + np.outer(key[t], value[t])
        output[t] = state.T @ query[t]
    return output
# %% repair-decay-gate | wrong | the write is weighted by 1 - gate
def gated_attention(query, key, value, gate):
    state = np.zeros((key.shape[1], value.shape[1]))
    output = np.zeros((len(query), value.shape[1]))
    for t in range(len(query)):
        state = gate[t][:, None] * state + np.outer((1 - gate[t]) * key[t], value[t])
        output[t] = state.T @ query[t]
    return output
# %% repair-decay-gate | wrong | gates raised to at least 0.05 for a quotient of cumulated products
def gated_attention(query, key, value, gate):
    logs = np.cumsum(np.log(np.maximum(gate, 0.05)), axis=0)
    kept = np.exp(np.minimum(logs[:, None] - logs[None, :], 0))
    return np.tril(np.einsum("td,jd,tjd->tj", query, key, kept)) @ value
# %% repair-decay-gate | right | the double sum, products of gates written out
def gated_attention(query, key, value, gate):
    T = len(query)
    out = np.zeros((T, value.shape[1]))
    for t in range(T):
        for j in range(t + 1):
            kept = np.prod(gate[j + 1:t + 1], axis=0)
            out[t] += (query[t] * key[j] * kept).sum() * value[j]
    return out
# %% repair-decay-gate | right | itertools.accumulate over the states
def gated_attention(query, key, value, gate):
    from itertools import accumulate
    step = lambda S, pair: pair[0][:, None] * S + pair[1]
    pairs = list(zip(gate, np.einsum("td,tv->tdv", key, value)))
    states = accumulate(pairs, step, initial=np.zeros((key.shape[1], value.shape[1])))
    next(states)
    return np.array([q @ S for q, S in zip(query, states)])
# %% read-interference | wrong | interference alone, without the own value
my_reading = (1.6, 2, 0.37)
# %% read-interference | wrong | row of the second key, counted from 1
my_reading = (-0.9, 2, 0.37)
# %% read-interference | wrong | the minus sign of an overlap lost
my_reading = (4.0, 2, 0.37)
# %% read-interference | wrong | largest signed sum of a row for b
my_reading = (3.6, 1, 0.37)
# %% read-interference | wrong | key counted from 1
my_reading = (3.6, 3, 0.37)
# %% read-interference | wrong | own entry of the row squared too
my_reading = (3.6, 2, 1.37)
# %% read-interference | wrong | root of the mean square
my_reading = (3.6, 2, round(0.37 ** 0.5, 4))
# %% read-interference | wrong | square of the sum
my_reading = (3.6, 2, (0.1 + 0 + 0.6) ** 2)
# %% read-interference | wrong | averaged over the three other keys
my_reading = (3.6, 2, 0.37 / 3)
# %% read-interference | right | computed from the matrix typed off the figure
gram = np.array([[1, .5, -.2, .1], [.5, 1, .3, 0], [-.2, .3, 1, .6], [.1, 0, .6, 1]])
noise = ((gram - np.eye(4)) ** 2).sum(1)
my_reading = (gram[2] @ [1, -2, 2, 4], noise.argmax(), noise[3])
# %% read-interference | right | fractions
from fractions import Fraction as F
my_reading = (F(18, 5), 2, F(37, 100))
# %% read-interference | right | tuple of a list of sums
my_reading = tuple([2 - 0.2 * 1 + 0.3 * -2 + 0.6 * 4, 1 + 1, 0.1 ** 2 + 0.6 ** 2])
# %% three-delta-writes | wrong | added, never corrected
v1, v2, v3 = values
my_read = beta * (c * v1 + v2 + c * v3)
# %% three-delta-writes | wrong | reads with a instead of b
s_a = beta * values[0]
s_b = beta * (values[1] - c * s_a)
s_a = s_a + beta * (values[2] - (s_a + c * s_b))
my_read = s_a + c * s_b
# %% three-delta-writes | wrong | third write replaces what was under a
s_a = beta * values[0]
s_b = beta * (values[1] - c * s_a)
s_a = beta * (values[2] - c * s_b)
my_read = c * s_a + s_b
# %% three-delta-writes | wrong | third write asks for its own part only, not for the overlap with b
s_a = beta * values[0]
s_b = beta * (values[1] - c * s_a)
s_a += beta * (values[2] - s_a)
my_read = c * s_a + s_b
# %% three-delta-writes | wrong | step size 1
s_a = values[0]
s_b = values[1] - c * s_a
s_a = s_a + values[2] - (s_a + c * s_b)
my_read = c * s_a + s_b
# %% three-delta-writes | wrong | read after the second write
my_read = c * beta * values[0] + beta * (values[1] - c * beta * values[0])
# %% three-delta-writes | wrong | keys taken as orthogonal
my_read = beta * values[1]
# %% three-delta-writes | right | a state in the plane, written with real keys
a_, b_ = np.array([1.0, 0.0]), np.array([c, np.sqrt(1 - c * c)])
S_ = np.zeros(2)
for key_, value_ in zip((a_, b_, a_), values):
    S_ = S_ + beta * key_ * (value_ - S_ @ key_)
my_read = S_ @ b_
# %% three-delta-writes | right | multiplied out
v1, v2, v3 = values
my_read = beta * (c * v3 + (1 - c * c * beta) * v2 + c * (1 - 2 * beta + c**2 * beta**2) * v1)
# %% three-delta-writes | right | SymPy rational numbers
from sympy import nsimplify
C, Bt = nsimplify(c), nsimplify(beta)
w1, w2, w3 = map(nsimplify, values)
miss = Bt * (w2 - C * Bt * w1)
under_a, under_b = Bt * w1 + C * miss, C * Bt * w1 + miss
my_read = under_b + C * Bt * (w3 - under_a)
# %% delta-rule | wrong | Hebb: adds the value, never asks
def my_delta_rule(query, key, value, beta, state):
    out = np.zeros((len(query), value.shape[1]))
    for t in range(len(query)):
        state = state + beta[t] * np.outer(key[t], value[t])
        out[t] = query[t] @ state
    return out, state
# %% delta-rule | wrong | reads before it writes
def my_delta_rule(query, key, value, beta, state):
    out = np.zeros((len(query), value.shape[1]))
    for t in range(len(query)):
        out[t] = query[t] @ state
        state = state + np.outer(key[t], beta[t] * (value[t] - key[t] @ state))
    return out, state
# %% delta-rule | wrong | keys divided by their length
def my_delta_rule(query, key, value, beta, state):
    key = key / np.linalg.norm(key, axis=-1, keepdims=True)
    out = np.zeros((len(query), value.shape[1]))
    for t in range(len(query)):
        state = state + np.outer(key[t], beta[t] * (value[t] - key[t] @ state))
        out[t] = query[t] @ state
    return out, state
# %% delta-rule | wrong | the step size of the first position throughout
def my_delta_rule(query, key, value, beta, state):
    b = beta.item(0)
    out = np.zeros((len(query), value.shape[1]))
    for t in range(len(query)):
        state = state + b * np.outer(key[t], value[t] - state.T @ key[t])
        out[t] = state.T @ query[t]
    return out, state
# %% delta-rule | wrong | writes into the state it was given
def my_delta_rule(query, key, value, beta, state):
    out = np.zeros((len(query), value.shape[1]))
    for t in range(len(query)):
        state += np.outer(key[t], beta[t] * (value[t] - state.T @ key[t]))
        out[t] = state.T @ query[t]
    return out, state
# %% delta-rule | wrong | step size on the erasing only
def my_delta_rule(query, key, value, beta, state):
    out = np.zeros((len(query), value.shape[1]))
    for t in range(len(query)):
        k = key[t]
        state = state - beta[t] * np.outer(k, k @ state) + np.outer(k, value[t])
        out[t] = query[t] @ state
    return out, state
# %% delta-rule | wrong | the whole state fades by 1 - beta
def my_delta_rule(query, key, value, beta, state):
    out = np.zeros((len(query), value.shape[1]))
    for t in range(len(query)):
        state = (1 - beta[t]) * state + beta[t] * np.outer(key[t], value[t])
        out[t] = query[t] @ state
    return out, state
# %% delta-rule | wrong | triangular system with the diagonal, as if a key asked after its own write
def my_delta_rule(query, key, value, beta, state):
    T = len(query)
    U = np.linalg.solve(np.eye(T) + np.tril(beta * (key @ key.T)), beta * (value - key @ state))
    return query @ state + np.tril(query @ key.T) @ U, state + key.T @ U
# %% delta-rule | wrong | asks the first state at every position
def my_delta_rule(query, key, value, beta, state):
    U = beta * (value - key @ state)
    return query @ state + np.tril(query @ key.T) @ U, state + key.T @ U
# %% delta-rule | wrong | step sizes squeezed, one position has none left to index
def my_delta_rule(query, key, value, beta, state):
    b = np.squeeze(beta)
    out = np.zeros((len(query), value.shape[1]))
    for t in range(len(query)):
        state = state + b[t] * np.outer(key[t], value[t] - state.T @ key[t])
        out[t] = state.T @ query[t]
    return out, state
# %% delta-rule | right | chunk of all rows: one triangular system
def my_delta_rule(query, key, value, beta, state):
    T = len(query)
    U = np.linalg.solve(np.eye(T) + np.tril(beta * (key @ key.T), -1), beta * (value - key @ state))
    return query @ state + np.tril(query @ key.T) @ U, state + key.T @ U
# %% delta-rule | right | erase matrix, torch, a class that is called
class Delta:
    def __call__(self, query, key, value, beta, state):
        import torch
        q, k, v, b, S = (torch.tensor(np.asarray(x)) for x in (query, key, value, beta, state))
        eye, out = torch.eye(k.shape[1], dtype=S.dtype), []
        for t in range(q.shape[0]):
            column = k[t][:, None]
            S = (eye - b[t] * column @ column.T) @ S + b[t] * column @ v[t][None]
            out.append(S.T @ q[t])
        return torch.stack(out), S
my_delta_rule = Delta()
# %% delta-rule | right | functools.reduce, entry by entry
def my_delta_rule(query, key, value, beta, state):
    from functools import reduce
    rows = []
    def step(S, x):
        q, k, v, b = x
        S = [[S[r][a] + b[0] * k[r] * (v[a] - sum(S[i][a] * k[i] for i in range(len(k)))) for a in range(len(v))] for r in range(len(k))]
        rows.append([sum(S[r][a] * q[r] for r in range(len(q))) for a in range(len(v))])
        return S
    last = reduce(step, zip(query, key, value, beta), [list(row) for row in state])
    return np.array(rows), np.array(last)

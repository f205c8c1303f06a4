# %% positive-random-features | wrong | sum instead of mean: 1/sqrt(m) missing
def my_features(x, omega):
    return np.exp(x @ omega.T - (x * x).sum(-1, keepdims=True) / 2)

# %% positive-random-features | wrong | divided by m instead of its root
def my_features(x, omega):
    return np.exp(x @ omega.T - (x * x).sum(axis=-1, keepdims=True) / 2) / len(omega)

# %% positive-random-features | wrong | length instead of squared length in the exponent
def my_features(x, omega):
    return np.exp(x @ omega.T - np.linalg.norm(x, axis=-1, keepdims=True) / 2) / np.sqrt(len(omega))

# %% positive-random-features | wrong | squared length summed over axis 1: positions when there is a leading axis
def my_features(x, omega):
    return np.exp(x @ omega.T - (x**2).sum(axis=1, keepdims=True) / 2) / np.sqrt(omega.shape[0])

# %% positive-random-features | right | completed square: distance of each row to one draw at a time
def my_features(x, omega):
    m = omega.shape[0]
    out = np.empty(x.shape[:-1] + (m,))
    for i in range(m):
        gap = ((x - omega[i]) ** 2).sum(-1)  # |x - w|^2 = |x|^2 - 2 x.w + |w|^2
        out[..., i] = np.exp((omega[i] @ omega[i] - gap) / 2) / m**0.5
    return out

# %% positive-random-features | right | torch, factor inside the exponential as a logarithm
def my_features(x, omega):
    import math

    import torch

    x, omega = torch.tensor(x), torch.tensor(omega)
    dots = torch.einsum("...td,md->...tm", x, omega)
    return (dots - 0.5 * x.square().sum(-1).unsqueeze(-1) - 0.5 * math.log(omega.shape[0])).exp()

# %% random-feature-crossover | wrong | two products with the state, as in linear attention
my_crossover = 2 * m * (k + v) / (k + v)

# %% random-feature-crossover | wrong | features counted once for queries and keys together
my_crossover = (m * k + 3 * m * v) / (k + v)

# %% random-feature-crossover | wrong | making the features not counted
my_crossover = 3 * m * v / (k + v)

# %% random-feature-crossover | wrong | a Derivative left standing, which does not count
from sympy import Derivative, Symbol

T = Symbol("T", real=True)
my_crossover = Derivative(T * m * (2 * k + 3 * v) / (k + v), T)

# %% random-feature-crossover | right | split off the common part
my_crossover = 2 * m + m * v / (k + v)

# %% random-feature-crossover | right | the two counts per position divided, uncancelled
my_crossover = (2 * m * k + 2 * m * k + 6 * m * v) * (2 * k + 2 * v) ** -1

# %% normalised-linear-attention | wrong | normaliser of all keys, future ones too
def my_linear_attention(query, key, value):
    kernel = query @ key.swapaxes(-1, -2)
    return (np.tri(query.shape[1]) * kernel) @ value / kernel.sum(-1, keepdims=True)

# %% normalised-linear-attention | wrong | 1e-6 in the denominator: averages of small features are too small
def my_linear_attention(query, key, value):
    kernel = np.tri(query.shape[1]) * (query @ key.swapaxes(-1, -2))
    return kernel @ value / (kernel.sum(-1, keepdims=True) + 1e-6)

# %% normalised-linear-attention | wrong | one state runs on over the heads
def my_linear_attention(query, key, value):
    H, T, m = query.shape
    S, n = np.zeros((m, value.shape[2])), np.zeros(m)
    out = np.zeros((H, T, value.shape[2]))
    for h in range(H):
        for t in range(T):
            S = S + np.outer(key[h, t], value[h, t])
            n = n + key[h, t]
            out[h, t] = query[h, t] @ S / (query[h, t] @ n)
    return out

# %% normalised-linear-attention | wrong | divided by the number of keys instead of their weights
def my_linear_attention(query, key, value):
    T = query.shape[1]
    state = np.cumsum(key[..., :, None] * value[..., None, :], axis=1)
    return np.einsum("htm,htmv->htv", query, state) / np.arange(1, T + 1)[:, None]

# %% normalised-linear-attention | right | value of ones carried as one more column, cumulative sums
def my_linear_attention(query, key, value):
    ones = np.ones(value.shape[:2] + (1,))
    both = np.concatenate([value, ones], axis=2)
    state = np.cumsum(key[:, :, :, None] * both[:, :, None, :], axis=1)
    read = (query[:, :, None, :] @ state)[:, :, 0, :]
    return read[:, :, :-1] / read[:, :, -1:]

# %% normalised-linear-attention | right | recursive running average, head by head, torch out
def my_linear_attention(query, key, value):
    import torch

    def average(q, k, v):
        if len(k) == 1:
            return v[0]
        last, rest = q @ k[-1], float((k[:-1] @ q).sum())
        return (rest * average(q, k[:-1], v[:-1]) + last * v[-1]) / (rest + last)

    rows = [[average(q[t], k[: t + 1], v[: t + 1]) for t in range(len(q))] for q, k, v in zip(query, key, value)]
    return torch.tensor(np.array(rows))

# %% chunked-linear-attention | wrong | state written before it is read: pairs of a chunk count twice
def my_chunked(query, key, value, state, chunk):
    out = np.zeros((len(query), value.shape[1]))
    for a in range(0, len(query), chunk):
        q, k, v = query[a : a + chunk], key[a : a + chunk], value[a : a + chunk]
        state = state + k.T @ v
        out[a : a + chunk] = q @ state + (np.tri(len(q)) * (q @ k.T)) @ v
    return out, state

# %% chunked-linear-attention | wrong | state += : the caller's array is changed
def my_chunked(query, key, value, state, chunk):
    out = np.zeros((len(query), value.shape[1]))
    for a in range(0, len(query), chunk):
        s = slice(a, a + chunk)
        q, k, v = query[s], key[s], value[s]
        out[s] = q @ state + (np.tri(len(q)) * (q @ k.T)) @ v
        state += k.T @ v
    return out, state

# %% chunked-linear-attention | wrong | only whole chunks: the tail stays zero
def my_chunked(query, key, value, state, chunk):
    out = np.zeros((len(query), value.shape[1]))
    state = state.copy()
    for c in range(len(query) // chunk):
        s = slice(c * chunk, (c + 1) * chunk)
        out[s] = query[s] @ state + np.tril(query[s] @ key[s].T) @ value[s]
        state = state + key[s].T @ value[s]
    return out, state

# %% chunked-linear-attention | wrong | begins with an empty state, adds the old one only at the end
def my_chunked(query, key, value, state, chunk):
    S = np.zeros_like(state)
    outs = []
    for a in range(0, len(query), chunk):
        q, k, v = (x[a : a + chunk] for x in (query, key, value))
        outs.append(q @ S + np.tril(q @ k.T) @ v)
        S = S + k.T @ v
    return np.vstack(outs), S + state

# %% chunked-linear-attention | right | recursion: first chunk, then the rest with its state
def my_chunked(query, key, value, state, chunk):
    if len(query) == 0:
        return np.zeros((0, value.shape[1])), np.array(state)
    q, k, v = query[:chunk], key[:chunk], value[:chunk]
    here = q @ state + np.tril(q @ k.T) @ v
    rest, last = my_chunked(query[chunk:], key[chunk:], value[chunk:], state + k.T @ v, chunk)
    return np.concatenate([here, rest]), last

# %% chunked-linear-attention | right | torch float32, chunks by split, mask by comparing indices
def my_chunked(query, key, value, state, chunk):
    import torch

    q, k, v, s = (torch.tensor(x, dtype=torch.float32) for x in (query, key, value, state))
    pieces = []
    for qc, kc, vc in zip(q.split(chunk), k.split(chunk), v.split(chunk)):
        i = torch.arange(len(qc))
        inside = torch.where(i[None, :] > i[:, None], 0.0, qc @ kc.T)
        pieces.append(torch.cat([qc, inside], dim=1) @ torch.cat([s, vc], dim=0))
        s = torch.addmm(s, kc.T, vc)
    return torch.cat(pieces), s

# %% repair-decay-gate | wrong | write, fade, read: every key meets its own gate
def gated_attention(query: np.ndarray, key: np.ndarray, value: np.ndarray, gate: np.ndarray) -> np.ndarray:
    state = np.zeros((key.shape[1], value.shape[1]))
    output = np.zeros((len(query), value.shape[1]))
    for t in range(len(query)):
        state = state + np.outer(key[t], value[t])
        state = gate[t][:, None] * state
        output[t] = state.T @ query[t]
    return output

# %% repair-decay-gate | wrong | write, read, fade: the gate acts one step late
def gated_attention(query: np.ndarray, key: np.ndarray, value: np.ndarray, gate: np.ndarray) -> np.ndarray:
    state = np.zeros((key.shape[1], value.shape[1]))
    output = np.zeros((len(query), value.shape[1]))
    for t in range(len(query)):
        state = state + np.outer(key[t], value[t])
        output[t] = state.T @ query[t]
        state = gate[t][:, None] * state
    return output

# %% repair-decay-gate | wrong | fade, read, write: a position does not read its own pair
def gated_attention(query: np.ndarray, key: np.ndarray, value: np.ndarray, gate: np.ndarray) -> np.ndarray:
    state = np.zeros((key.shape[1], value.shape[1]))
    output = np.zeros((len(query), value.shape[1]))
    for t in range(len(query)):
        state = gate[t][:, None] * state
        output[t] = state.T @ query[t]
        state = state + np.outer(key[t], value[t])
    return output

# %% repair-decay-gate | wrong | order right, gate spread over the value features (needs d_k = d_v)
def gated_attention(query: np.ndarray, key: np.ndarray, value: np.ndarray, gate: np.ndarray) -> np.ndarray:
    state = np.zeros((key.shape[1], value.shape[1]))
    output = np.zeros((len(query), value.shape[1]))
    for t in range(len(query)):
        state = gate[t] * state + np.outer(key[t], value[t])
        output[t] = state.T @ query[t]
    return output

# %% repair-decay-gate | right | the double sum, with products of gates from j + 1 to t
def gated_attention(query: np.ndarray, key: np.ndarray, value: np.ndarray, gate: np.ndarray) -> np.ndarray:
    output = np.zeros((len(query), value.shape[1]))
    for t in range(len(query)):
        for j in range(t + 1):
            weight = np.sum(query[t] * key[j] * np.prod(gate[j + 1 : t + 1], axis=0))
            output[t] += weight * value[j]
    return output

# %% repair-decay-gate | right | itertools.accumulate over states with a lambda
def gated_attention(query: np.ndarray, key: np.ndarray, value: np.ndarray, gate: np.ndarray) -> np.ndarray:
    from itertools import accumulate

    states = accumulate(
        zip(key, value, gate),
        lambda s, kva: np.diag(kva[2]) @ s + kva[0][:, None] * kva[1],
        initial=np.zeros((key.shape[1], value.shape[1])),
    )
    next(states)
    return np.array([q @ s for q, s in zip(query, states)])

# %% read-interference | wrong | own value left out of the reading
my_reading = (1.6, 2, 0.37)

# %% read-interference | wrong | the key itself counted in the mean square
my_reading = (3.6, 2, 1.37)

# %% read-interference | wrong | keys counted from 1
my_reading = (3.6, 3, 0.37)

# %% read-interference | wrong | overlaps added instead of their squares
my_reading = (3.6, 2, 0.7)

# %% read-interference | right | sums written out
my_reading = (-0.2 * 1 + 0.3 * -2 + 1 * 2 + 0.6 * 4, 2, 0.1**2 + 0.0**2 + 0.6**2)

# %% read-interference | right | numpy from the figure's numbers, numpy scalars
gram = np.array([[1, 0.5, -0.2, 0.1], [0.5, 1, 0.3, 0], [-0.2, 0.3, 1, 0.6], [0.1, 0, 0.6, 1]])
off = ((gram - np.eye(4)) ** 2).sum(axis=1)
my_reading = (gram[2] @ np.array([1, -2, 2, 4]), np.argmax(off), off[3])

# %% three-delta-writes | wrong | added without correcting
my_read = 0.6 * (0.5 * 2 + 0.5 * 4) - 0.5

# %% three-delta-writes | wrong | beta forgotten
my_read = 0.6 * (2 + 4 - (2 + 0.6 * (-1 - 1.2))) + (-1 - 1.2)

# %% three-delta-writes | wrong | third write replaces s_a, does not correct what is read there
my_read = 0.6 * (1 + 0.5 * (4 - 1)) - 0.8

# %% three-delta-writes | wrong | read with a instead of b
my_read = 2.74 - 0.6 * 0.8

# %% three-delta-writes | right | a state of two numbers, keys as vectors
keys = {"a": np.array([1.0, 0.0]), "b": np.array([0.6, 0.8])}
memory = np.zeros(2)
for name, wanted in (("a", 2), ("b", -1), ("a", 4)):
    memory = memory + 0.5 * keys[name] * (wanted - memory @ keys[name])
my_read = float(memory @ keys["b"])

# %% three-delta-writes | right | an exact fraction
from fractions import Fraction

s_b = Fraction(1, 2) * (-1 - Fraction(3, 5))
s_a = 1 + Fraction(1, 2) * (4 - (1 + Fraction(3, 5) * s_b))
my_read = Fraction(3, 5) * s_a + s_b

# %% delta-rule | wrong | reads before it writes
def my_delta_rule(query, key, value, beta, state):
    out = np.zeros((len(query), value.shape[1]))
    for t in range(len(query)):
        out[t] = state.T @ query[t]
        state = state + np.outer(key[t], beta[t] * (value[t] - state.T @ key[t]))
    return out, state

# %% delta-rule | wrong | keys brought to length 1
def my_delta_rule(query, key, value, beta, state):
    out = np.zeros((len(query), value.shape[1]))
    for t in range(len(query)):
        k = key[t] / np.linalg.norm(key[t])
        state = state + np.outer(k, beta[t] * (value[t] - k @ state))
        out[t] = query[t] @ state
    return out, state

# %% delta-rule | wrong | state += : the caller's array is changed
def my_delta_rule(query, key, value, beta, state):
    out = np.zeros((len(query), value.shape[1]))
    for t in range(len(query)):
        state += np.outer(key[t], beta[t] * (value[t] - state.T @ key[t]))
        out[t] = state.T @ query[t]
    return out, state

# %% delta-rule | wrong | beta on the value only, the old answer taken off whole
def my_delta_rule(query, key, value, beta, state):
    out = np.zeros((len(query), value.shape[1]))
    for t in range(len(query)):
        answer = state.T @ key[t]
        state = state + np.outer(key[t], beta[t] * value[t] - answer)
        out[t] = state.T @ query[t]
    return out, state

# %% delta-rule | right | matrix (1 - beta k k^T) times the state, torch
def my_delta_rule(query, key, value, beta, state):
    import torch

    q, k, v, b, s = (torch.tensor(x) for x in (query, key, value, beta, state))
    eye = torch.eye(k.shape[1], dtype=s.dtype)
    rows = []
    for i in range(len(q)):
        s = (eye - b[i] * torch.outer(k[i], k[i])) @ s + b[i] * torch.outer(k[i], v[i])
        rows.append(q[i] @ s)
    return torch.stack(rows), s

# %% delta-rule | right | all corrections at once from a triangular system, no loop
def my_delta_rule(query, key, value, beta, state):
    below = np.tril(key @ key.T, -1)
    corrections = np.linalg.solve(np.eye(len(key)) + beta * below, beta * (value - key @ state))
    output = query @ state + np.tril(query @ key.T) @ corrections
    return output, state + key.T @ corrections

# %% positive-random-features | wrong | squared length summed over axis 1: positions when there is a leading axis
def my_features(x, omega):
    return np.exp(x @ omega.T - (x**2).sum(axis=1, keepdims=True) / 2) / np.sqrt(omega.shape[0])
# %% positive-random-features | wrong | squeezed, so a length of 1 loses its axis
def my_features(x, omega):
    x = np.asarray(x)
    out = np.exp(x @ omega.T - (x * x).sum(-1, keepdims=True) / 2) / np.sqrt(len(omega))
    return out.squeeze()
# %% random-feature-crossover | wrong | a Derivative left standing, which does not count
from sympy import Derivative, Symbol

T = Symbol("T", real=True)
my_crossover = Derivative(T * m * (2 * k + 3 * v) / (k + v), T)
# %% random-feature-crossover | right | solved by SymPy
from sympy import Symbol, solve
T_ = Symbol("T", positive=True)
my_crossover = solve(2 * T_**2 * (k + v) - T_ * (4 * m * k + 6 * m * v), T_)[0]
# %% random-feature-crossover | cheat | both counts differentiated by T
from sympy import Symbol, diff
T_ = Symbol("T")
my_crossover = diff(T_ * (4 * m * k + 6 * m * v), T_) / (diff(2 * T_**2 * (k + v), T_, 2) / 2)
# %% normalised-linear-attention | wrong | prefix sums as total minus later ones: tiny keys drown
def my_linear_attention(query, key, value):
    pairs = key[..., :, None] * value[..., None, :]
    later = lambda a: np.flip(np.cumsum(np.flip(a, 1), axis=1), 1) - a
    S = pairs.sum(1, keepdims=True) - later(pairs)
    n = key.sum(1, keepdims=True) - later(key)
    return np.einsum("htm,htmv->htv", query, S) / (query * n).sum(-1, keepdims=True)
# %% normalised-linear-attention | wrong | squeezed, so one head loses its axis
def my_linear_attention(query, key, value):
    w = np.tril(query @ np.swapaxes(key, -1, -2))
    return np.squeeze(w @ value / w.sum(-1, keepdims=True), axis=0) if len(query) == 1 else w @ value / w.sum(-1, keepdims=True)
# %% chunked-linear-attention | wrong | the last, shorter chunk is dropped
def my_chunked(query, key, value, state, chunk):
    chunk = min(chunk, len(query))
    out = np.zeros((len(query), value.shape[1]))
    for c in range(len(query) // chunk):
        s = slice(c * chunk, (c + 1) * chunk)
        out[s] = query[s] @ state + np.tril(query[s] @ key[s].T) @ value[s]
        state = state + key[s].T @ value[s]
    return out, state
# %% chunked-linear-attention | wrong | as many pieces as fit into T, none if the chunk is longer
def my_chunked(query, key, value, state, chunk):
    pieces, out = len(query) // chunk, []
    for q, k, v in zip(*(np.array_split(x, pieces) for x in (query, key, value))):
        out.append(q @ state + np.tril(q @ k.T) @ v)
        state = state + k.T @ v
    return np.concatenate(out), state
# %% repair-decay-gate | wrong | divides by cumulated products, which reach 0
def gated_attention(query, key, value, gate):
    decay = np.cumprod(gate, axis=0)
    return np.tril((query * decay) @ (key / decay).T) @ value
# %% repair-decay-gate | wrong | gates raised to at least 0.05 for a quotient of cumulated products
def gated_attention(query, key, value, gate):
    logs = np.cumsum(np.log(np.maximum(gate, 0.05)), axis=0)
    kept = np.exp(np.minimum(logs[:, None] - logs[None, :], 0))
    return np.tril(np.einsum("td,jd,tjd->tj", query, key, kept)) @ value
# %% repair-decay-gate | right | itertools.accumulate over the states
def gated_attention(query, key, value, gate):
    from itertools import accumulate
    step = lambda S, pair: pair[0][:, None] * S + pair[1]
    pairs = list(zip(gate, np.einsum("td,tv->tdv", key, value)))
    states = accumulate(pairs, step, initial=np.zeros((key.shape[1], value.shape[1])))
    next(states)
    return np.array([q @ S for q, S in zip(query, states)])
# %% read-interference | right | fractions
from fractions import Fraction as F
my_reading = (F(18, 5), 2, F(37, 100))
# %% three-delta-writes | wrong | third write replaces s_a, does not correct what is read there
my_read = 0.6 * (1 + 0.5 * (4 - 1)) - 0.8
# %% three-delta-writes | right | a state in the plane, written with real keys
a_, b_ = np.array([1.0, 0.0]), np.array([c, np.sqrt(1 - c * c)])
S_ = np.zeros(2)
for key_, value_ in zip((a_, b_, a_), values):
    S_ = S_ + beta * key_ * (value_ - S_ @ key_)
my_read = S_ @ b_
# %% delta-rule | wrong | state += : the caller's array is changed
def my_delta_rule(query, key, value, beta, state):
    out = np.zeros((len(query), value.shape[1]))
    for t in range(len(query)):
        state += np.outer(key[t], beta[t] * (value[t] - state.T @ key[t]))
        out[t] = state.T @ query[t]
    return out, state
# %% delta-rule | wrong | step sizes squeezed, one position has none left to index
def my_delta_rule(query, key, value, beta, state):
    b = np.squeeze(beta)
    out = np.zeros((len(query), value.shape[1]))
    for t in range(len(query)):
        state = state + b[t] * np.outer(key[t], value[t] - state.T @ key[t])
        out[t] = state.T @ query[t]
    return out, state

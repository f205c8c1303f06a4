# %% self-attention | wrong | root of d_model as the scale
def my_self_attention(x, w_query, w_key, w_value):
    scores = (x @ w_query) @ (x @ w_key).swapaxes(-1, -2) / np.sqrt(x.shape[-1])
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return unnormalised / unnormalised.sum(axis=-1, keepdims=True) @ (x @ w_value)
# %% self-attention | wrong | sentences joined into one long one, so they see each other
def my_self_attention(x, w_query, w_key, w_value):
    tokens = x.reshape(-1, x.shape[-1])
    scores = (tokens @ w_query) @ (tokens @ w_key).T / np.sqrt(w_query.shape[1])
    unnormalised = np.exp(scores - scores.max(axis=1, keepdims=True))
    output = unnormalised / unnormalised.sum(axis=1, keepdims=True) @ (tokens @ w_value)
    return output.reshape(*x.shape[:-1], -1)
# %% self-attention | wrong | torch's attention through its private module (forbidden)
import torch


def my_self_attention(x, w_query, w_key, w_value):
    private = vars(torch)["_C"]._nn
    views = [torch.tensor(x @ w) for w in (w_query, w_key, w_value)]
    return private.scaled_dot_product_attention(*views).numpy()
# %% self-attention | wrong | one axis too many removed: a sentence of one token loses its axis
def my_self_attention(x, w_query, w_key, w_value):
    query, key, value = x @ w_query, x @ w_key, x @ w_value
    scores = np.einsum("...id,...jd->...ij", query, key) / np.sqrt(query.shape[-1])
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = unnormalised / unnormalised.sum(axis=-1, keepdims=True)
    return np.squeeze(weights @ value)
# %% self-attention | right | one matrix for query and key, tokens averaged before the value map
def my_self_attention(x, w_query, w_key, w_value):
    table = w_query @ w_key.T / w_key.shape[1] ** 0.5
    scores = np.einsum("...ia,ab,...jb->...ij", x, table, x, optimize=True)
    weights = np.exp(scores - np.max(scores, axis=-1, keepdims=True))
    return np.matmul(np.matmul(weights, x) / np.sum(weights, axis=-1, keepdims=True), w_value)
# %% self-attention | right | torch with a class, sentences one after the other
import torch


class Layer:
    def __init__(self, *maps):
        self.maps = [torch.tensor(w) for w in maps]

    def __call__(self, x):
        if x.dim() > 2:
            return torch.stack([self(sentence) for sentence in x])
        q, k, v = (x @ w for w in self.maps)
        return torch.nn.functional.softmax(q.mm(k.T).div(k.size(1) ** 0.5), dim=1).mm(v)


my_self_attention = lambda x, w_query, w_key, w_value: Layer(w_query, w_key, w_value)(torch.tensor(x)).numpy()
# %% features-for-self-weight | wrong | the score instead of the number of features: not squared
my_features = log((n - 1) * p / (1 - p))
# %% features-for-self-weight | wrong | n other tokens instead of n - 1
my_features = log(n * p / (1 - p)) ** 2
# %% features-for-self-weight | wrong | the others' total weight of one instead of n - 1
my_features = log(p / (1 - p)) ** 2
# %% features-for-self-weight | wrong | n - 1 on the wrong side of the fraction
my_features = log(p / ((n - 1) * (1 - p))) ** 2
# %% features-for-self-weight | right | sum of three logarithms
my_features = (log(n - 1) + log(p) - log(1 - p)) ** 2
# %% features-for-self-weight | right | odds turned round inside, two factors
score = -log((1 / p - 1) / (n - 1))
my_features = score * log((n * p - p) / (1 - p))
# %% read-balance-of-weights | wrong | largest cell instead of largest column sum
my_reading = (3, 2.5, 0.16)
# %% read-balance-of-weights | wrong | ratio turned round
my_reading = (2, 0.4, 0.16)
# %% read-balance-of-weights | wrong | cell of row 2 and column 3 for the third question
my_reading = (2, 2.5, 0.20)
# %% read-balance-of-weights | wrong | ratio of the diagonal weights taken for that of the normalisers
my_reading = (2, 0.79 / 0.48, 0.16)
# %% read-balance-of-weights | right | quotient left as an expression
my_reading = (2, 0.10 / 0.04, 0.16)
# %% read-balance-of-weights | right | matrix typed in, ratio by way of token 2
P = np.array([[0.48, 0.08, 0.34, 0.10], [0.16, 0.39, 0.40, 0.05], [0.17, 0.10, 0.53, 0.20], [0.04, 0.01, 0.16, 0.79]])
by_way_of_2 = P[0, 2] / P[2, 0] * P[2, 3] / P[3, 2]
my_reading = (P.sum(axis=0).argmax(), by_way_of_2, (P @ np.eye(4)[2])[3])
# %% repair-residual-stack | wrong | layers read the state, but still replace it
def stacked(x: np.ndarray, w_query: np.ndarray, w_key: np.ndarray) -> np.ndarray:
    state = x
    for query_map, key_map in zip(w_query, w_key, strict=True):
        query, key = state @ query_map, state @ key_map
        scores = query @ key.T / np.sqrt(query.shape[1])
        unnormalised = np.exp(scores - scores.max(axis=1, keepdims=True))
        weights = unnormalised / unnormalised.sum(axis=1, keepdims=True)
        state = weights @ state
    return state
# %% repair-residual-stack | wrong | always added to the input instead of the state that was read
def stacked(x: np.ndarray, w_query: np.ndarray, w_key: np.ndarray) -> np.ndarray:
    state = x
    for query_map, key_map in zip(w_query, w_key, strict=True):
        query, key = state @ query_map, state @ key_map
        scores = query @ key.T / np.sqrt(query.shape[1])
        unnormalised = np.exp(scores - scores.max(axis=1, keepdims=True))
        weights = unnormalised / unnormalised.sum(axis=1, keepdims=True)
        state = x + weights @ state
    return state
# %% repair-residual-stack | wrong | += on the state, which is the caller's x
def stacked(x: np.ndarray, w_query: np.ndarray, w_key: np.ndarray) -> np.ndarray:
    state = x
    for query_map, key_map in zip(w_query, w_key, strict=True):
        query, key = state @ query_map, state @ key_map
        scores = query @ key.T / np.sqrt(query.shape[1])
        unnormalised = np.exp(scores - scores.max(axis=1, keepdims=True))
        weights = unnormalised / unnormalised.sum(axis=1, keepdims=True)
        state += weights @ state
    return state
# %% repair-residual-stack | wrong | queries from the state, keys and values from the input
def stacked(x: np.ndarray, w_query: np.ndarray, w_key: np.ndarray) -> np.ndarray:
    state = x
    for query_map, key_map in zip(w_query, w_key, strict=True):
        query, key = state @ query_map, x @ key_map
        scores = query @ key.T / np.sqrt(query.shape[1])
        unnormalised = np.exp(scores - scores.max(axis=1, keepdims=True))
        weights = unnormalised / unnormalised.sum(axis=1, keepdims=True)
        state = state + weights @ x
    return state
# %% repair-residual-stack | right | recursion: the last layer on top of a shorter stack
def stacked(x: np.ndarray, w_query: np.ndarray, w_key: np.ndarray) -> np.ndarray:
    if len(w_query) == 0:
        return x.copy()
    below = stacked(x, w_query[:-1], w_key[:-1])
    scores = below @ w_query[-1] @ w_key[-1].T @ below.T / np.sqrt(w_query[-1].shape[1])
    weights = np.exp(scores - scores.max(axis=1)[:, None])
    weights = weights / weights.sum(axis=1)[:, None] + np.eye(len(x))
    return weights @ below
# %% repair-residual-stack | right | functools.reduce over torch layers
from functools import reduce

import torch


def stacked(x, w_query, w_key):
    def layer(state, maps):
        q, k = (state @ torch.tensor(w) for w in maps)
        return torch.addmm(state, torch.softmax(q @ k.T * q.shape[1] ** -0.5, dim=1), state)

    return reduce(layer, zip(w_query, w_key), torch.tensor(x)).numpy()
# %% rotary-positions | wrong | pairs made of the two halves instead of neighbours
def my_rope(x, positions):
    half = x.shape[1] // 2
    angles = positions[:, None] * 10000.0 ** (-2 * np.arange(half) / x.shape[1])
    first, second = x[:, :half], x[:, half:]
    turned = [first * np.cos(angles) - second * np.sin(angles), first * np.sin(angles) + second * np.cos(angles)]
    return np.concatenate(turned, axis=1)
# %% rotary-positions | wrong | row number instead of the given position
def my_rope(x, positions):
    length, d_k = x.shape
    angles = np.outer(np.arange(length), 10000.0 ** (-2 * np.arange(d_k // 2) / d_k))
    turned = np.empty_like(x)
    turned[:, 0::2] = x[:, 0::2] * np.cos(angles) - x[:, 1::2] * np.sin(angles)
    turned[:, 1::2] = x[:, 0::2] * np.sin(angles) + x[:, 1::2] * np.cos(angles)
    return turned
# %% rotary-positions | wrong | first feature is a view: the second one is computed from its new value
def my_rope(x, positions):
    d_k = x.shape[1]
    angles = positions[:, None] * 10000.0 ** (-2 * np.arange(d_k // 2) / d_k)
    turned = x.copy()
    a, b = turned[:, 0::2], turned[:, 1::2]
    a[:] = a * np.cos(angles) - b * np.sin(angles)
    b[:] = a * np.sin(angles) + b * np.cos(angles)
    return turned
# %% rotary-positions | wrong | frequencies without the 2: 10000 to the power -m / d_k
def my_rope(x, positions):
    d_k = x.shape[1]
    angles = positions[:, None] * 10000.0 ** (-np.arange(d_k // 2) / d_k)
    turned = np.empty_like(x)
    turned[:, 0::2] = x[:, 0::2] * np.cos(angles) - x[:, 1::2] * np.sin(angles)
    turned[:, 1::2] = x[:, 0::2] * np.sin(angles) + x[:, 1::2] * np.cos(angles)
    return turned
# %% rotary-positions | right | complex numbers
def my_rope(x, positions):
    d_k = x.shape[1]
    omega = np.power(10000.0, -np.arange(0, d_k, 2) / d_k)
    turned = (x[:, ::2] + 1j * x[:, 1::2]) * np.exp(1j * np.multiply.outer(positions, omega))
    return np.stack([turned.real, turned.imag], axis=-1).reshape(x.shape)
# %% rotary-positions | right | loops over rows and pairs with a little matrix each
from math import cos, sin


def my_rope(x, positions):
    result = np.zeros(x.shape)
    for row, t in enumerate(positions):
        for m in range(x.shape[1] // 2):
            angle = int(t) / 10000 ** (2 * m / x.shape[1])
            turn = np.array([[cos(angle), -sin(angle)], [sin(angle), cos(angle)]])
            result[row, 2 * m : 2 * m + 2] = turn @ x[row, 2 * m : 2 * m + 2]
    return result
# %% projection-gradients | wrong | path through the values missing in d_x
def my_projection_gradients(x, w_query, w_key, w_value, d_query, d_key, d_value):
    d_x = d_query @ w_query.T + d_key @ w_key.T
    return x.T @ d_query, x.T @ d_key, x.T @ d_value, d_x
# %% projection-gradients | wrong | mean over the tokens instead of their sum
def my_projection_gradients(x, w_query, w_key, w_value, d_query, d_key, d_value):
    d_x = d_query @ w_query.T + d_key @ w_key.T + d_value @ w_value.T
    return x.T @ d_query / len(x), x.T @ d_key / len(x), x.T @ d_value / len(x), d_x
# %% projection-gradients | wrong | right gradients, but written into the caller's matrices to save memory
def my_projection_gradients(x, w_query, w_key, w_value, d_query, d_key, d_value):
    d_x = d_query @ w_query.T + d_key @ w_key.T + d_value @ w_value.T
    for w, gradient in zip((w_query, w_key, w_value), (d_query, d_key, d_value)):
        np.matmul(x.T, gradient, out=w)
    return w_query, w_key, w_value, d_x
# %% projection-gradients | wrong | torch's autograd on the sum of the three paths (forbidden)
import torch


def my_projection_gradients(x, w_query, w_key, w_value, d_query, d_key, d_value):
    leaves = [torch.tensor(a, requires_grad=True) for a in (w_query, w_key, w_value, x)]
    loss = sum((leaves[3] @ w * torch.tensor(g)).sum() for w, g in zip(leaves, (d_query, d_key, d_value)))
    loss.backward()
    return tuple(leaf.grad.numpy() for leaf in leaves)
# %% projection-gradients | right | the three maps side by side as one
def my_projection_gradients(x, w_query, w_key, w_value, d_query, d_key, d_value):
    maps, gradients = np.hstack([w_query, w_key, w_value]), np.hstack([d_query, d_key, d_value])
    cuts = [w_query.shape[1], w_query.shape[1] + w_key.shape[1]]
    return *np.split(x.T @ gradients, cuts, axis=1), gradients @ maps.T
# %% projection-gradients | right | outer products token by token
def my_projection_gradients(x, w_query, w_key, w_value, d_query, d_key, d_value):
    pairs = [(w_query, d_query), (w_key, d_key), (w_value, d_value)]
    d_maps = [sum(np.outer(token, g) for token, g in zip(x, gradient)) for _, gradient in pairs]
    d_x = np.array([sum(w @ gradient[t] for w, gradient in pairs) for t in range(len(x))])
    return (*d_maps, d_x)
# %% attention-and-rnn-counts | wrong | multiplications only, the additions not counted
my_counts = (3 * 80 * 64**2 + 2 * 80**2 * 64, 2 * 80 * 64**2, 3, 80)
# %% attention-and-rnn-counts | wrong | one table of T x T only: the product with the values forgotten
my_counts = (6 * 80 * 64**2 + 2 * 80**2 * 64, 4 * 80 * 64**2, 3, 80)
# %% attention-and-rnn-counts | wrong | all five products of the layer taken for a chain
my_counts = (6 * 80 * 64**2 + 4 * 80**2 * 64, 4 * 80 * 64**2, 5, 80)
# %% attention-and-rnn-counts | wrong | length and width exchanged
my_counts = (6 * 64 * 80**2 + 4 * 64**2 * 80, 4 * 64 * 80**2, 3, 64)
# %% attention-and-rnn-counts | right | products listed with their shapes
T, d = 80, 64
flops = lambda shapes: sum(2 * a * b * c for a, b, c in shapes)
my_counts = (flops([(T, d, d)] * 3 + [(T, d, T), (T, T, d)]), flops([(1, d, d), (1, d, d)] * T), 3, T)
# %% attention-and-rnn-counts | right | four plain numbers
my_counts = 3_604_480, 1_310_720, 3, 80
# %% attention-between-features | wrong | standard deviation divided by m - 1
def my_feature_weights(table):
    tokens = ((table - table.mean(axis=0)) / table.std(axis=0, ddof=1)).T
    scores = tokens @ tokens.T / np.sqrt(len(table))
    unnormalised = np.exp(scores - scores.max(axis=1, keepdims=True))
    return unnormalised / unnormalised.sum(axis=1, keepdims=True)
# %% attention-between-features | wrong | corrcoef of one single feature is a number, not a table
def my_feature_weights(table):
    scores = np.sqrt(len(table)) * np.corrcoef(table, rowvar=False)
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return unnormalised / unnormalised.sum(axis=-1, keepdims=True)
# %% attention-between-features | wrong | standardised in place: the caller's table is changed
def my_feature_weights(table):
    table -= table.mean(axis=0)
    table /= np.sqrt((table**2).mean(axis=0))
    scores = table.T @ table / np.sqrt(table.shape[0])
    unnormalised = np.exp(scores - scores.max(axis=1, keepdims=True))
    return unnormalised / unnormalised.sum(axis=1, keepdims=True)
# %% attention-between-features | cheat | torch's attention with the unit matrix as values (forbidden)
import torch.nn.functional as F
from torch import eye, tensor


def my_feature_weights(table):
    tokens = tensor(((table - table.mean(axis=0)) / table.std(axis=0)).T.copy())
    attend = next(f for name, f in vars(F).items() if name.endswith("dot_product_attention"))
    return attend(tokens[None], tokens[None], eye(len(tokens), dtype=tokens.dtype)[None])[0].numpy()
# %% attention-between-features | right | correlations times the root of m
def my_feature_weights(table):
    scores = np.sqrt(len(table)) * np.atleast_2d(np.corrcoef(table.T))
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)
# %% attention-between-features | right | torch, moments written out, a loop over pairs of columns
import torch


def my_feature_weights(table):
    columns = [column - column.mean() for column in torch.tensor(table).unbind(1)]
    columns = [column / column.square().mean().sqrt() for column in columns]
    scores = torch.stack([torch.stack([a.dot(b) for b in columns]) for a in columns])
    return (scores / len(table) ** 0.5).softmax(dim=1)

# %% scaled-attention | wrong | torch's attention called by its operator (library attention, forbidden)
import torch


def my_attention(query, key, value, is_real):
    operator = torch.ops.aten.scaled_dot_product_attention.default
    query, key, value = (torch.from_numpy(np.ascontiguousarray(a)) for a in (query, key, value))
    return operator(query, key, value, torch.from_numpy(is_real)[:, None]).numpy()
# %% scaled-attention | wrong | one maximum for the whole table: rows far below it are 0/0
def my_attention(query, key, value, is_real):
    scores = np.einsum("...id,...jd->...ij", query, key) / np.sqrt(query.shape[-1])
    scores = np.where(is_real[:, None], scores, -np.inf)
    unnormalised = np.exp(scores - scores.max())
    return unnormalised @ value / unnormalised.sum(axis=-1, keepdims=True)
# %% scaled-attention | wrong | scores clipped to +-50 to keep the exponential finite
def my_attention(query, key, value, is_real):
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    unnormalised = np.exp(np.clip(scores, -50, 50)) * is_real[:, None]
    return unnormalised / unnormalised.sum(axis=-1, keepdims=True) @ value
# %% scaled-attention | wrong | the longest example decides: padding of the others is seen
def my_attention(query, key, value, is_real):
    longest = is_real.sum(1).max()
    scores = query @ key[:, :longest].swapaxes(1, 2) / np.sqrt(query.shape[2])
    weights = np.exp(scores - scores.max(axis=2, keepdims=True))
    return (weights / weights.sum(axis=2, keepdims=True)) @ value[:, :longest]
# %% scaled-attention | right | online softmax, key by key, for all queries at once
def my_attention(query, key, value, is_real):
    top = np.full(query.shape[:-1], -1e300)
    total, output = np.zeros(query.shape[:-1]), np.zeros((*query.shape[:-1], value.shape[-1]))
    for j in range(key.shape[-2]):
        score = (query * key[..., j : j + 1, :]).sum(-1) / query.shape[-1] ** 0.5
        score = np.where(is_real[:, j : j + 1], score, -np.inf)
        new_top = np.maximum(top, score)
        old, new = np.exp(top - new_top), np.exp(score - new_top)
        output = output * old[..., None] + new[..., None] * value[..., j : j + 1, :]
        top, total = new_top, total * old + new
    return output / total[..., None]
# %% scaled-attention | right | torch in a lambda, each example cut to its real keys
import torch


def my_attention(query, key, value, is_real):
    share = lambda s: (e := (s - s.amax(1, keepdim=True)).exp()) / e.sum(1, keepdim=True)
    one = lambda q, k, v: share(q @ k.t() * q.shape[1] ** -0.5) @ v
    tensors = (torch.tensor(a, dtype=torch.float64) for a in (query, key, value))
    return torch.stack([one(q, k[own], v[own]) for q, k, v, own in zip(*tensors, torch.from_numpy(is_real))]).numpy()
# %% repair-transposed-weights | wrong | einsum repaired, maximum still that of the whole table
def weighted_sums(query: np.ndarray, key: np.ndarray, value: np.ndarray) -> np.ndarray:
    scores = query @ key.T / np.sqrt(query.shape[1])
    unnormalised = np.exp(scores - scores.max())
    weights = unnormalised / unnormalised.sum(axis=1, keepdims=True)
    return np.einsum("ij,ja->ia", weights, value)
# %% repair-transposed-weights | wrong | maximum repaired, weights still point the wrong way
def weighted_sums(query: np.ndarray, key: np.ndarray, value: np.ndarray) -> np.ndarray:
    scores = query @ key.T / np.sqrt(query.shape[1])
    unnormalised = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = unnormalised / unnormalised.sum(axis=1, keepdims=True)
    return weights.T @ value
# %% repair-transposed-weights | wrong | maximum taken over the queries of each key, which bends the ratios
def weighted_sums(query: np.ndarray, key: np.ndarray, value: np.ndarray) -> np.ndarray:
    scores = query @ key.T / np.sqrt(query.shape[1])
    unnormalised = np.exp(scores - scores.max(axis=0, keepdims=True))
    weights = unnormalised / unnormalised.sum(axis=1, keepdims=True)
    return np.einsum("ij,ja->ia", weights, value)
# %% repair-transposed-weights | wrong | maximum subtracted without keepdims: column j loses the maximum of row j
def weighted_sums(query: np.ndarray, key: np.ndarray, value: np.ndarray) -> np.ndarray:
    scores = query @ key.T / np.sqrt(query.shape[1])
    unnormalised = np.exp(scores - scores.max(axis=1))
    weights = unnormalised / unnormalised.sum(axis=1, keepdims=True)
    return np.einsum("ij,ja->ia", weights, value)
# %% repair-transposed-weights | right | queries as columns throughout, turned at the end
def weighted_sums(query: np.ndarray, key: np.ndarray, value: np.ndarray) -> np.ndarray:
    scores = key @ query.T / query.shape[1] ** 0.5
    unnormalised = np.exp(scores - scores.max(axis=0))
    return np.einsum("ji,ja->ia", unnormalised / unnormalised.sum(axis=0), value)
# %% repair-transposed-weights | right | one query at a time, np.average
def weighted_sums(query, key, value):
    def answer(q):
        scores = key.dot(q) / np.sqrt(q.size)
        return np.average(value, axis=0, weights=np.exp(scores - scores.max()))

    return np.vstack([answer(q) for q in query])
# %% repair-mixed-batch | wrong | lengths right, other examples still with the score 0
def batched_attention(query: np.ndarray, key: np.ndarray, value: np.ndarray, counts: np.ndarray) -> np.ndarray:
    example = np.repeat(np.arange(len(counts)), counts)
    scores = query @ key.T / np.sqrt(query.shape[1])
    scores = np.where(example[:, None] == example, scores, 0.0)
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return unnormalised / unnormalised.sum(axis=-1, keepdims=True) @ value
# %% repair-mixed-batch | wrong | hidden by minus infinity, lengths still taken as equal
def batched_attention(query: np.ndarray, key: np.ndarray, value: np.ndarray, counts: np.ndarray) -> np.ndarray:
    example = np.arange(len(query)) // (len(query) // len(counts))
    scores = query @ key.T / np.sqrt(query.shape[1])
    scores = np.where(example[:, None] == example, scores, -np.inf)
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return unnormalised / unnormalised.sum(axis=-1, keepdims=True) @ value
# %% repair-mixed-batch | wrong | foreign weights set to 0 after the softmax: rows no longer sum to 1
def batched_attention(query: np.ndarray, key: np.ndarray, value: np.ndarray, counts: np.ndarray) -> np.ndarray:
    scores = query @ key.T / np.sqrt(query.shape[1])
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = unnormalised / unnormalised.sum(axis=-1, keepdims=True)
    example = np.repeat(np.arange(len(counts)), counts)
    return np.where(example[:, None] == example, weights, 0.0) @ value
# %% repair-mixed-batch | wrong | an example sees itself and all before it
def batched_attention(query: np.ndarray, key: np.ndarray, value: np.ndarray, counts: np.ndarray) -> np.ndarray:
    example = np.repeat(np.arange(len(counts)), counts)
    scores = np.where(example[:, None] >= example, query @ key.T / np.sqrt(query.shape[1]), -np.inf)
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return unnormalised / unnormalised.sum(axis=-1, keepdims=True) @ value
# %% repair-mixed-batch | right | the example of a token from searchsorted, hidden by minus infinity
def batched_attention(query: np.ndarray, key: np.ndarray, value: np.ndarray, counts: np.ndarray) -> np.ndarray:
    example = np.searchsorted(np.cumsum(counts), np.arange(len(query)), side="right")
    scores = np.where(example[:, None] == example, query @ key.T / np.sqrt(query.shape[1]), -np.inf)
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = unnormalised / unnormalised.sum(axis=-1, keepdims=True)
    return weights @ value
# %% repair-mixed-batch | right | torch, split and put together again
import torch


def batched_attention(query, key, value, counts):
    parts = [torch.split(torch.tensor(a), [int(count) for count in counts]) for a in (query, key, value)]
    return torch.vstack([torch.softmax(q @ k.mT * q.shape[1] ** -0.5, dim=1) @ v for q, k, v in zip(*parts)])
# %% read-attention-map | wrong | rows and columns exchanged
my_reading = (2, 1, 0.95)
# %% read-attention-map | wrong | counted from 1
my_reading = (2, 3, 0.95)
# %% read-attention-map | wrong | weight of value 3 alone instead of all the others
my_reading = (1, 2, 0.05)
# %% read-attention-map | wrong | weights renormalised without value 3
my_reading = (1, 2, 1.0)
# %% read-attention-map | right | sum of the four other weights
my_reading = (1, 2, 0.08 + 0.15 + 0.62 + 0.10)
# %% read-attention-map | right | matrix typed in, argmax and a product
weights = np.array(
    [[0.08, 0.15, 0.62, 0.05, 0.10], [0.46, 0.14, 0.12, 0.08, 0.20], [0.09, 0.55, 0.06, 0.25, 0.05], [0.21, 0.07, 0.25, 0.13, 0.34]]
)
my_reading = (np.argmax(weights[:, 0]), np.argmax(weights[0]), weights[0] @ (np.arange(5) != 3))
# %% query-on-its-key | wrong | scale forgotten
my_weight = 1 / (1 + np.exp(2))
# %% query-on-its-key | wrong | weight of the other key
my_weight = np.exp(1) / (1 + np.exp(1))
# %% query-on-its-key | wrong | similarity by distance: a query on its key gets nearly everything
my_weight = 1 / (1 + np.exp(-33 / 2))
# %% query-on-its-key | wrong | divided by d_k instead of its root
my_weight = 1 / (1 + np.exp(0.5))
# %% query-on-its-key | right | computed from the vectors
q, keys = np.array([1, 1, 0, 0]), np.array([[1, 1, 0, 0], [3, 1, 2, 5]])
terms = np.exp(keys @ q / np.sqrt(4))
my_weight = terms[0] / terms.sum()
# %% query-on-its-key | right | hyperbolic tangent
from math import tanh

my_weight = (1 - tanh(0.5)) / 2
# %% attention-slope | wrong | difference of the keys forgotten
my_slope = p * (1 - p) * (v_1 - v_2)
# %% attention-slope | wrong | only the weight differentiated as if it were linear
my_slope = p * (v_1 - v_2) * (k_1 - k_2)
# %% attention-slope | wrong | one difference turned round
my_slope = p * (1 - p) * (v_1 - v_2) * (k_2 - k_1)
# %% attention-slope | wrong | products of value and key subtracted instead of differences multiplied
my_slope = p * (1 - p) * (v_1 * k_1 - v_2 * k_2)
# %% attention-slope | right | covariance of values and keys under the weights
mean_key, mean_value = p * k_1 + (1 - p) * k_2, p * v_1 + (1 - p) * v_2
my_slope = p * v_1 * k_1 + (1 - p) * v_2 * k_2 - mean_value * mean_key
# %% attention-slope | right | multiplied out with powers
my_slope = (p - p**2) * (k_1 * v_1 + k_2 * v_2) + (p**2 - p) * (k_1 * v_2 + k_2 * v_1)

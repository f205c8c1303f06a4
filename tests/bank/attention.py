# %% scaled-attention | wrong | torch's attention called by its operator (library attention, forbidden)
import torch


def my_attention(query, key, value):
    operator = torch.ops.aten.scaled_dot_product_attention.default
    return operator(*[torch.from_numpy(np.ascontiguousarray(a)) for a in (query, key, value)]).numpy()
# %% scaled-attention | wrong | one maximum for the whole table: rows far below it are 0/0
def my_attention(query, key, value):
    scores = np.einsum("...id,...jd->...ij", query, key) / np.sqrt(query.shape[-1])
    unnormalised = np.exp(scores - scores.max())
    return unnormalised @ value / unnormalised.sum(axis=-1, keepdims=True)
# %% scaled-attention | wrong | scores clipped to +-50 to keep the exponential finite
def my_attention(query, key, value):
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    unnormalised = np.exp(np.clip(scores, -50, 50))
    return unnormalised / unnormalised.sum(axis=-1, keepdims=True) @ value
# %% scaled-attention | wrong | leading axes flattened into one: two or more do not come back
def my_attention(query, key, value):
    q, k, v = (a.reshape(-1, *a.shape[-2:]) for a in (query, key, value))
    scores = q @ k.swapaxes(1, 2) / np.sqrt(q.shape[2])
    weights = np.exp(scores - scores.max(axis=2, keepdims=True))
    output = (weights / weights.sum(axis=2, keepdims=True)) @ v
    return output[0] if query.ndim == 2 else output
# %% scaled-attention | right | online softmax, key by key, for all queries at once
def my_attention(query, key, value):
    top = np.full(query.shape[:-1], -np.inf)
    total, output = np.zeros(query.shape[:-1]), np.zeros((*query.shape[:-1], value.shape[-1]))
    for j in range(key.shape[-2]):
        score = (query * key[..., j : j + 1, :]).sum(-1) / query.shape[-1] ** 0.5
        new_top = np.maximum(top, score)
        old, new = np.exp(top - new_top), np.exp(score - new_top)
        output = output * old[..., None] + new[..., None] * value[..., j : j + 1, :]
        top, total = new_top, total * old + new
    return output / total[..., None]
# %% scaled-attention | right | torch softmax in a lambda, recursion over leading axes
import torch


def my_attention(query, key, value):
    one = lambda q, k, v: torch.softmax(q @ k.t() * q.shape[1] ** -0.5, 1) @ v

    def walk(q, k, v):
        return one(q, k, v) if q.dim() == 2 else torch.stack([walk(*trio) for trio in zip(q, k, v)])

    return walk(*(torch.tensor(a, dtype=torch.float64) for a in (query, key, value))).numpy()
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
# %% repair-mixed-batch | wrong | einsum sums over the examples of the keys
def batched_attention(query: np.ndarray, key: np.ndarray, value: np.ndarray) -> np.ndarray:
    scores = np.einsum("bid,cjd->bij", query, key) / np.sqrt(query.shape[2])
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = unnormalised / unnormalised.sum(axis=-1, keepdims=True)
    return np.einsum("bij,bja->bia", weights, value)
# %% repair-mixed-batch | wrong | every example looks into the first one
def batched_attention(query: np.ndarray, key: np.ndarray, value: np.ndarray) -> np.ndarray:
    scores = query @ key[0].T / np.sqrt(query.shape[-1])
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = unnormalised / unnormalised.sum(axis=-1, keepdims=True)
    return weights @ value[0]
# %% repair-mixed-batch | wrong | foreign weights set to 0 after the softmax: rows no longer sum to 1
def batched_attention(query: np.ndarray, key: np.ndarray, value: np.ndarray) -> np.ndarray:
    batch, q_len, d_k = query.shape
    rows, keys, values = query.reshape(-1, d_k), key.reshape(-1, d_k), value.reshape(-1, value.shape[-1])
    scores = rows @ keys.T / np.sqrt(d_k)
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = unnormalised / unnormalised.sum(axis=-1, keepdims=True)
    own = np.repeat(np.arange(batch), q_len)[:, None] == np.repeat(np.arange(batch), key.shape[1])
    return (np.where(own, weights, 0.0) @ values).reshape(batch, q_len, -1)
# %% repair-mixed-batch | wrong | block mask that assumes as many keys as queries
def batched_attention(query: np.ndarray, key: np.ndarray, value: np.ndarray) -> np.ndarray:
    batch, q_len, d_k = query.shape
    rows, keys, values = query.reshape(-1, d_k), key.reshape(-1, d_k), value.reshape(-1, value.shape[-1])
    scores = rows @ keys.T / np.sqrt(d_k)
    own = np.arange(len(rows))[:, None] // q_len == np.arange(len(keys)) // q_len
    scores = np.where(own, scores, -1e30)
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = unnormalised / unnormalised.sum(axis=-1, keepdims=True)
    return (weights @ values).reshape(batch, q_len, -1)
# %% repair-mixed-batch | right | flattened rows kept, foreign examples hidden by minus infinity
def batched_attention(query: np.ndarray, key: np.ndarray, value: np.ndarray) -> np.ndarray:
    batch, q_len, d_k = query.shape
    rows, keys, values = query.reshape(-1, d_k), key.reshape(-1, d_k), value.reshape(-1, value.shape[-1])
    asks, answers = np.indices(query.shape[:2])[0].ravel(), np.indices(key.shape[:2])[0].ravel()
    scores = np.where(asks[:, None] == answers, rows @ keys.T / np.sqrt(d_k), -np.inf)
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = unnormalised / unnormalised.sum(axis=-1, keepdims=True)
    return (weights @ values).reshape(batch, q_len, -1)
# %% repair-mixed-batch | right | torch bmm and baddbmm, scale as a factor
import torch


def batched_attention(query, key, value):
    q, k, v = torch.tensor(query), torch.tensor(key), torch.tensor(value)
    nothing = torch.zeros(q.shape[0], q.shape[1], k.shape[1], dtype=q.dtype)
    scores = torch.baddbmm(nothing, q, k.mT, beta=0, alpha=q.shape[2] ** -0.5)
    return torch.bmm(torch.softmax(scores, dim=2), v)
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

# %% uncentred-score-variance | wrong | means ignored
my_expression = d_k * v_q * v_k
# %% uncentred-score-variance | wrong | second moment of the terms: squared mean not subtracted
my_expression = d_k * (v_q + m_q**2) * (v_k + m_k**2)
# %% uncentred-score-variance | wrong | each mean paired with its own variance
my_expression = d_k * (v_q * v_k + m_q**2 * v_q + m_k**2 * v_k)
# %% uncentred-score-variance | wrong | v taken as standard deviations
my_expression = d_k * (v_q**2 * v_k**2 + m_q**2 * v_k**2 + m_k**2 * v_q**2)
# %% uncentred-score-variance | right | mean square less squared mean
my_expression = d_k * ((v_q + m_q**2) * (v_k + m_k**2) - (m_q * m_k) ** 2)
# %% uncentred-score-variance | right | grouped by the variance of the key
my_expression = v_k * d_k * (v_q + m_q**2) + v_q * d_k * m_k**2
# %% cosine-scores | wrong | small number added to the lengths
def my_cosine_scores(query, key):
    q = query / (np.linalg.norm(query, axis=-1, keepdims=True) + 1e-8)
    k = key / (np.linalg.norm(key, axis=-1, keepdims=True) + 1e-8)
    return q @ k.swapaxes(-1, -2)
# %% cosine-scores | wrong | only zero queries guarded, a zero key gives NaN
def my_cosine_scores(query, key):
    length = np.linalg.norm(query, axis=-1, keepdims=True)
    q = query / np.where(length == 0, 1, length)
    k = key / np.linalg.norm(key, axis=-1, keepdims=True)
    return q @ k.swapaxes(-1, -2)
# %% cosine-scores | wrong | library cosine similarity under another name (forbidden, and clamps tiny lengths)
from torch import nn, tensor


def my_cosine_scores(query, key):
    compare = nn.CosineSimilarity(dim=-1)
    return compare(tensor(query)[..., :, None, :], tensor(key)[..., None, :, :]).numpy()
# %% cosine-scores | wrong | tiny lengths treated as zero: their cosines come out 0
def my_cosine_scores(query, key):
    lengths = np.linalg.norm(query, axis=-1)[..., :, None] * np.linalg.norm(key, axis=-1)[..., None, :]
    dots = query @ key.swapaxes(-1, -2)
    return np.divide(dots, lengths, out=np.zeros_like(dots), where=lengths > 1e-10)
# %% cosine-scores | right | rows first divided by their largest entry, so that nothing underflows
def my_cosine_scores(query, key):
    def unit(rows):
        for measure in (lambda r: np.abs(r).max(axis=-1, keepdims=True), lambda r: np.sqrt((r * r).sum(-1, keepdims=True))):
            size = measure(rows)
            rows = rows / np.where(size > 0, size, 1.0)
        return rows

    return np.einsum("...id,...jd->...ij", unit(query), unit(key))
# %% cosine-scores | right | recursion over leading axes, math.hypot for lengths
from math import hypot


def my_cosine_scores(query, key):
    if query.ndim > 2:
        return np.stack([my_cosine_scores(q, k) for q, k in zip(query, key)])

    def direction(row):
        length = hypot(*row)
        return [entry / length if length else 0.0 for entry in row]

    rows, columns = [direction(q) for q in query.tolist()], [direction(k) for k in key.tolist()]
    return np.array([[sum(a * b for a, b in zip(r, c)) for c in columns] for r in rows])
# %% repair-head-weights | wrong | place and axis repaired, but the root of d_model kept
def head_weights(query: np.ndarray, key: np.ndarray) -> np.ndarray:
    n_heads, _, d_k = query.shape
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(n_heads * d_k)
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return unnormalised / unnormalised.sum(axis=-1, keepdims=True)
# %% repair-head-weights | wrong | divided by d_k, not by its root
def head_weights(query: np.ndarray, key: np.ndarray) -> np.ndarray:
    scores = query @ key.swapaxes(-1, -2) / query.shape[-1]
    unnormalised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return unnormalised / unnormalised.sum(axis=-1, keepdims=True)
# %% repair-head-weights | wrong | one maximum for each head: rows far below it are 0/0
def head_weights(query: np.ndarray, key: np.ndarray) -> np.ndarray:
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    unnormalised = np.exp(scores - scores.max(axis=(-2, -1), keepdims=True))
    return unnormalised / unnormalised.sum(axis=-1, keepdims=True)
# %% repair-head-weights | cheat | library softmax as a module (forbidden)
import torch


def head_weights(query, key):
    turn = torch.nn.modules.activation.__dict__["Soft" + "max"](-1)
    scores = np.einsum("hid,hjd->hij", query, key) / np.sqrt(query.shape[2])
    return turn(torch.from_numpy(scores)).numpy()
# %% repair-head-weights | right | head by head, scale applied after the maximum is taken off
def head_weights(query: np.ndarray, key: np.ndarray) -> np.ndarray:
    heads = []
    for q, k in zip(query, key):
        table = k @ q.T
        table = np.exp((table - table.max(axis=0)) / q.shape[1] ** 0.5)
        heads.append((table / table.sum(axis=0)).T)
    return np.stack(heads)
# %% repair-head-weights | right | torch, inverse of a sum of exponentials of differences
import torch


def head_weights(query, key):
    q, k = torch.tensor(query), torch.tensor(key)
    scores = torch.einsum("hid,hjd->hij", q, k) / q.size(-1) ** 0.5
    return (scores[..., None, :] - scores[..., :, None]).exp().sum(-1).reciprocal()

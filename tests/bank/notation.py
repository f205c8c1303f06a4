# %% shapes-in-columns | wrong | row dialect: both tables read with rows as positions
my_shapes = (5, 11, 5, 6)
# %% shapes-in-columns | wrong | scores right, output in the row dialect
my_shapes = (11, 5, 5, 6)
# %% shapes-in-columns | wrong | one output for each key instead of each query
my_shapes = (11, 5, 6, 11)
# %% shapes-in-columns | wrong | multiplied Q K^T over positions: feature by feature
my_shapes = (7, 7, 6, 7)
# %% shapes-in-columns | right | shapes of real arrays joined
queries, keys, values = np.ones((7, 5)), np.ones((7, 11)), np.ones((6, 11))
table = keys.T @ queries
my_shapes = table.shape + (values @ table).shape
# %% shapes-in-columns | right | NumPy integers by unpacking a dictionary
sizes = dict(queries=np.int64(5), keys=np.int64(11), d_v=np.int64(6))
my_shapes = (*(sizes[name] for name in ("keys", "queries", "d_v", "queries")),)
# %% columns-to-rows | wrong | scale from the number of queries, for the last axis is read before turning
def my_rows(query, key, value):
    scale = np.sqrt(query.shape[-1])
    weights = softmax(query.T @ key / scale, axis=-1)
    return weights @ value.T
# %% columns-to-rows | wrong | output never turned, only reshaped: numbers in the wrong cells
def my_rows(query, key, value):
    weights = softmax(key.T @ query / np.sqrt(len(query)), axis=0)
    return (value @ weights).reshape(query.shape[1], value.shape[0])
# %% columns-to-rows | wrong | right result, but the scale is divided into the caller's query
def my_rows(query, key, value):
    query /= np.sqrt(query.shape[0])
    weights = softmax(query.T @ key, axis=1)
    return weights @ value.T
# %% columns-to-rows | wrong | output squeezed: one query or one value feature loses its axis
def my_rows(query, key, value):
    scores = query.T @ key / query.shape[0] ** 0.5
    return np.squeeze(softmax(scores, -1) @ value.T)
# %% columns-to-rows | right | einsum on the arrays as they stand, own softmax
def my_rows(query, key, value):
    table = np.einsum("ci,cj->ij", query, key) * query.shape[0] ** -0.5
    table = np.exp(table - np.max(table, axis=1)[:, None])
    return np.einsum("ij,aj,i->ia", table, value, 1 / table.sum(1))
# %% columns-to-rows | right | torch column form, turned at the very end
import torch


def my_rows(query, key, value):
    q, k, v = (torch.tensor(array) for array in (query, key, value))
    weights = torch.softmax(k.mT @ q / torch.tensor(float(len(query))).sqrt(), dim=0)
    return (v @ weights).mT.contiguous()
# %% repair-column-mask | wrong | only the axis repaired, still the upper triangle hidden
def column_weights(query: np.ndarray, key: np.ndarray) -> np.ndarray:
    length = query.shape[1]
    scores = key.T @ query / np.sqrt(query.shape[0])
    hidden = np.triu(np.ones((length, length), dtype=bool), k=1)
    return softmax(np.where(hidden, -np.inf, scores), axis=0)
# %% repair-column-mask | wrong | diagonal hidden too: a position may not see itself, the first column is NaN
def column_weights(query: np.ndarray, key: np.ndarray) -> np.ndarray:
    length = query.shape[1]
    scores = key.T @ query / np.sqrt(query.shape[0])
    hidden = np.tril(np.ones((length, length), dtype=bool))
    return softmax(np.where(hidden, -np.inf, scores), axis=0)
# %% repair-column-mask | wrong | mask multiplied after the softmax, columns no longer sum to 1
def column_weights(query: np.ndarray, key: np.ndarray) -> np.ndarray:
    length = query.shape[1]
    scores = key.T @ query / np.sqrt(query.shape[0])
    return softmax(scores, axis=0) * np.triu(np.ones((length, length)))
# %% repair-column-mask | wrong | finite fill -10: hidden keys keep a small weight
def column_weights(query: np.ndarray, key: np.ndarray) -> np.ndarray:
    length = query.shape[1]
    scores = key.T @ query / np.sqrt(query.shape[0])
    hidden = np.tril(np.ones((length, length), dtype=bool), k=-1)
    return softmax(np.where(hidden, -10.0, scores), axis=0)
# %% repair-column-mask | right | loop over queries, each looks at a slice of keys
def column_weights(query: np.ndarray, key: np.ndarray) -> np.ndarray:
    d_k, length = query.shape
    result = np.zeros((length, length))
    for i in range(length):
        result[: i + 1, i] = softmax(key[:, : i + 1].T @ query[:, i] / d_k**0.5, 0)
    return result
# %% repair-column-mask | right | row dialect inside, turned at the end, all in torch
import torch


def column_weights(query, key):
    q, k = torch.as_tensor(query).T, torch.as_tensor(key).T
    scores = (q @ k.T) / q.shape[1] ** 0.5
    seen = torch.arange(len(q))[:, None] >= torch.arange(len(q))[None]
    return scores.masked_fill(~seen, float("-inf")).softmax(-1).T
# %% stored-by-linear | wrong | shape and place of the course's own matrix
my_place = (d_in, d_out, m, n)
# %% stored-by-linear | wrong | shape of the stored matrix, place of ours
my_place = (5, 7, 6, 3)
# %% stored-by-linear | wrong | row and column counted from 1
my_place = (5, 7, 4, 7)
# %% stored-by-linear | wrong | the place before the shape
my_place = (3, 6, 5, 7)
# %% stored-by-linear | right | looked up in a real layer
import torch

layer = torch.nn.Linear(d_in, d_out, bias=False)
ours = np.zeros((d_in, d_out))
ours[m, n] = 1
layer.weight.data = torch.tensor(ours.T)
row, column = np.argwhere(layer.weight.detach().numpy())[0]
my_place = (*layer.weight.shape, row, column)
# %% stored-by-linear | right | floats from an array turned round
my_place = np.array([[7.0, 5.0], [6.0, 3.0]])[:, ::-1].ravel()
# %% row-of-packed-weight | wrong | row of a query
my_row = h * E // H + a
# %% row-of-packed-weight | wrong | heads interleaved
my_row = E + a * H + h
# %% row-of-packed-weight | wrong | each head holds query, key and value side by side
my_row = h * 3 * (E // H) + E // H + a
# %% row-of-packed-weight | wrong | counted from 1
my_row = 24 + 2 * 6 + 3 + 1
# %% row-of-packed-weight | right | rows numbered and cut into parts and heads
my_row = np.arange(3 * E).reshape(3, H, E // H)[1, h, a]
# %% row-of-packed-weight | right | counted down from the end of the keys
my_row = 2 * 24 - (4 - 2) * 6 + 3

# %% shapes-in-columns | wrong | output with rows as positions
my_shapes = (11, 5, 5, 6)
# %% shapes-in-columns | wrong | K^T Q turned, queries in rows
my_shapes = (5, 11, 6, 5)
# %% shapes-in-columns | wrong | inner dimensions written
my_shapes = (11, 7, 6, 11)
# %% shapes-in-columns | wrong | d_k in the output
my_shapes = (11, 5, 7, 5)
# %% shapes-in-columns | right | shapes of real arrays
_q, _k, _v = np.zeros((7, 5)), np.zeros((7, 11)), np.zeros((6, 11))
my_shapes = (_k.T @ _q).shape + (_v @ (_k.T @ _q)).shape
# %% shapes-in-columns | right | names for the numbers
queries, keys, d_v = 5, 11, 6
my_shapes = (keys, queries, d_v, queries)
# %% shapes-in-columns | right | tuple from a generator
my_shapes = tuple(n for pair in ([11, 5], [6, 5]) for n in pair)
# %% columns-to-rows | wrong | softmax over the queries
def my_rows(query, key, value):
    s = query.T @ key / np.sqrt(query.shape[0])
    return softmax(s, 0) @ value.T
# %% columns-to-rows | wrong | scale from the number of queries
def my_rows(query, key, value):
    return softmax(query.T @ key / np.sqrt(query.shape[1]), -1) @ value.T
# %% columns-to-rows | wrong | output reshaped, not transposed
def my_rows(query, key, value):
    out = value @ softmax(key.T @ query / np.sqrt(len(key)), 0)
    return out.reshape(query.shape[1], value.shape[0])
# %% columns-to-rows | wrong | inputs reshaped, not transposed
def my_rows(query, key, value):
    q, k, v = (a.reshape(a.shape[1], a.shape[0]) for a in (query, key, value))
    return softmax(q @ k.T / np.sqrt(q.shape[1]), -1) @ v
# %% columns-to-rows | wrong | squeezed, so a length of 1 loses its axis
def my_rows(query, key, value):
    return np.squeeze((value @ softmax(key.T @ query / np.sqrt(len(key)), 0)).T)
# %% columns-to-rows | wrong | left with columns as positions
def my_rows(query, key, value):
    return value @ softmax(key.T @ query / np.sqrt(len(key)), 0)
# %% columns-to-rows | wrong | scale by d_v
def my_rows(query, key, value):
    return softmax(query.T @ key / np.sqrt(value.shape[0]), -1) @ value.T
# %% columns-to-rows | wrong | guesses from the shape whether columns were given
def my_rows(query, key, value):
    if query.shape[0] < query.shape[1]:
        query, key, value = query.T, key.T, value.T
    else:
        query, key, value = query.T, key.T, value.T
        return softmax(query @ key.T / np.sqrt(query.shape[0]), -1) @ value
    return softmax(query @ key.T / np.sqrt(query.shape[1]), -1) @ value
# %% columns-to-rows | wrong | scales the query in place
def my_rows(query, key, value):
    query /= np.sqrt(query.shape[0])
    return softmax(query.T @ key, -1) @ value.T
# %% columns-to-rows | right | pure loops
def my_rows(query, key, value):
    import math
    d, n = query.shape
    m = key.shape[1]
    out = np.zeros((n, value.shape[0]))
    for i in range(n):
        s = [sum(query[c, i] * key[c, j] for c in range(d)) / math.sqrt(d) for j in range(m)]
        top = max(s)
        e = [math.exp(x - top) for x in s]
        for a in range(value.shape[0]):
            out[i, a] = sum(w * value[a, j] for j, w in enumerate(e)) / sum(e)
    return out
# %% columns-to-rows | right | einsum and torch softmax
def my_rows(query, key, value):
    import torch
    q, k, v = map(torch.from_numpy, (np.array(query), np.array(key), np.array(value)))
    s = torch.einsum("ci,cj->ij", q, k) * len(q) ** -0.5
    return torch.einsum("ij,aj->ia", s.softmax(1), v)
# %% columns-to-rows | right | column form, turned at the end
my_rows = lambda query, key, value: (value @ softmax((key.T @ query) * key.shape[0] ** -0.5, axis=0)).T
# %% repair-column-mask | wrong | hides the diagonal too
def column_weights(query, key):
    n = query.shape[1]
    scores = key.T @ query / np.sqrt(query.shape[0])
    hidden = np.tril(np.ones((n, n), dtype=bool), k=-1)
    hidden |= np.eye(n, dtype=bool) & (np.arange(n) > 0)
    return softmax(np.where(hidden, -np.inf, scores), axis=0)
# %% repair-column-mask | wrong | only the axis repaired
def column_weights(query, key):
    n = query.shape[1]
    scores = key.T @ query / np.sqrt(query.shape[0])
    hidden = np.triu(np.ones((n, n), dtype=bool), k=1)
    return softmax(np.where(hidden, -np.inf, scores), axis=0)
# %% repair-column-mask | wrong | right weights, rows as queries
def column_weights(query, key):
    n = query.shape[1]
    scores = query.T @ key / np.sqrt(query.shape[0])
    return softmax(np.where(np.tri(n) > 0, scores, -np.inf), axis=1)
# %% repair-column-mask | wrong | query and key exchanged
def column_weights(query, key):
    n = query.shape[1]
    scores = query.T @ key / np.sqrt(query.shape[0])
    hidden = np.tril(np.ones((n, n), dtype=bool), k=-1)
    return softmax(np.where(hidden, -np.inf, scores), axis=0)
# %% repair-column-mask | wrong | masked after the softmax, columns do not sum to 1
def column_weights(query, key):
    scores = key.T @ query / np.sqrt(query.shape[0])
    return np.triu(softmax(scores, axis=0))
# %% repair-column-mask | wrong | scores multiplied by the mask: hidden ones become 0
def column_weights(query, key):
    scores = key.T @ query / np.sqrt(query.shape[0])
    return softmax(np.triu(scores), axis=0)
# %% repair-column-mask | wrong | scale dropped in the repair
def column_weights(query, key):
    n = query.shape[1]
    hidden = np.tril(np.ones((n, n), dtype=bool), k=-1)
    return softmax(np.where(hidden, -np.inf, key.T @ query), axis=0)
# %% repair-column-mask | wrong | last position sees only itself (off by one at the end)
def column_weights(query, key):
    n = query.shape[1]
    scores = key.T @ query / np.sqrt(query.shape[0])
    hidden = np.tril(np.ones((n, n), dtype=bool), k=-1)
    hidden[: n - 1, n - 1] = True
    return softmax(np.where(hidden, -np.inf, scores), axis=0)
# %% repair-column-mask | wrong | fills with -3
def column_weights(query, key):
    n = query.shape[1]
    scores = key.T @ query / np.sqrt(query.shape[0])
    hidden = np.tril(np.ones((n, n), dtype=bool), k=-1)
    return softmax(np.where(hidden, -3.0, scores), axis=0)
# %% repair-column-mask | right | row form, then transposed
def column_weights(query, key):
    n = query.shape[1]
    rows = np.where(np.tri(n, dtype=bool), query.T @ key / query.shape[0] ** 0.5, -np.inf)
    return softmax(rows, axis=1).T
# %% repair-column-mask | right | one column at a time, only visible keys
def column_weights(query, key):
    d, n = query.shape
    out = np.zeros((n, n))
    for i in range(n):
        e = key[:, : i + 1].T @ query[:, i] / np.sqrt(d)
        e = np.exp(e - e.max())
        out[: i + 1, i] = e / e.sum()
    return out
# %% repair-column-mask | right | indices compared
def column_weights(query, key):
    import torch
    j, i = np.indices((key.shape[1], query.shape[1]))
    s = torch.tensor(np.where(j > i, float("-inf"), np.einsum("cj,ci->ji", key, query) / np.sqrt(len(query))))
    return torch.softmax(s, dim=0)

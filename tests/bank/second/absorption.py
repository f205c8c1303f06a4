# %% absorbed-head-matrices | wrong | scale forgotten
def my_forms(w_query, w_key, n_heads):
    return np.stack([q @ k.T for q, k in zip(np.hsplit(w_query, n_heads), np.hsplit(w_key, n_heads))])
# %% absorbed-head-matrices | wrong | scale from all columns, n_heads * d_k
def my_forms(w_query, w_key, n_heads):
    forms = [q @ k.T for q, k in zip(np.hsplit(w_query, n_heads), np.hsplit(w_key, n_heads))]
    return np.stack(forms) / np.sqrt(w_query.shape[1])
# %% absorbed-head-matrices | wrong | scale from the width of the tokens
def my_forms(w_query, w_key, n_heads):
    q = w_query.reshape(len(w_query), n_heads, -1)
    k = w_key.reshape(len(w_key), n_heads, -1)
    return np.einsum("ahc,bhc->hab", q, k) / np.sqrt(len(w_query))
# %% absorbed-head-matrices | wrong | forms transposed
def my_forms(w_query, w_key, n_heads):
    q = w_query.reshape(len(w_query), n_heads, -1)
    k = w_key.reshape(len(w_key), n_heads, -1)
    return np.einsum("ahc,bhc->hba", q, k) / np.sqrt(q.shape[2])
# %% absorbed-head-matrices | wrong | heads take every n_heads-th column
def my_forms(w_query, w_key, n_heads):
    q = w_query.reshape(len(w_query), -1, n_heads)
    k = w_key.reshape(len(w_key), -1, n_heads)
    return np.einsum("ach,bch->hab", q, k) / np.sqrt(q.shape[1])
# %% absorbed-head-matrices | wrong | head axis made by reshape alone, rows mixed
def my_forms(w_query, w_key, n_heads):
    q = w_query.reshape(n_heads, len(w_query), -1)
    k = w_key.reshape(n_heads, len(w_key), -1)
    return q @ k.swapaxes(1, 2) / np.sqrt(q.shape[2])
# %% absorbed-head-matrices | wrong | head axis in the middle
def my_forms(w_query, w_key, n_heads):
    q = w_query.reshape(len(w_query), n_heads, -1)
    k = w_key.reshape(len(w_key), n_heads, -1)
    return np.einsum("ahc,bhc->ahb", q, k) / np.sqrt(q.shape[2])
# %% absorbed-head-matrices | wrong | all heads in one form
def my_forms(w_query, w_key, n_heads):
    d_k = w_query.shape[1] // n_heads
    return np.stack([w_query @ w_key.T / np.sqrt(d_k)] * n_heads)
# %% absorbed-head-matrices | wrong | scale folded in twice, once on each side
def my_forms(w_query, w_key, n_heads):
    d_k = w_query.shape[1] // n_heads
    pairs = zip(np.hsplit(w_query / np.sqrt(d_k), n_heads), np.hsplit(w_key / np.sqrt(d_k), n_heads))
    return np.stack([q @ k.T for q, k in pairs])
# %% absorbed-head-matrices | wrong | symmetric part only
def my_forms(w_query, w_key, n_heads):
    d_k = w_query.shape[1] // n_heads
    forms = np.stack([q @ k.T for q, k in zip(np.hsplit(w_query, n_heads), np.hsplit(w_key, n_heads))]) / np.sqrt(d_k)
    return (forms + forms.swapaxes(1, 2)) / 2
# %% absorbed-head-matrices | wrong | squeezed, one head loses its axis
def my_forms(w_query, w_key, n_heads):
    d_k = w_query.shape[1] // n_heads
    return np.squeeze(np.stack([q @ k.T for q, k in zip(np.hsplit(w_query, n_heads), np.hsplit(w_key, n_heads))]) / np.sqrt(d_k))
# %% absorbed-head-matrices | wrong | w_query divided in place
def my_forms(w_query, w_key, n_heads):
    w_query /= np.sqrt(w_query.shape[1] // n_heads)
    return np.stack([q @ k.T for q, k in zip(np.hsplit(w_query, n_heads), np.hsplit(w_key, n_heads))])
# %% absorbed-head-matrices | right | einsum with the scale as a factor
def my_forms(w_query, w_key, n_heads):
    q = w_query.reshape(*w_query.shape[:1], n_heads, -1)
    k = w_key.reshape(*w_key.shape[:1], n_heads, -1)
    return np.einsum("ahc,bhc->hab", q, k * q.shape[2] ** -0.5)
# %% absorbed-head-matrices | right | sums of outer products in loops
def my_forms(w_query, w_key, n_heads):
    import math
    d_k = w_query.shape[1] // n_heads
    forms = np.zeros((n_heads, len(w_query), len(w_key)))
    for c in range(n_heads * d_k):
        forms[c // d_k] += np.outer(w_query[:, c], w_key[:, c]) / math.sqrt(d_k)
    return forms
# %% absorbed-head-matrices | right | torch, bmm of chunks
import torch
def my_forms(w_query, w_key, n_heads):
    q, k = (torch.stack(torch.tensor(w).chunk(n_heads, dim=1)) for w in (w_query, w_key))
    return torch.bmm(q, k.mT) / q.shape[-1] ** 0.5
# %% absorbed-head-matrices | right | masks of columns, full products
def my_forms(w_query, w_key, n_heads):
    head = np.repeat(np.arange(n_heads), w_query.shape[1] // n_heads)
    scale = np.sqrt(n_heads / w_query.shape[1])
    return np.array([(w_query * (head == h)) @ w_key.T * scale for h in range(n_heads)])

# %% repair-columns-attention | wrong | product repaired, scale not
def columns_attention(tokens, w_query, w_key):
    scores = tokens.T @ (w_key.T @ w_query) @ tokens
    unnormalised = np.exp(scores - scores.max(axis=0, keepdims=True))
    weights = unnormalised / unnormalised.sum(axis=0, keepdims=True)
    return tokens @ weights
# %% repair-columns-attention | wrong | scale repaired, product not
def columns_attention(tokens, w_query, w_key):
    scores = tokens.T @ (w_query.T @ w_key) @ tokens / np.sqrt(len(w_query))
    unnormalised = np.exp(scores - scores.max(axis=0, keepdims=True))
    weights = unnormalised / unnormalised.sum(axis=0, keepdims=True)
    return tokens @ weights
# %% repair-columns-attention | wrong | scale from d, the number of columns of w_query
def columns_attention(tokens, w_query, w_key):
    scores = tokens.T @ (w_key.T @ w_query) @ tokens / np.sqrt(w_query.shape[1])
    unnormalised = np.exp(scores - scores.max(axis=0, keepdims=True))
    weights = unnormalised / unnormalised.sum(axis=0, keepdims=True)
    return tokens @ weights
# %% repair-columns-attention | wrong | scale from the number of positions
def columns_attention(tokens, w_query, w_key):
    scores = tokens.T @ (w_key.T @ w_query) @ tokens / np.sqrt(tokens.shape[1])
    unnormalised = np.exp(scores - scores.max(axis=0, keepdims=True))
    return tokens @ (unnormalised / unnormalised.sum(axis=0, keepdims=True))
# %% repair-columns-attention | wrong | softmax along rows on top of it
def columns_attention(tokens, w_query, w_key):
    scores = tokens.T @ (w_key.T @ w_query) @ tokens / np.sqrt(len(w_query))
    unnormalised = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = unnormalised / unnormalised.sum(axis=1, keepdims=True)
    return tokens @ weights
# %% repair-columns-attention | wrong | rows as positions at the end, weights transposed
def columns_attention(tokens, w_query, w_key):
    scores = tokens.T @ (w_key.T @ w_query) @ tokens / np.sqrt(len(w_query))
    unnormalised = np.exp(scores - scores.max(axis=0, keepdims=True))
    weights = unnormalised / unnormalised.sum(axis=0, keepdims=True)
    return tokens @ weights.T
# %% repair-columns-attention | wrong | output turned, positions in rows
def columns_attention(tokens, w_query, w_key):
    scores = tokens.T @ (w_key.T @ w_query) @ tokens / np.sqrt(len(w_query))
    unnormalised = np.exp(scores - scores.max(axis=0, keepdims=True))
    return (tokens @ (unnormalised / unnormalised.sum(axis=0, keepdims=True))).T
# %% repair-columns-attention | wrong | softmax over everything
def columns_attention(tokens, w_query, w_key):
    scores = tokens.T @ (w_key.T @ w_query) @ tokens / np.sqrt(len(w_query))
    e = np.exp(scores - scores.max())
    return tokens @ (e / e.sum())
# %% repair-columns-attention | wrong | divided by d_k, not by its root
def columns_attention(tokens, w_query, w_key):
    scores = tokens.T @ (w_key.T @ w_query) @ tokens / len(w_query)
    e = np.exp(scores - scores.max(axis=0))
    return tokens @ (e / e.sum(axis=0))
# %% repair-columns-attention | wrong | product made symmetric so that both orders agree
def columns_attention(tokens, w_query, w_key):
    form = (w_key.T @ w_query + w_query.T @ w_key) / 2
    scores = tokens.T @ form @ tokens / np.sqrt(len(w_query))
    e = np.exp(scores - scores.max(axis=0))
    return tokens @ (e / e.sum(axis=0))
# %% repair-columns-attention | wrong | projects the tokens of the input in place
def columns_attention(tokens, w_query, w_key):
    scores = tokens.T @ (w_key.T @ w_query) @ tokens / np.sqrt(len(w_query))
    e = np.exp(scores - scores.max(axis=0))
    tokens[:] = tokens @ (e / e.sum(axis=0))
    return tokens
# %% repair-columns-attention | right | with queries and keys written out, rows and back
def columns_attention(tokens, w_query, w_key):
    x = tokens.T
    q, k = x @ w_query.T, x @ w_key.T
    s = q @ k.T / np.sqrt(q.shape[1])
    p = np.exp(s - s.max(axis=1, keepdims=True))
    return (p / p.sum(axis=1, keepdims=True) @ x).T
# %% repair-columns-attention | right | product kept, softmax along rows and the weights turned
def columns_attention(tokens, w_query, w_key):
    scores = tokens.T @ (w_query.T @ w_key) @ tokens / np.sqrt(len(w_query))
    unnormalised = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = unnormalised / unnormalised.sum(axis=1, keepdims=True)
    return tokens @ weights.T
# %% repair-columns-attention | right | torch, one column of the result after the other
import torch
def columns_attention(tokens, w_query, w_key):
    z, a, b = (torch.tensor(m) for m in (tokens, w_query, w_key))
    def column(i):
        s = (b @ z).T @ (a @ z[:, i]) / a.shape[0] ** 0.5
        return z @ torch.softmax(s, 0)
    return torch.stack([column(i) for i in range(z.shape[1])], dim=1)

# %% absorbed-matrix-backward | wrong | gradient of the keys without transposing d_form
def my_form_backward(w_query, w_key, d_form):
    return d_form @ w_key, (w_query.T @ d_form)
# %% absorbed-matrix-backward | wrong | gradients in the other order
def my_form_backward(w_query, w_key, d_form):
    return d_form.T @ w_query, d_form @ w_key
# %% absorbed-matrix-backward | wrong | scale put in although the form has none
def my_form_backward(w_query, w_key, d_form):
    root = np.sqrt(w_query.shape[1])
    return d_form @ w_key / root, d_form.T @ w_query / root
# %% absorbed-matrix-backward | wrong | transposed only if the shapes force it
def my_form_backward(w_query, w_key, d_form):
    other = d_form if d_form.shape[0] == d_form.shape[1] else d_form.T
    return d_form @ w_key, other @ w_query
# %% absorbed-matrix-backward | wrong | own factor used in place of the other one
def my_form_backward(w_query, w_key, d_form):
    return d_form @ d_form.T @ w_query, d_form.T @ d_form @ w_key
# %% absorbed-matrix-backward | wrong | solved backwards with pseudo-inverses
def my_form_backward(w_query, w_key, d_form):
    return d_form @ np.linalg.pinv(w_key.T), (np.linalg.pinv(w_query) @ d_form).T
# %% absorbed-matrix-backward | wrong | half to each factor
def my_form_backward(w_query, w_key, d_form):
    return d_form @ w_key / 2, d_form.T @ w_query / 2
# %% absorbed-matrix-backward | wrong | queries' gradient used for the keys already updated
def my_form_backward(w_query, w_key, d_form):
    d_w_query = d_form @ w_key
    return d_w_query, d_form.T @ (w_query + d_w_query)
# %% absorbed-matrix-backward | wrong | signs of a descent step
def my_form_backward(w_query, w_key, d_form):
    return -(d_form @ w_key), -(d_form.T @ w_query)
# %% absorbed-matrix-backward | wrong | writes the results over the inputs
def my_form_backward(w_query, w_key, d_form):
    new_query, new_key = d_form @ w_key, d_form.T @ w_query
    w_query[:], w_key[:] = new_query, new_key
    return w_query, w_key
# %% absorbed-matrix-backward | wrong | squeezed, width 1 loses its axis
def my_form_backward(w_query, w_key, d_form):
    return np.squeeze(d_form @ w_key), np.squeeze(d_form.T @ w_query)
# %% absorbed-matrix-backward | wrong | the two products in two threads
from concurrent import futures
def my_form_backward(w_query, w_key, d_form):
    with futures.ThreadPoolExecutor(2) as pool:
        a, b = pool.submit(np.matmul, d_form, w_key), pool.submit(np.matmul, d_form.T, w_query)
        return a.result(), b.result()
# %% absorbed-matrix-backward | cheat | backward of torch on the product
import torch
def my_form_backward(w_query, w_key, d_form):
    q, k = (torch.tensor(w).requires_grad_() for w in (w_query, w_key))
    ((q @ k.T) * torch.tensor(d_form)).sum().backward()
    return q.grad.numpy(), k.grad.numpy()
# %% absorbed-matrix-backward | right | einsum over the entries
def my_form_backward(w_query, w_key, d_form):
    return np.einsum("ab,bc->ac", d_form, w_key), np.einsum("ab,ac->bc", d_form, w_query)
# %% absorbed-matrix-backward | right | loops over the entries of the form
def my_form_backward(w_query, w_key, d_form):
    d_q, d_k = np.zeros(w_query.shape), np.zeros(w_key.shape)
    for a in range(len(w_query)):
        for b in range(len(w_key)):
            d_q[a] += d_form[a, b] * w_key[b]
            d_k[b] += d_form[a, b] * w_query[a]
    return d_q, d_k
# %% absorbed-matrix-backward | right | one product with a block matrix, torch
import torch
def my_form_backward(w_query, w_key, d_form):
    g = torch.tensor(d_form)
    n, m = g.shape
    block = torch.zeros(n + m, n + m, dtype=torch.float64)
    block[:n, n:], block[n:, :n] = g, g.T
    both = block @ torch.cat([torch.tensor(w_query), torch.tensor(w_key)])
    return both[:n], both[n:]

# %% value-bias-contribution | wrong | rows believed to sum to 1
def my_bias_part(weights, b_value, w_output):
    return np.ones((len(weights), 1)) * (b_value @ w_output)
# %% value-bias-contribution | wrong | 1 for rows with weights, 0 for empty rows
def my_bias_part(weights, b_value, w_output):
    return (weights.sum(axis=1, keepdims=True) > 0) * (b_value @ w_output)
# %% value-bias-contribution | wrong | sums of the columns
def my_bias_part(weights, b_value, w_output):
    return np.outer(weights.sum(axis=0), b_value @ w_output)
# %% value-bias-contribution | wrong | weights normalised again after dropout
def my_bias_part(weights, b_value, w_output):
    total = weights.sum(axis=1, keepdims=True)
    p = np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)
    return p.sum(axis=1, keepdims=True) * (b_value @ w_output)
# %% value-bias-contribution | wrong | mean of the row instead of its sum
def my_bias_part(weights, b_value, w_output):
    return weights.mean(axis=1, keepdims=True) * (b_value @ w_output)
# %% value-bias-contribution | wrong | one sum over all weights
def my_bias_part(weights, b_value, w_output):
    return np.tile(weights.sum() / len(weights) * (b_value @ w_output), (len(weights), 1))
# %% value-bias-contribution | wrong | one row only, shape (d,)
def my_bias_part(weights, b_value, w_output):
    return b_value @ w_output
# %% value-bias-contribution | wrong | output projection forgotten
def my_bias_part(weights, b_value, w_output):
    return weights.sum(axis=1, keepdims=True) * b_value
# %% value-bias-contribution | wrong | largest weight of the row instead of the sum
def my_bias_part(weights, b_value, w_output):
    return weights.max(axis=1, keepdims=True) * (b_value @ w_output)
# %% value-bias-contribution | wrong | empty rows filled in place with equal weights
def my_bias_part(weights, b_value, w_output):
    weights[weights.sum(axis=1) == 0] = 1 / weights.shape[1]
    return weights.sum(axis=1, keepdims=True) * (b_value @ w_output)
# %% value-bias-contribution | wrong | sums above 1 cut to 1
def my_bias_part(weights, b_value, w_output):
    return np.minimum(weights.sum(axis=1, keepdims=True), 1.0) * (b_value @ w_output)
# %% value-bias-contribution | wrong | squeezed, a single query loses its axis
def my_bias_part(weights, b_value, w_output):
    return np.squeeze(weights.sum(axis=1, keepdims=True) * (b_value @ w_output))
# %% value-bias-contribution | wrong | empty rows returned as NaN
def my_bias_part(weights, b_value, w_output):
    total = weights.sum(axis=1, keepdims=True)
    with np.errstate(all="ignore"):
        return total / total * total * (b_value @ w_output)
# %% value-bias-contribution | right | output with made-up values, with and without the bias
def my_bias_part(weights, b_value, w_output):
    values = np.zeros((weights.shape[1], len(b_value)))
    head = lambda v: weights @ v @ w_output
    return head(values + b_value) - head(values)
# %% value-bias-contribution | right | einsum over everything
def my_bias_part(weights, b_value, w_output):
    return np.einsum("ij,c,cd->id", weights, b_value, w_output)
# %% value-bias-contribution | right | torch, outer product in float32
import torch
def my_bias_part(weights, b_value, w_output):
    weights, b_value, w_output = (torch.tensor(a, dtype=torch.float32) for a in (weights, b_value, w_output))
    return torch.outer(weights.sum(1), b_value @ w_output)
# %% value-bias-contribution | right | a loop that adds each weight's share
def my_bias_part(weights, b_value, w_output):
    part = b_value.dot(w_output)
    out = np.zeros((weights.shape[0], part.size))
    for i, row in enumerate(weights):
        for w in row:
            out[i] += w * part
    return out

# %% read-bilinear-form | wrong | column read for the feature that asks
my_reading = (1, 0.2, -0.4 + 1.2 + 0.5 + 0.1)
# %% read-bilinear-form | wrong | column 4 read, entry itself for the part
my_reading = (1, -0.6, 1.4)
# %% read-bilinear-form | wrong | antisymmetric part
my_reading = (2, -0.8, 1.4)
# %% read-bilinear-form | wrong | half forgotten in the symmetric part
my_reading = (2, 0.4, 1.4)
# %% read-bilinear-form | wrong | only the entries off the diagonal
my_reading = (2, 0.2, 0.8)
# %% read-bilinear-form | wrong | only the diagonal
my_reading = (2, 0.2, 0.6)
# %% read-bilinear-form | wrong | one of the two cross terms
my_reading = (2, 0.2, 0.5 + 1.2 + 0.1)
# %% read-bilinear-form | wrong | features counted from 1
my_reading = (3, 0.2, 1.4)
# %% read-bilinear-form | wrong | row 3 read for feature 4, as if counted from 1
my_reading = (4, 0.2, 1.4)
# %% read-bilinear-form | wrong | weight in place of the feature
my_reading = (1.6, 0.2, 1.4)
# %% read-bilinear-form | wrong | cross terms counted twice
my_reading = (2, 0.2, 0.5 + 2 * (1.2 - 0.4) + 0.1)
# %% read-bilinear-form | right | sums left to Python
my_reading = (2, (1.0 + -0.6) / 2, sum([0.5, 1.2, -0.4, 0.1]))
# %% latent-cache-size | wrong | keys and values counted as two latent vectors
my_cache = (L * (2 * d_c + d_r) * 2 / 1000, (2 * d_c + d_r) / (2 * d))
# %% latent-cache-size | wrong | latent queries cached as well
my_cache = (L * (d_c + d_q + d_r) * 2 / 1000, (d_c + d_q + d_r) / (2 * d))
# %% latent-cache-size | wrong | a rotary key for each head
my_cache = (L * (d_c + H * d_r) * 2 / 1000, (d_c + H * d_r) / (2 * d))
# %% latent-cache-size | wrong | rotary key forgotten
my_cache = (L * d_c * 2 / 1000, d_c / (2 * d))
# %% latent-cache-size | wrong | kB taken for 1024 bytes
my_cache = (L * (d_c + d_r) * 2 / 1024, (d_c + d_r) / (2 * d))
# %% latent-cache-size | wrong | one layer only
my_cache = ((d_c + d_r) * 2 / 1000, (d_c + d_r) / (2 * d))
# %% latent-cache-size | wrong | a group without its values
my_cache = (L * (d_c + d_r) * 2 / 1000, (d_c + d_r) / d)
# %% latent-cache-size | wrong | groups rounded up
my_cache = (L * (d_c + d_r) * 2 / 1000, -(-(d_c + d_r) // (2 * d)))
# %% latent-cache-size | wrong | one byte for each number
my_cache = (L * (d_c + d_r) / 1000, (d_c + d_r) / (2 * d))
# %% latent-cache-size | wrong | bits instead of bytes
my_cache = (L * (d_c + d_r) * 16 / 1000, (d_c + d_r) / (2 * d))
# %% latent-cache-size | wrong | bytes, not kB
my_cache = (L * (d_c + d_r) * 2, (d_c + d_r) / (2 * d))
# %% latent-cache-size | right | numbers worked out by hand, two decimals
my_cache = (33.79, 2.2)
# %% latent-cache-size | right | second from the first by dividing the bytes
_bytes = 16 // 8
_latent = _bytes * L * sum((d_c, d_r))
_group = _bytes * L * (d + d)
my_cache = tuple(np.divide([_latent, _latent], [1e3, _group]))

# %% joint-key-value-compression | wrong | each compressed on its own
def my_joint(w_key, w_value, d_latent):
    def near(w):
        u, s, v = np.linalg.svd(w, full_matrices=False)
        return u[:, :d_latent] * s[:d_latent] @ v[:d_latent]
    return near(w_key), near(w_value)
# %% joint-key-value-compression | wrong | half of the latent space for each
def my_joint(w_key, w_value, d_latent):
    def near(w, r):
        u, s, v = np.linalg.svd(w, full_matrices=False)
        return u[:, :r] * s[:r] @ v[:r]
    return near(w_key, d_latent - d_latent // 2), near(w_value, d_latent // 2)
# %% joint-key-value-compression | wrong | cut in the middle although n and m may differ
def my_joint(w_key, w_value, d_latent):
    u, s, v = np.linalg.svd(np.hstack([w_key, w_value]), full_matrices=False)
    near = u[:, :d_latent] * s[:d_latent] @ v[:d_latent]
    half = near.shape[1] // 2
    return near[:, :half], near[:, half:]
# %% joint-key-value-compression | wrong | latent space of the keys used for the values
def my_joint(w_key, w_value, d_latent):
    u = np.linalg.svd(w_key, full_matrices=False)[0][:, :d_latent]
    return u @ (u.T @ w_key), u @ (u.T @ w_value)
# %% joint-key-value-compression | wrong | singular values left out
def my_joint(w_key, w_value, d_latent):
    u, s, v = np.linalg.svd(np.hstack([w_key, w_value]), full_matrices=False)
    near = u[:, :d_latent] @ v[:d_latent]
    return near[:, :w_key.shape[1]], near[:, w_key.shape[1]:]
# %% joint-key-value-compression | wrong | smallest singular values kept
def my_joint(w_key, w_value, d_latent):
    u, s, v = np.linalg.svd(np.hstack([w_key, w_value]), full_matrices=False)
    near = u[:, -d_latent:] * s[-d_latent:] @ v[-d_latent:]
    return near[:, :w_key.shape[1]], near[:, w_key.shape[1]:]
# %% joint-key-value-compression | wrong | right vectors used as if svd returned V
def my_joint(w_key, w_value, d_latent):
    u, s, v = np.linalg.svd(np.hstack([w_key, w_value]))
    near = u[:, :d_latent] * s[:d_latent] @ v[:, :d_latent].T
    return near[:, :w_key.shape[1]], near[:, w_key.shape[1]:]
# %% joint-key-value-compression | wrong | factors returned instead of the matrices
def my_joint(w_key, w_value, d_latent):
    u, s, v = np.linalg.svd(np.hstack([w_key, w_value]), full_matrices=False)
    return u[:, :d_latent] * s[:d_latent], v[:d_latent]
# %% joint-key-value-compression | wrong | stacked one above the other, an error if n and m differ
def my_joint(w_key, w_value, d_latent):
    u, s, v = np.linalg.svd(np.vstack([w_key, w_value]), full_matrices=False)
    near = u[:, :d_latent] * s[:d_latent] @ v[:d_latent]
    return near[:len(w_key)], near[len(w_key):]
# %% joint-key-value-compression | wrong | first d_latent pivots of a QR kept, rank right but not the nearest
def my_joint(w_key, w_value, d_latent):
    both = np.hstack([w_key, w_value])
    q = np.linalg.qr(both)[0][:, :d_latent]
    near = q @ (q.T @ both)
    return near[:, :w_key.shape[1]], near[:, w_key.shape[1]:]
# %% joint-key-value-compression | wrong | one singular value too many
def my_joint(w_key, w_value, d_latent):
    u, s, v = np.linalg.svd(np.hstack([w_key, w_value]), full_matrices=False)
    s = np.where(np.arange(len(s)) <= d_latent, s, 0)
    near = u * s @ v
    return near[:, :w_key.shape[1]], near[:, w_key.shape[1]:]
# %% joint-key-value-compression | wrong | columns centred first as in a principal component analysis
def my_joint(w_key, w_value, d_latent):
    both = np.hstack([w_key, w_value])
    mean = both.mean(axis=0)
    u, s, v = np.linalg.svd(both - mean, full_matrices=False)
    near = u[:, :d_latent] * s[:d_latent] @ v[:d_latent] + mean
    return near[:, :w_key.shape[1]], near[:, w_key.shape[1]:]
# %% joint-key-value-compression | wrong | values and keys returned in the other order
def my_joint(w_key, w_value, d_latent):
    u, s, v = np.linalg.svd(np.hstack([w_value, w_key]), full_matrices=False)
    near = u[:, :d_latent] * s[:d_latent] @ v[:d_latent]
    return near[:, :w_value.shape[1]], near[:, w_value.shape[1]:]
# %% joint-key-value-compression | wrong | results written into the inputs
def my_joint(w_key, w_value, d_latent):
    u, s, v = np.linalg.svd(np.hstack([w_key, w_value]), full_matrices=False)
    near = u[:, :d_latent] * s[:d_latent] @ v[:d_latent]
    w_key[:], w_value[:] = np.hsplit(near, [w_key.shape[1]])
    return w_key, w_value
# %% joint-key-value-compression | right | projector from the eigenvectors of the sum of two Gram matrices
def my_joint(w_key, w_value, d_latent):
    gram = w_key @ w_key.T + w_value @ w_value.T
    vectors = np.linalg.eigh(gram)[1][:, ::-1][:, :d_latent]
    projector = vectors @ vectors.T
    return projector @ w_key, projector @ w_value
# %% joint-key-value-compression | right | torch, rank-one terms added one by one
import torch
def my_joint(w_key, w_value, d_latent):
    n = w_key.shape[1]
    u, s, vh = torch.linalg.svd(torch.cat([torch.tensor(w_key), torch.tensor(w_value)], dim=1))
    near = sum(s[r] * torch.outer(u[:, r], vh[r]) for r in range(d_latent))
    return near[:, :n], near[:, n:]
# %% joint-key-value-compression | right | singular values beyond the rank taken away from the transpose
def my_joint(w_key, w_value, d_latent):
    rows = np.concatenate([w_key.T, w_value.T])
    left, sizes, right = np.linalg.svd(rows, full_matrices=False)
    rest = (left[:, d_latent:] * sizes[d_latent:]) @ right[d_latent:]
    return tuple(part.T for part in np.split(rows - rest, [w_key.shape[1]]))

# %% absorption-break-even | wrong | scores and averages in the latent space counted once
my_new_tokens = t * c * (k + v) / (c * (k + v) + t * c - t * (k + v))
# %% absorption-break-even | wrong | only the new tokens' keys and values made
my_new_tokens = t * (k + v) / (2 * c) * c / (t - c)
# %% absorption-break-even | wrong | sign of the naive scores
my_new_tokens = t * c * (k + v) / (c * (k + v) + 2 * t * c + t * (k + v))
# %% absorption-break-even | wrong | naive scores forgotten
my_new_tokens = t * c * (k + v) / (c * (k + v) + 2 * t * c)
# %% absorption-break-even | wrong | way up and down for all t tokens in the latent space
my_new_tokens = 0 * t
# %% absorption-break-even | wrong | lifting and bringing back forgotten
my_new_tokens = c * (k + v) / (2 * c - k - v)
# %% absorption-break-even | wrong | limit for a long text given as the answer
my_new_tokens = c * (k + v) / (2 * c - (k + v)) + t * 0
# %% absorption-break-even | wrong | only the queries lifted, averages not brought back
my_new_tokens = t * c * (k + v) / (c * k + 2 * t * c - t * (k + v))
# %% absorption-break-even | wrong | the reciprocal
my_new_tokens = (c * (k + v) + 2 * t * c - t * (k + v)) / (t * c * (k + v))
# %% absorption-break-even | wrong | values taken as wide as keys
my_new_tokens = t * c * k / (c * k + t * c - t * k)
# %% absorption-break-even | cheat | both slopes taken by diff from the counts
from sympy import symbols as _symbols
_n = _symbols("n")
_naive = t * c * (k + v) + _n * t * (k + v)
_latent = _n * c * (k + v) + 2 * _n * t * c
my_new_tokens = _naive.subs(_n, 0) / (_latent.diff(_n) - _naive.diff(_n))
# %% absorption-break-even | right | SymPy's solve on the two counts
from sympy import solve, symbols as _symbols
_n = _symbols("n", real=True)
_naive = t * c * (k + v) + _n * t * (k + v)
_latent = _n * c * k + _n * t * c + _n * t * c + _n * c * v
my_new_tokens = solve(_naive - _latent, _n)[0]
# %% absorption-break-even | right | a power of minus one of reciprocals
my_new_tokens = (1 / t + 2 / (k + v) - 1 / c) ** -1
# %% absorption-break-even | right | with a name for the sum of the widths
_w = k + v
_per_token = c * _w - t * _w + 2 * t * c
my_new_tokens = c * t * _w / _per_token

# %% repair-decoupled-scores | wrong | rotation repaired, scale not
def decoupled_scores(query, query_rope, latent, key_rope, w_key_up):
    new, length = len(query), len(latent)
    here, there = np.arange(length - new, length), np.arange(length)
    absorbed = query @ w_key_up.T
    content = absorbed @ latent.T
    position = rotate(query_rope, here) @ rotate(key_rope, there).T
    return (content + position) / np.sqrt(absorbed.shape[1] + query_rope.shape[1])
# %% repair-decoupled-scores | wrong | scale repaired, latent vectors still rotated
def decoupled_scores(query, query_rope, latent, key_rope, w_key_up):
    new, length = len(query), len(latent)
    here, there = np.arange(length - new, length), np.arange(length)
    absorbed = query @ w_key_up.T
    content = rotate(absorbed, here) @ rotate(latent, there).T
    position = rotate(query_rope, here) @ rotate(key_rope, there).T
    return (content + position) / np.sqrt(query.shape[1] + query_rope.shape[1])
# %% repair-decoupled-scores | wrong | only the latent vectors left unrotated
def decoupled_scores(query, query_rope, latent, key_rope, w_key_up):
    new, length = len(query), len(latent)
    here, there = np.arange(length - new, length), np.arange(length)
    content = rotate(query @ w_key_up.T, here) @ latent.T
    position = rotate(query_rope, here) @ rotate(key_rope, there).T
    return (content + position) / np.sqrt(query.shape[1] + query_rope.shape[1])
# %% repair-decoupled-scores | wrong | new tokens counted from 0
def decoupled_scores(query, query_rope, latent, key_rope, w_key_up):
    here, there = np.arange(len(query)), np.arange(len(latent))
    content = query @ w_key_up.T @ latent.T
    position = rotate(query_rope, here) @ rotate(key_rope, there).T
    return (content + position) / np.sqrt(query.shape[1] + query_rope.shape[1])
# %% repair-decoupled-scores | wrong | no rotation at all
def decoupled_scores(query, query_rope, latent, key_rope, w_key_up):
    content = query @ w_key_up.T @ latent.T
    return (content + query_rope @ key_rope.T) / np.sqrt(query.shape[1] + query_rope.shape[1])
# %% repair-decoupled-scores | wrong | scale from the content's width alone
def decoupled_scores(query, query_rope, latent, key_rope, w_key_up):
    t = len(latent)
    content = query @ w_key_up.T @ latent.T
    position = rotate(query_rope, np.arange(t)[-len(query):]) @ rotate(key_rope, np.arange(t)).T
    return (content + position) / np.sqrt(query.shape[1])
# %% repair-decoupled-scores | wrong | each part with a scale of its own
def decoupled_scores(query, query_rope, latent, key_rope, w_key_up):
    t = len(latent)
    content = query @ w_key_up.T @ latent.T / np.sqrt(query.shape[1])
    position = rotate(query_rope, np.arange(t - len(query), t)) @ rotate(key_rope, np.arange(t)).T
    return content + position / np.sqrt(query_rope.shape[1])
# %% repair-decoupled-scores | wrong | content query and key rotated before absorbing
def decoupled_scores(query, query_rope, latent, key_rope, w_key_up):
    t = len(latent)
    here, there = np.arange(t - len(query), t), np.arange(t)
    key = latent @ w_key_up
    half = key.shape[1] // 2 * 2
    content = rotate(query[:, :half], here) @ rotate(key[:, :half], there).T + query[:, half:] @ key[:, half:].T
    position = rotate(query_rope, here) @ rotate(key_rope, there).T
    return (content + position) / np.sqrt(query.shape[1] + query_rope.shape[1])
# %% repair-decoupled-scores | wrong | positions counted from 1 for the queries only
def decoupled_scores(query, query_rope, latent, key_rope, w_key_up):
    t = len(latent)
    content = query @ w_key_up.T @ latent.T
    position = rotate(query_rope, np.arange(t - len(query), t) + 1) @ rotate(key_rope, np.arange(t)).T
    return (content + position) / np.sqrt(query.shape[1] + query_rope.shape[1])
# %% repair-decoupled-scores | wrong | causal mask put in
def decoupled_scores(query, query_rope, latent, key_rope, w_key_up):
    t = len(latent)
    here, there = np.arange(t - len(query), t), np.arange(t)
    s = query @ w_key_up.T @ latent.T + rotate(query_rope, here) @ rotate(key_rope, there).T
    s = s / np.sqrt(query.shape[1] + query_rope.shape[1])
    return np.where(there <= here[:, None], s, -np.inf)
# %% repair-decoupled-scores | wrong | transposed, keys in rows
def decoupled_scores(query, query_rope, latent, key_rope, w_key_up):
    t = len(latent)
    here, there = np.arange(t - len(query), t), np.arange(t)
    s = latent @ w_key_up @ query.T + rotate(key_rope, there) @ rotate(query_rope, here).T
    return s / np.sqrt(query.shape[1] + query_rope.shape[1])
# %% repair-decoupled-scores | wrong | weights returned, softmax on top
def decoupled_scores(query, query_rope, latent, key_rope, w_key_up):
    t = len(latent)
    here, there = np.arange(t - len(query), t), np.arange(t)
    s = query @ w_key_up.T @ latent.T + rotate(query_rope, here) @ rotate(key_rope, there).T
    e = np.exp(s / np.sqrt(query.shape[1] + query_rope.shape[1]))
    return e / e.sum(axis=1, keepdims=True)
# %% repair-decoupled-scores | wrong | negative slice with n = t right, rotary keys turned in place
def decoupled_scores(query, query_rope, latent, key_rope, w_key_up):
    t = len(latent)
    key_rope[:] = rotate(key_rope, np.arange(t))
    s = query @ w_key_up.T @ latent.T + rotate(query_rope, np.arange(t - len(query), t)) @ key_rope.T
    return s / np.sqrt(query.shape[1] + query_rope.shape[1])
# %% repair-decoupled-scores | right | keys written out and joined with the rotary part
def decoupled_scores(query, query_rope, latent, key_rope, w_key_up):
    there = np.arange(len(key_rope))
    keys = np.hstack([latent @ w_key_up, rotate(key_rope, there)])
    queries = np.hstack([query, rotate(query_rope, there[len(there) - len(query):])])
    return queries @ keys.T / np.sqrt(keys.shape[1])
# %% repair-decoupled-scores | right | relative positions only, one query after the other
def decoupled_scores(query, query_rope, latent, key_rope, w_key_up):
    t, n = len(latent), len(query)
    rows = []
    for i in range(n):
        distance = np.arange(t) - (t - n + i)
        rows.append(latent @ (w_key_up @ query[i]) + rotate(key_rope, distance) @ query_rope[i])
    return np.array(rows) / np.sqrt(query.shape[1] + query_rope.shape[1])
# %% repair-decoupled-scores | right | complex numbers for the rotation
def decoupled_scores(query, query_rope, latent, key_rope, w_key_up):
    t, n, half = len(latent), len(query), query_rope.shape[1] // 2
    turn = np.exp(1j * np.outer(np.arange(t), 10_000.0 ** (-np.arange(half) / half)))
    pair = lambda x: x[:, :half] + 1j * x[:, half:]
    position = ((pair(query_rope) * turn[t - n:]) @ (pair(key_rope) * turn).conj().T).real
    content = np.einsum("ih,ch,jc->ij", query, w_key_up, latent)
    return (content + position) * (query.shape[1] + 2 * half) ** -0.5

# %% latent-decoding-step | wrong | scale from the width of the latent vectors
def my_latent_step(query, query_rope, latent, key_rope, w_key_up, w_value_up, w_output):
    H, d = query.shape
    up = w_key_up.reshape(len(w_key_up), H, d)
    lifted = np.einsum("hk,chk->hc", query, up)
    s = (lifted @ latent.T + query_rope @ key_rope.T) / np.sqrt(latent.shape[1] + key_rope.shape[1])
    p = np.exp(s - s.max(1, keepdims=True))
    averages = p / p.sum(1, keepdims=True) @ latent
    z = np.einsum("hc,chv->hv", averages, w_value_up.reshape(len(w_value_up), H, -1))
    return lifted, averages, z.reshape(-1) @ w_output
# %% latent-decoding-step | wrong | rotary part forgotten
def my_latent_step(query, query_rope, latent, key_rope, w_key_up, w_value_up, w_output):
    H, d = query.shape
    up = w_key_up.reshape(len(w_key_up), H, d)
    lifted = np.einsum("hk,chk->hc", query, up)
    s = lifted @ latent.T / np.sqrt(d + key_rope.shape[1])
    p = np.exp(s - s.max(1, keepdims=True))
    averages = p / p.sum(1, keepdims=True) @ latent
    z = np.einsum("hc,chv->hv", averages, w_value_up.reshape(len(w_value_up), H, -1))
    return lifted, averages, z.reshape(-1) @ w_output
# %% latent-decoding-step | wrong | scale folded into the lifted queries that are returned
def my_latent_step(query, query_rope, latent, key_rope, w_key_up, w_value_up, w_output):
    H, d = query.shape
    root = np.sqrt(d + query_rope.shape[1])
    lifted = np.einsum("hk,chk->hc", query, w_key_up.reshape(-1, H, d)) / root
    p = np.exp(lifted @ latent.T + query_rope @ key_rope.T / root)
    averages = p / p.sum(1, keepdims=True) @ latent
    z = np.einsum("hc,chv->hv", averages, w_value_up.reshape(len(w_value_up), H, -1))
    return lifted, averages, z.reshape(-1) @ w_output
# %% latent-decoding-step | wrong | up-projections cut into heads by a reshape alone
def my_latent_step(query, query_rope, latent, key_rope, w_key_up, w_value_up, w_output):
    H, d = query.shape
    c = latent.shape[1]
    keys_up, values_up = w_key_up.reshape(H, c, d), w_value_up.reshape(H, c, -1)
    lifted = np.einsum("hk,hck->hc", query, keys_up)
    p = np.exp((lifted @ latent.T + query_rope @ key_rope.T) / np.sqrt(d + query_rope.shape[1]))
    averages = p / p.sum(1, keepdims=True) @ latent
    return lifted, averages, np.einsum("hc,hcv->hv", averages, values_up).ravel() @ w_output
# %% latent-decoding-step | wrong | softmax over the heads
def my_latent_step(query, query_rope, latent, key_rope, w_key_up, w_value_up, w_output):
    H, d = query.shape
    lifted = np.einsum("hk,chk->hc", query, w_key_up.reshape(-1, H, d))
    p = np.exp((lifted @ latent.T + query_rope @ key_rope.T) / np.sqrt(d + query_rope.shape[1]))
    averages = p / p.sum(0, keepdims=True) @ latent
    z = np.einsum("hc,chv->hv", averages, w_value_up.reshape(len(w_value_up), H, -1))
    return lifted, averages, z.reshape(-1) @ w_output
# %% latent-decoding-step | wrong | own token left out of the cache
def my_latent_step(query, query_rope, latent, key_rope, w_key_up, w_value_up, w_output):
    H, d = query.shape
    lifted = np.einsum("hk,chk->hc", query, w_key_up.reshape(-1, H, d))
    old, old_rope = (latent[:-1], key_rope[:-1]) if len(latent) > 1 else (latent, key_rope)
    p = np.exp((lifted @ old.T + query_rope @ old_rope.T) / np.sqrt(d + query_rope.shape[1]))
    averages = p / p.sum(1, keepdims=True) @ old
    z = np.einsum("hc,chv->hv", averages, w_value_up.reshape(len(w_value_up), H, -1))
    return lifted, averages, z.reshape(-1) @ w_output
# %% latent-decoding-step | wrong | value heads as wide as key heads
def my_latent_step(query, query_rope, latent, key_rope, w_key_up, w_value_up, w_output):
    H, d = query.shape
    lifted = np.stack([query[h] @ w_key_up[:, h * d:(h + 1) * d].T for h in range(H)])
    p = np.exp((lifted @ latent.T + query_rope @ key_rope.T) / np.sqrt(d + query_rope.shape[1]))
    averages = p / p.sum(1, keepdims=True) @ latent
    out = sum(averages[h] @ w_value_up[:, h * d:(h + 1) * d] @ w_output[h * d:(h + 1) * d] for h in range(H))
    return lifted, averages, out
# %% latent-decoding-step | wrong | rotary query appended to the lifted one in the result
def my_latent_step(query, query_rope, latent, key_rope, w_key_up, w_value_up, w_output):
    H, d = query.shape
    lifted = np.hstack([np.einsum("hk,chk->hc", query, w_key_up.reshape(-1, H, d)), query_rope])
    p = np.exp(lifted @ np.hstack([latent, key_rope]).T / np.sqrt(d + query_rope.shape[1]))
    averages = p / p.sum(1, keepdims=True) @ latent
    z = np.einsum("hc,chv->hv", averages, w_value_up.reshape(len(w_value_up), H, -1))
    return lifted, averages, z.reshape(-1) @ w_output
# %% latent-decoding-step | wrong | output with an axis for the one token
def my_latent_step(query, query_rope, latent, key_rope, w_key_up, w_value_up, w_output):
    H, d = query.shape
    lifted = np.einsum("hk,chk->hc", query, w_key_up.reshape(-1, H, d))
    p = np.exp((lifted @ latent.T + query_rope @ key_rope.T) / np.sqrt(d + query_rope.shape[1]))
    averages = p / p.sum(1, keepdims=True) @ latent
    z = np.einsum("hc,chv->hv", averages, w_value_up.reshape(len(w_value_up), H, -1))
    return lifted, averages, z.reshape(1, -1) @ w_output
# %% latent-decoding-step | wrong | scale applied to the content only
def my_latent_step(query, query_rope, latent, key_rope, w_key_up, w_value_up, w_output):
    H, d = query.shape
    lifted = np.einsum("hk,chk->hc", query, w_key_up.reshape(-1, H, d))
    s = lifted @ latent.T / np.sqrt(d + query_rope.shape[1]) + query_rope @ key_rope.T
    p = np.exp(s - s.max(1, keepdims=True))
    averages = p / p.sum(1, keepdims=True) @ latent
    z = np.einsum("hc,chv->hv", averages, w_value_up.reshape(len(w_value_up), H, -1))
    return lifted, averages, z.reshape(-1) @ w_output
# %% latent-decoding-step | wrong | averages of values returned in place of latent vectors
def my_latent_step(query, query_rope, latent, key_rope, w_key_up, w_value_up, w_output):
    H, d = query.shape
    lifted = np.einsum("hk,chk->hc", query, w_key_up.reshape(-1, H, d))
    p = np.exp((lifted @ latent.T + query_rope @ key_rope.T) / np.sqrt(d + query_rope.shape[1]))
    averages = p / p.sum(1, keepdims=True) @ latent
    z = np.einsum("hc,chv->hv", averages, w_value_up.reshape(len(w_value_up), H, -1))
    return lifted, z, z.reshape(-1) @ w_output
# %% latent-decoding-step | wrong | lifted with the up-projection of the values, where the shapes allow it
def my_latent_step(query, query_rope, latent, key_rope, w_key_up, w_value_up, w_output):
    H, d = query.shape
    up = w_value_up if w_value_up.shape == w_key_up.shape else w_key_up
    lifted = np.einsum("hk,chk->hc", query, up.reshape(-1, H, d))
    p = np.exp((lifted @ latent.T + query_rope @ key_rope.T) / np.sqrt(d + query_rope.shape[1]))
    averages = p / p.sum(1, keepdims=True) @ latent
    z = np.einsum("hc,chv->hv", averages, w_value_up.reshape(len(w_value_up), H, -1))
    return lifted, averages, z.reshape(-1) @ w_output
# %% latent-decoding-step | wrong | all heads lifted together, summed and shared
def my_latent_step(query, query_rope, latent, key_rope, w_key_up, w_value_up, w_output):
    H, d = query.shape
    lifted = np.tile(query.reshape(-1) @ w_key_up.T, (H, 1))
    p = np.exp((lifted @ latent.T + query_rope @ key_rope.T) / np.sqrt(d + query_rope.shape[1]))
    averages = p / p.sum(1, keepdims=True) @ latent
    z = np.einsum("hc,chv->hv", averages, w_value_up.reshape(len(w_value_up), H, -1))
    return lifted, averages, z.reshape(-1) @ w_output
# %% latent-decoding-step | wrong | queries scaled in place
def my_latent_step(query, query_rope, latent, key_rope, w_key_up, w_value_up, w_output):
    H, d = query.shape
    root = np.sqrt(d + query_rope.shape[1])
    lifted = np.einsum("hk,chk->hc", query, w_key_up.reshape(-1, H, d))
    query_rope /= root
    p = np.exp(lifted @ latent.T / root + query_rope @ key_rope.T)
    averages = p / p.sum(1, keepdims=True) @ latent
    z = np.einsum("hc,chv->hv", averages, w_value_up.reshape(len(w_value_up), H, -1))
    return lifted, averages, z.reshape(-1) @ w_output
# %% latent-decoding-step | right | head by head, output as a sum
def my_latent_step(query, query_rope, latent, key_rope, w_key_up, w_value_up, w_output):
    H = len(query)
    ups, downs, outs = np.hsplit(w_key_up, H), np.hsplit(w_value_up, H), np.vsplit(w_output, H)
    lifted, averages, output = [], [], 0
    for q, r, up, down, out in zip(query, query_rope, ups, downs, outs):
        a = up @ q
        s = (latent @ a + key_rope @ r) / np.sqrt(len(q) + len(r))
        p = np.exp(s - np.logaddexp.reduce(s))
        lifted.append(a)
        averages.append(p @ latent)
        output = output + averages[-1] @ down @ out
    return np.array(lifted), np.array(averages), output
# %% latent-decoding-step | right | torch, one product for content and position
import torch
def my_latent_step(query, query_rope, latent, key_rope, w_key_up, w_value_up, w_output):
    q, r, c, k, wk, wv, wo = (torch.tensor(a) for a in (query, query_rope, latent, key_rope, w_key_up, w_value_up, w_output))
    H, d = q.shape
    lifted = torch.einsum("hk,chk->hc", q, wk.unflatten(1, (H, d)))
    s = torch.cat([lifted, r], 1) @ torch.cat([c, k], 1).T
    p = torch.softmax(s / (d + r.shape[1]) ** 0.5, dim=1)
    averages = p @ c
    return lifted, averages, torch.einsum("hc,chv->hv", averages, wv.unflatten(1, (H, -1))).flatten() @ wo
# %% latent-decoding-step | right | keys and values made after all for weights and output
def my_latent_step(query, query_rope, latent, key_rope, w_key_up, w_value_up, w_output):
    H, d = query.shape
    heads = lambda m: np.moveaxis(m.reshape(len(m), H, -1), 1, 0)
    keys, values = heads(latent @ w_key_up), heads(latent @ w_value_up)
    s = (keys @ query[..., None])[..., 0] + query_rope @ key_rope.T
    p = np.exp(s / np.sqrt(d + query_rope.shape[1]))
    p = p / p.sum(axis=1, keepdims=True)
    z = (p[:, None] @ values)[:, 0]
    lifted = (heads(w_key_up) @ query[..., None])[..., 0]
    return lifted, p @ latent, np.concatenate(z) @ w_output

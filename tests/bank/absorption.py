# %% absorbed-head-matrices | wrong | scale of the whole width instead of one head
def my_forms(w_query, w_key, n_heads):
    d_k = w_query.shape[1] // n_heads
    q = w_query.reshape(len(w_query), n_heads, d_k).swapaxes(0, 1)
    k = w_key.reshape(len(w_key), n_heads, d_k).swapaxes(0, 1)
    return q @ k.swapaxes(1, 2) / np.sqrt(w_query.shape[1])

# %% absorbed-head-matrices | wrong | heads own interleaved columns
def my_forms(w_query, w_key, n_heads):
    d_k = w_query.shape[1] // n_heads
    return np.stack([w_query[:, h::n_heads] @ w_key[:, h::n_heads].T for h in range(n_heads)]) / np.sqrt(d_k)

# %% absorbed-head-matrices | wrong | key form times query form: transposed
def my_forms(w_query, w_key, n_heads):
    d_k = w_query.shape[1] // n_heads
    blocks = [slice(h * d_k, (h + 1) * d_k) for h in range(n_heads)]
    return np.stack([w_key[:, b] @ w_query[:, b].T for b in blocks]) / d_k**0.5

# %% absorbed-head-matrices | wrong | scales w_query in place: input changed
def my_forms(w_query, w_key, n_heads):
    d_k = w_query.shape[1] // n_heads
    w_query /= np.sqrt(d_k)
    q = w_query.reshape(len(w_query), n_heads, d_k)
    k = w_key.reshape(len(w_key), n_heads, d_k)
    return np.einsum("ahc,bhc->hab", q, k)

# %% absorbed-head-matrices | right | einsum in torch, scale split on both sides
def my_forms(w_query, w_key, n_heads):
    import torch

    d_k = w_query.shape[1] // n_heads
    q = torch.tensor(w_query).unflatten(1, (n_heads, d_k)) * d_k**-0.25
    k = torch.tensor(w_key).unflatten(1, (n_heads, d_k)) * d_k**-0.25
    return torch.einsum("ahc,bhc->hab", q, k)

# %% absorbed-head-matrices | right | four loops over single entries
def my_forms(w_query, w_key, n_heads):
    d_query, width = w_query.shape
    d_key = w_key.shape[0]
    d_k = width // n_heads
    forms = np.zeros((n_heads, d_query, d_key))
    for h in range(n_heads):
        for a in range(d_query):
            for b in range(d_key):
                total = 0.0
                for c in range(h * d_k, h * d_k + d_k):
                    total += w_query[a, c] * w_key[b, c]
                forms[h, a, b] = total / d_k**0.5
    return forms

# %% repair-columns-attention | wrong | only the scale added
def columns_attention(tokens: np.ndarray, w_query: np.ndarray, w_key: np.ndarray) -> np.ndarray:
    scores = tokens.T @ (w_query.T @ w_key) @ tokens / np.sqrt(len(w_query))
    unnormalised = np.exp(scores - scores.max(axis=0, keepdims=True))
    weights = unnormalised / unnormalised.sum(axis=0, keepdims=True)
    return tokens @ weights

# %% repair-columns-attention | wrong | scale of the tokens' width d, not of d_k
def columns_attention(tokens: np.ndarray, w_query: np.ndarray, w_key: np.ndarray) -> np.ndarray:
    scores = tokens.T @ (w_key.T @ w_query) @ tokens / np.sqrt(w_query.shape[1])
    unnormalised = np.exp(scores - scores.max(axis=0, keepdims=True))
    weights = unnormalised / unnormalised.sum(axis=0, keepdims=True)
    return tokens @ weights

# %% repair-columns-attention | wrong | softmax over rows, product not swapped: weights have the wrong side
def columns_attention(tokens: np.ndarray, w_query: np.ndarray, w_key: np.ndarray) -> np.ndarray:
    scores = tokens.T @ (w_query.T @ w_key) @ tokens / np.sqrt(len(w_query))
    unnormalised = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = unnormalised / unnormalised.sum(axis=1, keepdims=True)
    return tokens @ weights

# %% repair-columns-attention | wrong | right values, returned with positions in rows
def columns_attention(tokens: np.ndarray, w_query: np.ndarray, w_key: np.ndarray) -> np.ndarray:
    scores = (w_query @ tokens).T @ (w_key @ tokens) / np.sqrt(len(w_query))
    unnormalised = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = unnormalised / unnormalised.sum(axis=1, keepdims=True)
    return weights @ tokens.T

# %% repair-columns-attention | right | product kept, softmax over rows, weights transposed
def columns_attention(tokens: np.ndarray, w_query: np.ndarray, w_key: np.ndarray) -> np.ndarray:
    scores = tokens.T @ (w_query.T @ w_key) @ tokens / np.sqrt(w_key.shape[0])
    unnormalised = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = unnormalised / unnormalised.sum(axis=1, keepdims=True)
    return tokens @ weights.T

# %% repair-columns-attention | right | torch, its softmax and its attention function, transposed in and out
def columns_attention(tokens: np.ndarray, w_query: np.ndarray, w_key: np.ndarray) -> np.ndarray:
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    x = torch.tensor(tokens)
    q, k = (torch.tensor(w_query) @ x).T, (torch.tensor(w_key) @ x).T
    return scaled_dot_product_attention(q[None], k[None], x.T[None].contiguous())[0].T

# %% absorbed-matrix-backward | wrong | transpose forgotten for the keys (only a square form runs)
def my_form_backward(w_query, w_key, d_form):
    return d_form @ w_key, d_form @ w_query

# %% absorbed-matrix-backward | wrong | scale 1/sqrt(d_k) that the forward pass did not have
def my_form_backward(w_query, w_key, d_form):
    s = 1 / np.sqrt(w_query.shape[1])
    return s * d_form @ w_key, s * d_form.T @ w_query

# %% absorbed-matrix-backward | wrong | automatic differentiation, which is forbidden
def my_form_backward(w_query, w_key, d_form):
    import torch

    a = torch.tensor(w_query, requires_grad=True)
    b = torch.tensor(w_key, requires_grad=True)
    (a @ b.T).backward(torch.tensor(d_form))
    return a.grad, b.grad

# %% absorbed-matrix-backward | wrong | the two gradients in the wrong order
def my_form_backward(w_query, w_key, d_form):
    d_w_key = np.einsum("ab,ac->bc", d_form, w_query)
    d_w_query = np.einsum("ab,bc->ac", d_form, w_key)
    return d_w_key, d_w_query

# %% absorbed-matrix-backward | right | sum of outer products over the columns
def my_form_backward(w_query, w_key, d_form):
    d_q, d_k = np.zeros(w_query.shape), np.zeros(w_key.shape)
    for a in range(d_form.shape[0]):
        for b in range(d_form.shape[1]):
            d_q[a] = d_q[a] + d_form[a, b] * w_key[b]
            d_k[b] = d_k[b] + d_form[a, b] * w_query[a]
    return d_q, d_k

# %% absorbed-matrix-backward | right | central differences of a bilinear loss, exact with a step of one
def my_form_backward(w_query, w_key, d_form):
    def loss(a, b):
        return float(np.sum((a @ b.T) * d_form))

    def slope(f, w):
        grad = np.empty(w.shape)
        for index in np.ndindex(*w.shape):
            step = np.zeros(w.shape)
            step[index] = 1.0
            grad[index] = (f(w + step) - f(w - step)) / 2
        return grad

    return slope(lambda a: loss(a, w_key), w_query), slope(lambda b: loss(w_query, b), w_key)

# %% value-bias-contribution | wrong | a constant row for every query: assumes that rows sum to 1
def my_bias_part(weights, b_value, w_output):
    return np.tile(b_value @ w_output, (len(weights), 1))

# %% value-bias-contribution | wrong | rows normalised first (dropout's factor lost)
def my_bias_part(weights, b_value, w_output):
    total = weights.sum(axis=1, keepdims=True)
    share = np.divide(total, total, out=np.zeros_like(total), where=total > 0)
    return share * (b_value @ w_output)

# %% value-bias-contribution | wrong | sums of the columns instead of the rows
def my_bias_part(weights, b_value, w_output):
    return weights.sum(axis=0)[: len(weights), None] * (b_value @ w_output)

# %% value-bias-contribution | wrong | one average row sum for all queries
def my_bias_part(weights, b_value, w_output):
    row = weights.sum() / len(weights)
    return np.ones((len(weights), 1)) * row * (b_value @ w_output)

# %% value-bias-contribution | right | output with the bias minus output without, random values
def my_bias_part(weights, b_value, w_output):
    values = np.random.default_rng(7).normal(size=(weights.shape[1], len(b_value)))

    def output(v):
        return weights @ v @ w_output

    return output(values + b_value) - output(values)

# %% value-bias-contribution | right | np.outer of row sums in float32 torch
def my_bias_part(weights, b_value, w_output):
    import torch

    w, b, o = (torch.tensor(x, dtype=torch.float32) for x in (weights, b_value, w_output))
    return torch.outer(w.sum(1), o.T @ b)

# %% read-bilinear-form | wrong | column read for row: who asks most for feature 4
my_reading = (1, 0.2, 1.4)

# %% read-bilinear-form | wrong | W_+ without the half
my_reading = (2, 0.4, 1.4)

# %% read-bilinear-form | wrong | antisymmetric part for b
my_reading = (2, -0.8, 1.4)

# %% read-bilinear-form | wrong | c without the diagonal entries
my_reading = (2, 0.2, 0.8)

# %% read-bilinear-form | right | sums written out
my_reading = (2, (-0.6 + 1.0) / 2, 0.5 + 1.2 - 0.4 + 0.1)

# %% read-bilinear-form | right | computed by numpy from the figure's numbers
form = np.array([
    [0.2, 1.4, -0.6, 0.3, 0.0],
    [-0.8, 0.5, 0.9, 0.1, 1.2],
    [1.0, -0.3, 0.7, -0.5, 0.4],
    [0.6, 0.8, -0.2, -0.9, 1.1],
    [0.3, -0.4, 1.6, 0.2, 0.1],
])
x = np.array([0.0, 1, 0, 0, 1])
my_reading = (int(form[4].argmax()), float((form + form.T)[0, 2]) / 2, float(x @ form @ x))

# %% latent-cache-size | wrong | 40 rotary keys cached, one for each head
my_cache = (48 * (320 + 40 * 32) * 2 / 1000, (320 + 40 * 32) / 160)

# %% latent-cache-size | wrong | the queries' latent vector cached too
my_cache = (48 * (320 + 960 + 32) * 2 / 1000, (320 + 960 + 32) / 160)

# %% latent-cache-size | wrong | kB of 1024 bytes
my_cache = (48 * 352 * 2 / 1024, 352 / 160)

# %% latent-cache-size | wrong | groups without values
my_cache = (33.792, 352 / 80)

# %% latent-cache-size | right | rounded, within the tolerance
my_cache = (33.8, 2.2)

# %% latent-cache-size | right | in bytes by named steps, numpy scalars
numbers = np.sum([320, 32])
bytes_per_token = 48 * numbers * np.dtype("float16").itemsize
my_cache = (bytes_per_token / 1e3, bytes_per_token / (48 * 2 * 80 * 2))

# %% joint-key-value-compression | wrong | keys and values compressed apart
def my_joint(w_key, w_value, d_latent):
    def low(w):
        u, s, vt = np.linalg.svd(w, full_matrices=False)
        return (u[:, :d_latent] * s[:d_latent]) @ vt[:d_latent]

    return low(w_key), low(w_value)

# %% joint-key-value-compression | wrong | cut in the middle: right only where n = m
def my_joint(w_key, w_value, d_latent):
    u, s, vt = np.linalg.svd(np.hstack([w_key, w_value]), full_matrices=False)
    near = (u[:, :d_latent] * s[:d_latent]) @ vt[:d_latent]
    return tuple(np.split(near, 2, axis=1)) if near.shape[1] % 2 == 0 else (near[:, : near.shape[1] // 2], near[:, near.shape[1] // 2 :])

# %% joint-key-value-compression | wrong | projected on the key's own left singular vectors
def my_joint(w_key, w_value, d_latent):
    u = np.linalg.svd(w_key)[0][:, :d_latent]
    return u @ (u.T @ w_key), u @ (u.T @ w_value)

# %% joint-key-value-compression | wrong | columns centred first as in PCA: rank one too many
def my_joint(w_key, w_value, d_latent):
    both = np.concatenate([w_key, w_value], axis=1)
    mean = both.mean(axis=0)
    u, s, vt = np.linalg.svd(both - mean, full_matrices=False)
    near = (u[:, :d_latent] * s[:d_latent]) @ vt[:d_latent] + mean
    return near[:, : w_key.shape[1]], near[:, w_key.shape[1] :]

# %% joint-key-value-compression | right | projector from the eigenvectors of the sum of two Gram matrices
def my_joint(w_key, w_value, d_latent):
    gram = w_key @ w_key.T + w_value @ w_value.T
    basis = np.linalg.eigh(gram)[1][:, ::-1][:, :d_latent]
    projector = basis @ basis.T
    return projector @ w_key, projector @ w_value

# %% joint-key-value-compression | right | torch svd, sum of rank-one pieces in a loop
def my_joint(w_key, w_value, d_latent):
    import torch

    both = torch.cat([torch.tensor(w_key), torch.tensor(w_value)], dim=1)
    u, s, vh = torch.linalg.svd(both, full_matrices=True)
    near = torch.zeros_like(both)
    for r in range(d_latent):
        near = near + s[r] * torch.outer(u[:, r], vh[r])
    return tuple(torch.split(near, [w_key.shape[1], w_value.shape[1]], dim=1))

# %% absorption-break-even | wrong | break-even over t for one new token, Eq. latent-decoding-flops as it stands
my_new_tokens = c * (k + v) / (2 * c - (c + 1) * (k + v)) * -1

# %% absorption-break-even | wrong | factor 2 of scores and averages forgotten
my_new_tokens = t * c * (k + v) / (c * (k + v) + t * c - t * (k + v))

# %% absorption-break-even | wrong | lift and bring back counted for one token only
my_new_tokens = (t - 1) * c * (k + v) / (t * (2 * c - k - v))

# %% absorption-break-even | wrong | limit of a long text: lift left out
my_new_tokens = c * (k + v) / (2 * c - k - v)

# %% absorption-break-even | right | reciprocal of a sum of reciprocals
my_new_tokens = 1 / (1 / t + 2 / (k + v) - 1 / c)

# %% absorption-break-even | right | negative powers, nothing collected
my_new_tokens = (c * k * t + c * t * v) * (2 * c * t + c * k + c * v - t * k - t * v) ** -1

# %% repair-decoupled-scores | wrong | only the rotation of the content removed
def decoupled_scores(
    query: np.ndarray, query_rope: np.ndarray, latent: np.ndarray, key_rope: np.ndarray, w_key_up: np.ndarray
) -> np.ndarray:
    new, length = len(query), len(latent)
    here, there = np.arange(length - new, length), np.arange(length)
    absorbed = query @ w_key_up.T
    content = absorbed @ latent.T
    position = rotate(query_rope, here) @ rotate(key_rope, there).T
    return (content + position) / np.sqrt(absorbed.shape[1] + query_rope.shape[1])

# %% repair-decoupled-scores | wrong | scale of d_head alone
def decoupled_scores(
    query: np.ndarray, query_rope: np.ndarray, latent: np.ndarray, key_rope: np.ndarray, w_key_up: np.ndarray
) -> np.ndarray:
    new, length = len(query), len(latent)
    here, there = np.arange(length - new, length), np.arange(length)
    content = query @ w_key_up.T @ latent.T
    position = rotate(query_rope, here) @ rotate(key_rope, there).T
    return (content + position) / np.sqrt(query.shape[1])

# %% repair-decoupled-scores | wrong | queries counted from 0: right only for n = t or for no rope
def decoupled_scores(
    query: np.ndarray, query_rope: np.ndarray, latent: np.ndarray, key_rope: np.ndarray, w_key_up: np.ndarray
) -> np.ndarray:
    here, there = np.arange(len(query)), np.arange(len(latent))
    content = (query @ w_key_up.T) @ latent.T
    position = rotate(query_rope, here) @ rotate(key_rope, there).T
    return (content + position) / np.sqrt(query.shape[1] + query_rope.shape[1])

# %% repair-decoupled-scores | wrong | content keys made and rotated with the rest
def decoupled_scores(
    query: np.ndarray, query_rope: np.ndarray, latent: np.ndarray, key_rope: np.ndarray, w_key_up: np.ndarray
) -> np.ndarray:
    new, length = len(query), len(latent)
    here, there = np.arange(length - new, length), np.arange(length)
    full_query = rotate(np.hstack([query, query_rope]), here)
    full_key = rotate(np.hstack([latent @ w_key_up, key_rope]), there)
    return full_query @ full_key.T / np.sqrt(full_query.shape[1])

# %% repair-decoupled-scores | right | keys written out and joined with their rotary part
def decoupled_scores(
    query: np.ndarray, query_rope: np.ndarray, latent: np.ndarray, key_rope: np.ndarray, w_key_up: np.ndarray
) -> np.ndarray:
    new, length = len(query), len(latent)
    full_query = np.hstack([query, rotate(query_rope, np.arange(length)[length - new :])])
    full_key = np.hstack([latent @ w_key_up, rotate(key_rope, np.arange(length))])
    return full_query @ full_key.T / np.sqrt(full_key.shape[1])

# %% repair-decoupled-scores | right | only the distance: queries rotated by i - j, pair by pair
def decoupled_scores(
    query: np.ndarray, query_rope: np.ndarray, latent: np.ndarray, key_rope: np.ndarray, w_key_up: np.ndarray
) -> np.ndarray:
    new, length = len(query), len(latent)
    scores = np.einsum("ia,ca,jc->ij", query, w_key_up, latent)
    for i in range(new):
        for j in range(length):
            turned = rotate(query_rope[i : i + 1], np.array([length - new + i - j]))[0]
            scores[i, j] += turned @ key_rope[j]
    return scores * (query.shape[1] + query_rope.shape[1]) ** -0.5

# %% latent-decoding-step | wrong | scale put into the lifted queries that are returned
def my_latent_step(query, query_rope, latent, key_rope, w_key_up, w_value_up, w_output):
    n_heads, d_head = query.shape
    s = 1 / np.sqrt(d_head + query_rope.shape[1])
    up = w_key_up.reshape(len(w_key_up), n_heads, d_head)
    vup = w_value_up.reshape(len(w_value_up), n_heads, -1)
    lifted = np.einsum("hk,chk->hc", query * s, up)
    scores = lifted @ latent.T + s * query_rope @ key_rope.T
    p = np.exp(scores - scores.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    averages = p @ latent
    return lifted, averages, np.einsum("hc,chv->hv", averages, vup).reshape(-1) @ w_output

# %% latent-decoding-step | wrong | heads cut by a plain reshape in front: rows mixed into heads
def my_latent_step(query, query_rope, latent, key_rope, w_key_up, w_value_up, w_output):
    n_heads, d_head = query.shape
    c = latent.shape[1]
    up = w_key_up.reshape(n_heads, c, d_head)
    vup = w_value_up.reshape(n_heads, c, -1)
    lifted = np.einsum("hk,hck->hc", query, up)
    scores = (lifted @ latent.T + query_rope @ key_rope.T) / np.sqrt(d_head + query_rope.shape[1])
    p = np.exp(scores - scores.max(1, keepdims=True))
    p = p / p.sum(1, keepdims=True)
    averages = p @ latent
    return lifted, averages, np.einsum("hc,hcv->hv", averages, vup).ravel() @ w_output

# %% latent-decoding-step | wrong | values cut with d_head instead of d_v: right only where they agree
def my_latent_step(query, query_rope, latent, key_rope, w_key_up, w_value_up, w_output):
    n_heads, d_head = query.shape
    lifted, averages, output = [], [], 0
    for h in range(n_heads):
        cols = slice(h * d_head, (h + 1) * d_head)
        q = query[h] @ w_key_up[:, cols].T
        s = (latent @ q + key_rope @ query_rope[h]) / np.sqrt(d_head + query_rope.shape[1])
        p = np.exp(s - s.max())
        a = p / p.sum() @ latent
        lifted.append(q)
        averages.append(a)
        output = output + a @ w_value_up[:, cols] @ w_output[cols]
    return np.array(lifted), np.array(averages), output

# %% latent-decoding-step | wrong | scale of the latent width, that of the absorbed product
def my_latent_step(query, query_rope, latent, key_rope, w_key_up, w_value_up, w_output):
    import torch

    query, query_rope, latent, key_rope, w_key_up, w_value_up, w_output = map(
        torch.tensor, (query, query_rope, latent, key_rope, w_key_up, w_value_up, w_output)
    )
    n_heads, d_head = query.shape
    lifted = torch.einsum("hk,chk->hc", query, w_key_up.reshape(-1, n_heads, d_head))
    scores = torch.hstack([lifted, query_rope]) @ torch.hstack([latent, key_rope]).T
    weights = torch.softmax(scores / (latent.shape[1] + key_rope.shape[1]) ** 0.5, dim=-1)
    averages = weights @ latent
    heads = torch.einsum("hc,chv->hv", averages, w_value_up.reshape(len(w_value_up), n_heads, -1))
    return lifted, averages, heads.flatten() @ w_output

# %% latent-decoding-step | right | one loop over heads, no maximum subtracted (scores are moderate)
def my_latent_step(query, query_rope, latent, key_rope, w_key_up, w_value_up, w_output):
    n_heads, d_head = query.shape
    d_v = w_value_up.shape[1] // n_heads
    scale = (d_head + query_rope.shape[1]) ** -0.5
    lifted = np.zeros((n_heads, latent.shape[1]))
    averages = np.zeros((n_heads, latent.shape[1]))
    output = np.zeros(w_output.shape[1])
    for h in range(n_heads):
        up = w_key_up[:, h * d_head : (h + 1) * d_head]
        lifted[h] = up @ query[h]
        w = np.exp(scale * (latent @ lifted[h] + key_rope @ query_rope[h]))
        averages[h] = w @ latent / w.sum()
        u = w_value_up[:, h * d_v : (h + 1) * d_v] @ w_output[h * d_v : (h + 1) * d_v]
        output += averages[h] @ u
    return lifted, averages, output

# %% latent-decoding-step | right | torch: softmax from the library, rotary part joined to the latent vectors, float32
def my_latent_step(query, query_rope, latent, key_rope, w_key_up, w_value_up, w_output):
    import torch

    q, qr, c, kr, uk, uv, wo = (
        torch.tensor(x, dtype=torch.float32)
        for x in (query, query_rope, latent, key_rope, w_key_up, w_value_up, w_output)
    )
    n_heads, d_head = q.shape
    lifted = torch.stack([a @ b.T for a, b in zip(q, uk.chunk(n_heads, dim=1))])
    joined = torch.cat([lifted, qr], 1) @ torch.cat([c, kr], 1).T
    weights = (joined / (d_head + qr.shape[1]) ** 0.5).softmax(dim=-1)
    averages = weights @ c
    heads = torch.cat([a @ b for a, b in zip(averages, uv.chunk(n_heads, dim=1))])
    return lifted, averages, heads @ wo

# %% merge-two-states | wrong | NaN where neither side saw a key
def my_merge(m_a, l_a, a_a, m_b, l_b, a_b):
    m = np.maximum(m_a, m_b)
    f_a, f_b = np.exp(m_a - m), np.exp(m_b - m)
    return m, f_a * l_a + f_b * l_b, f_a[:, None] * a_a + f_b[:, None] * a_b

# %% merge-two-states | wrong | one common maximum for all queries: others underflow to 0
def my_merge(m_a, l_a, a_a, m_b, l_b, a_b):
    m = np.maximum(m_a, m_b)
    top = m.max()
    if np.isneginf(top):
        top = 0.0
    f_a, f_b = np.exp(m_a - top), np.exp(m_b - top)
    return np.where(np.isneginf(m), m, top), f_a * l_a + f_b * l_b, f_a[:, None] * a_a + f_b[:, None] * a_b

# %% merge-two-states | wrong | -inf read as -1e9: an empty row gets a finite maximum
def my_merge(m_a, l_a, a_a, m_b, l_b, a_b):
    m_a, m_b = np.maximum(m_a, -1e9), np.maximum(m_b, -1e9)
    m = np.maximum(m_a, m_b)
    f_a, f_b = np.exp(m_a - m), np.exp(m_b - m)
    return m, f_a * l_a + f_b * l_b, f_a[:, None] * a_a + f_b[:, None] * a_b

# %% merge-two-states | wrong | the accumulator divided by the sum
def my_merge(m_a, l_a, a_a, m_b, l_b, a_b):
    m = np.maximum(m_a, m_b)
    shift = np.where(np.isneginf(m), 0.0, m)
    f_a, f_b = np.exp(m_a - shift), np.exp(m_b - shift)
    total = f_a * l_a + f_b * l_b
    acc = f_a[:, None] * a_a + f_b[:, None] * a_b
    return m, total, acc / np.where(total > 0, total, 1.0)[:, None]

# %% merge-two-states | right | row by row with plain floats, the lower side brought to the higher
def my_merge(m_a, l_a, a_a, m_b, l_b, a_b):
    from math import exp, inf

    m, l, a = np.empty(len(m_a)), np.empty(len(m_a)), np.empty(a_a.shape)
    for i in range(len(m_a)):
        high, low = (m_a[i], l_a[i], a_a[i]), (m_b[i], l_b[i], a_b[i])
        if low[0] > high[0]:
            high, low = low, high
        f = 0.0 if low[0] == -inf else exp(low[0] - high[0])
        m[i], l[i], a[i] = high[0], high[1] + f * low[1], high[2] + f * low[2]
    return m, l, a

# %% merge-two-states | right | torch: both sides stacked, NaN factors replaced by 0
def my_merge(m_a, l_a, a_a, m_b, l_b, a_b):
    m, l, a = (torch.stack([torch.tensor(x), torch.tensor(y)]) for x, y in ((m_a, m_b), (l_a, l_b), (a_a, a_b)))
    top = m.amax(0)
    factor = torch.exp(m - top).nan_to_num(nan=0.0)
    return top, (factor * l).sum(0), (factor.unsqueeze(-1) * a).sum(0)

# %% bytes-saved-by-tiles | wrong | limit of a long text, 2 B / d
my_factors = (2 * 64 / 128, 2 * 256 / 128)

# %% bytes-saved-by-tiles | wrong | scores and weights only written, not read back
my_factors = tuple((4 * 4096 * 128 + 2 * 4096**2) / (4096 * 257 + 4096 / B * 4096 * 256) for B in (64, 256))

# %% bytes-saved-by-tiles | wrong | keys and values counted with one width in tiles
my_factors = tuple((4 * 4096 * 128 + 4 * 4096**2) / (4096 * 257 + 4096 / B * 4096 * 128) for B in (64, 256))

# %% bytes-saved-by-tiles | wrong | tiled over plain
my_factors = (16641 / 16896, 4353 / 16896)

# %% bytes-saved-by-tiles | right | four digits
my_factors = (1.015, 3.881)

# %% bytes-saved-by-tiles | right | functions, and divided by T throughout
plain = lambda T, w: 2 * w + 4 * T
tiled = lambda T, w, blocks: w + 1 + blocks * w
my_factors = tuple(map(lambda B: plain(4096, 256) / tiled(4096, 256, -(-4096 // B)), (64, 256)))

# %% shared-key-tile-bytes | wrong | keys and values once for each query head
my_bytes = b * g * (t * (2 * d + 1) + t**2 / r * 2 * d)

# %% shared-key-tile-bytes | wrong | log-sum-exp forgotten
my_bytes = b * (2 * g * t * d + 2 * t**2 * d / r)

# %% shared-key-tile-bytes | wrong | queries read once for all heads together, as if they were shared too
my_bytes = b * (t * d + g * t * (d + 1) + 2 * t**2 * d / r)

# %% shared-key-tile-bytes | wrong | keys only, no values, pass by
my_bytes = b * (g * t * (2 * d + 1) + t * t * d / r)

# %% shared-key-tile-bytes | right | everything multiplied out
my_bytes = 2 * b * d * g * t + b * g * t + 2 * b * d * t**2 * r**-1

# %% shared-key-tile-bytes | right | one block's bytes times the number of blocks
one_block = g * r * d + g * r * d + g * r + t * (d + d)
my_bytes = t / r * one_block * b

# %% streamed-attention | wrong | maximum begins at 0: all scores far below it give 0 / 0
def my_stream(query, key_blocks, value_blocks):
    m = np.zeros(len(query))
    row_sum = np.zeros(len(query))
    acc = np.zeros((len(query), value_blocks[0].shape[1]))
    for k, v in zip(key_blocks, value_blocks):
        s = query @ k.T / np.sqrt(query.shape[1])
        new = np.maximum(m, s.max(axis=1))
        factor = np.exp(m - new)
        p = np.exp(s - new[:, None])
        row_sum = factor * row_sum + p.sum(axis=1)
        acc = factor[:, None] * acc + p @ v
        m = new
    return acc / row_sum[:, None], m + np.log(row_sum)

# %% streamed-attention | wrong | maximum of the last block, not the running one: overflow
def my_stream(query, key_blocks, value_blocks):
    m, row_sum, acc = np.full(len(query), -np.inf), 0.0, 0.0
    for k, v in zip(key_blocks, value_blocks):
        s = query @ k.T / np.sqrt(query.shape[1])
        new = s.max(axis=1)
        factor = np.exp(m - new)
        p = np.exp(s - new[:, None])
        row_sum = factor * row_sum + p.sum(axis=1)
        acc = factor[:, None] * acc + p @ v
        m = new
    return acc / row_sum[:, None], m + np.log(row_sum)

# %% streamed-attention | wrong | library softmax and logsumexp in disguise, over joined blocks
def my_stream(query, key_blocks, value_blocks):
    q, pair = torch.tensor(query), []
    for k in key_blocks:
        pair += list(torch.tensor(k))
    s = q @ torch.stack(pair).T / query.shape[1] ** 0.5
    weights = getattr(torch, "soft" + "max")(s, -1)
    lse = getattr(torch, "logsum" + "exp")(s, -1)
    return weights @ torch.tensor(np.vstack(value_blocks)), lse

# %% streamed-attention | wrong | log-sum-exp in base 2
def my_stream(query, key_blocks, value_blocks):
    m = np.full((len(query), 1), -np.inf)
    row_sum = np.zeros((len(query), 1))
    acc = np.zeros((len(query), value_blocks[0].shape[1]))
    for k, v in zip(key_blocks, value_blocks):
        s = query @ k.T * np.log2(np.e) / np.sqrt(query.shape[1])
        new = np.maximum(m, s.max(1, keepdims=True))
        p, factor = np.exp2(s - new), np.exp2(m - new)
        row_sum, acc, m = factor * row_sum + p.sum(1, keepdims=True), factor * acc + p @ v, new
    return acc / row_sum, (m + np.log2(row_sum))[:, 0]

# %% streamed-attention | right | output kept finished, merged by a growing log-sum-exp
def my_stream(query, key_blocks, value_blocks):
    def state_of(k, v):
        s = np.einsum("qd,kd->qk", query, k) * query.shape[1] ** -0.5
        top = s.max(axis=1, keepdims=True)
        e = np.exp(s - top)
        total = e.sum(axis=1, keepdims=True)
        return e @ v / total, top + np.log(total)

    blocks = zip(key_blocks, value_blocks)
    out, lse = state_of(*next(blocks))
    for k, v in blocks:
        o, new = state_of(k, v)
        high = np.where(lse > new, lse, new)
        w, w_new = np.exp(lse - high), np.exp(new - high)
        out = (w * out + w_new * o) / (w + w_new)
        lse = high + np.log(w + w_new)
    return out, lse.reshape(-1)

# %% streamed-attention | right | query by query, ones beside the values, torch, start at the promised lower bound
def my_stream(query, key_blocks, value_blocks):
    width = value_blocks[0].shape[1]
    outputs, lses = [], []
    for q in torch.tensor(query):
        m, acc = torch.tensor(-20_000.0, dtype=torch.float64), torch.zeros(width + 1, dtype=torch.float64)
        for k, v in zip(key_blocks, value_blocks):
            s = torch.tensor(k) @ q / q.numel() ** 0.5
            with_ones = torch.ones(len(v), width + 1, dtype=torch.float64)
            with_ones[:, :width] = torch.tensor(v)
            new = torch.maximum(m, s.max())
            acc = acc * (m - new).exp() + (s - new).exp() @ with_ones
            m = new
        outputs.append(acc[:-1] / acc[-1])
        lses.append(m + acc[-1].log())
    return torch.stack(outputs), torch.stack(lses)

# %% causal-tile-counts | wrong | the last, smaller block counted as full
def my_tiles(q_len, kv_len, block_q, block_kv, q_offset):
    skipped = whole = edge = 0
    for i in range(0, q_len, block_q):
        for j in range(0, kv_len, block_kv):
            if j > i + block_q - 1 + q_offset:
                skipped += 1
            elif j + block_kv - 1 <= i + q_offset:
                whole += 1
            else:
                edge += 1
    return float(skipped), float(whole), float(edge)

# %% causal-tile-counts | wrong | whole numbers returned, the text asks for floats
def my_tiles(q_len, kv_len, block_q, block_kv, q_offset):
    skipped = whole = edge = 0
    for i in range(0, q_len, block_q):
        for j in range(0, kv_len, block_kv):
            if j > min(i + block_q, q_len) - 1 + q_offset:
                skipped += 1
            elif min(j + block_kv, kv_len) - 1 <= i + q_offset:
                whole += 1
            else:
                edge += 1
    return skipped, whole, edge

# %% causal-tile-counts | wrong | < instead of <=: key i + p is not seen
def my_tiles(q_len, kv_len, block_q, block_kv, q_offset):
    skipped = whole = edge = 0.0
    for i in range(0, q_len, block_q):
        for j in range(0, kv_len, block_kv):
            if j >= min(i + block_q, q_len) - 1 + q_offset:
                skipped += 1
            elif min(j + block_kv, kv_len) - 1 < i + q_offset:
                whole += 1
            else:
                edge += 1
    return skipped, whole, edge

# %% causal-tile-counts | wrong | offset kv_len - q_len assumed whatever q_offset says
def my_tiles(q_len, kv_len, block_q, block_kv, q_offset):
    p = max(kv_len - q_len, 0)
    seen = np.arange(kv_len)[None, :] <= np.arange(q_len)[:, None] + p
    skipped = whole = edge = 0.0
    for i in range(0, q_len, block_q):
        for j in range(0, kv_len, block_kv):
            tile = seen[i : i + block_q, j : j + block_kv]
            if not tile.any():
                skipped += 1
            elif tile.all():
                whole += 1
            else:
                edge += 1
    return skipped, whole, edge

# %% causal-tile-counts | right | brute force: the mask itself, share of each tile counted
def my_tiles(q_len, kv_len, block_q, block_kv, q_offset):
    seen = np.tri(q_len, kv_len, q_offset)
    shares = [
        part.mean()
        for band in np.split(seen, range(block_q, q_len, block_q), axis=0)
        for part in np.split(band, range(block_kv, kv_len, block_kv), axis=1)
    ]
    skipped, whole = float(shares.count(0.0)), float(shares.count(1.0))
    return skipped, whole, len(shares) - skipped - whole

# %% causal-tile-counts | right | first and last indices as arrays, all tiles compared at once
def my_tiles(q_len, kv_len, block_q, block_kv, q_offset):
    q_first, k_first = np.arange(0, q_len, block_q)[:, None], np.arange(0, kv_len, block_kv)[None, :]
    q_last = np.append(q_first[1:, 0] - 1, q_len - 1)[:, None]
    k_last = np.append(k_first[0, 1:] - 1, kv_len - 1)[None, :]
    some, every = k_first <= q_last + q_offset, k_last <= q_first + q_offset
    return tuple(float(x.sum()) for x in (~some, every, some & ~every))

# %% repair-tiled-loop | wrong | only the accumulator's factor added: the tail is still lost
def tiled_attention(query: np.ndarray, key: np.ndarray, value: np.ndarray, block: int) -> np.ndarray:
    row_max = np.full((len(query), 1), -np.inf)
    row_sum = np.zeros((len(query), 1))
    acc = np.zeros((len(query), value.shape[1]))
    for step in range(len(key) // block):
        tile = slice(step * block, (step + 1) * block)
        scores = query @ key[tile].T / np.sqrt(query.shape[1])
        new_max = np.maximum(row_max, scores.max(axis=1, keepdims=True))
        p = np.exp(scores - new_max)
        row_sum = row_sum * np.exp(row_max - new_max) + p.sum(axis=1, keepdims=True)
        acc = acc * np.exp(row_max - new_max) + p @ value[tile]
        row_max = new_max
    return acc / row_sum

# %% repair-tiled-loop | wrong | tail repaired, accumulator still without its factor
def tiled_attention(query: np.ndarray, key: np.ndarray, value: np.ndarray, block: int) -> np.ndarray:
    row_max = np.full((len(query), 1), -np.inf)
    row_sum = np.zeros((len(query), 1))
    acc = np.zeros((len(query), value.shape[1]))
    for start in range(0, len(key), block):
        tile = slice(start, start + block)
        scores = query @ key[tile].T / np.sqrt(query.shape[1])
        new_max = np.maximum(row_max, scores.max(axis=1, keepdims=True))
        p = np.exp(scores - new_max)
        row_sum = row_sum * np.exp(row_max - new_max) + p.sum(axis=1, keepdims=True)
        acc = acc + p @ value[tile]
        row_max = new_max
    return acc / row_sum

# %% repair-tiled-loop | wrong | one step too many where the block divides the keys
def tiled_attention(query: np.ndarray, key: np.ndarray, value: np.ndarray, block: int) -> np.ndarray:
    row_max = np.full((len(query), 1), -np.inf)
    row_sum = np.zeros((len(query), 1))
    acc = np.zeros((len(query), value.shape[1]))
    for step in range(len(key) // block + 1):
        tile = slice(step * block, (step + 1) * block)
        scores = query @ key[tile].T / np.sqrt(query.shape[1])
        new_max = np.maximum(row_max, scores.max(axis=1, keepdims=True))
        p = np.exp(scores - new_max)
        row_sum = row_sum * np.exp(row_max - new_max) + p.sum(axis=1, keepdims=True)
        acc = acc * np.exp(row_max - new_max) + p @ value[tile]
        row_max = new_max
    return acc / row_sum

# %% repair-tiled-loop | wrong | tail padded with keys of zeros that take part
def tiled_attention(query: np.ndarray, key: np.ndarray, value: np.ndarray, block: int) -> np.ndarray:
    steps = -(-len(key) // block)
    pad = steps * block - len(key)
    key, value = np.pad(key, ((0, pad), (0, 0))), np.pad(value, ((0, pad), (0, 0)))
    row_max = np.full((len(query), 1), -np.inf)
    row_sum = np.zeros((len(query), 1))
    acc = np.zeros((len(query), value.shape[1]))
    for step in range(steps):
        tile = slice(step * block, (step + 1) * block)
        scores = query @ key[tile].T / np.sqrt(query.shape[1])
        new_max = np.maximum(row_max, scores.max(axis=1, keepdims=True))
        p = np.exp(scores - new_max)
        row_sum = row_sum * np.exp(row_max - new_max) + p.sum(axis=1, keepdims=True)
        acc = acc * np.exp(row_max - new_max) + p @ value[tile]
        row_max = new_max
    return acc / row_sum

# %% repair-tiled-loop | right | blocks from the end to the front, mean updated instead of a sum
def tiled_attention(query: np.ndarray, key: np.ndarray, value: np.ndarray, block: int) -> np.ndarray:
    row_max = np.full((len(query), 1), -np.inf)
    row_sum = np.zeros((len(query), 1))
    mean = np.zeros((len(query), value.shape[1]))
    for start in reversed(range(0, len(key), block)):
        k, v = key[start : start + block], value[start : start + block]
        scores = query @ k.T / np.sqrt(query.shape[1])
        new_max = np.maximum(row_max, scores.max(axis=1, keepdims=True))
        p = np.exp(scores - new_max)
        old = row_sum * np.exp(row_max - new_max)
        row_sum = old + p.sum(axis=1, keepdims=True)
        mean = mean * (old / row_sum) + (p / row_sum) @ v
        row_max = new_max
    return mean

# %% repair-tiled-loop | right | torch, tail padded and masked with -inf, class with __call__
class TiledAttention:
    def __call__(self, query: np.ndarray, key: np.ndarray, value: np.ndarray, block: int) -> torch.Tensor:
        q, length = torch.tensor(query), len(key)
        m = torch.full((len(q), 1), -torch.inf, dtype=q.dtype)
        l, acc = torch.zeros_like(m), torch.zeros(len(q), value.shape[1], dtype=q.dtype)
        for step in range((length + block - 1) // block):
            index = torch.arange(step * block, (step + 1) * block)
            real = index < length
            index = index.clamp(max=length - 1)
            s = (q @ torch.tensor(key)[index].T / q.shape[1] ** 0.5).masked_fill(~real, -torch.inf)
            new = torch.maximum(m, s.max(dim=1, keepdim=True).values)
            p, factor = torch.exp(s - new), torch.exp(m - new)
            l, acc, m = l * factor + p.sum(1, keepdim=True), acc * factor + p @ torch.tensor(value)[index], new
        return acc / l


tiled_attention = TiledAttention()

# %% tile-score-gradient | wrong | weights normalised over the tile, lse not used
def my_score_gradient(scores, value, d_output, output, lse, d_lse):
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    delta = (d_output * output).sum(axis=1)
    return p * (d_output @ value.T - (delta - d_lse)[:, None])

# %% tile-score-gradient | wrong | delta from the tile's own weights, not from the output of the whole row
def my_score_gradient(scores, value, d_output, output, lse, d_lse):
    p = np.exp(scores - lse[:, None])
    dp = d_output @ value.T
    delta = (p * dp).sum(axis=1, keepdims=True)
    return p * (dp - delta + d_lse[:, None])

# %% tile-score-gradient | wrong | sign of d_lse
def my_score_gradient(scores, value, d_output, output, lse, d_lse):
    p = np.exp(scores - lse[:, None])
    delta = np.einsum("nd,nd->n", d_output, output)
    return p * (d_output @ value.T - (delta + d_lse)[:, None])

# %% tile-score-gradient | wrong | exponentials divided without a shift: 0 / 0 near -900
def my_score_gradient(scores, value, d_output, output, lse, d_lse):
    p = np.exp(scores) / np.exp(lse)[:, None]
    delta = (d_output * output).sum(axis=1)
    return p * (d_output @ value.T - (delta - d_lse)[:, None])

# %% tile-score-gradient | right | distance of each value from the output, one pair at a time
def my_score_gradient(scores, value, d_output, output, lse, d_lse):
    from math import exp

    def entry(i, j):
        return exp(scores[i, j] - lse[i]) * (float(np.dot(d_output[i], value[j] - output[i])) + d_lse[i])

    n, c = scores.shape
    return np.array([[entry(i, j) for j in range(c)] for i in range(n)]).reshape(n, c)

# %% tile-score-gradient | right | torch einsum over differences
def my_score_gradient(scores, value, d_output, output, lse, d_lse):
    s, v, do, o, big, dl = map(torch.tensor, (scores, value, d_output, output, lse, d_lse))
    inner = torch.einsum("nd,ncd->nc", do, v[None] - o[:, None])
    return (s - big.unsqueeze(1)).exp().mul(inner + dl[:, None])

# %% merge-decoding-splits | wrong | NaN where all splits are empty
def my_gather(outputs, lses):
    top = lses.max(axis=0)
    shares = np.exp(lses - top)
    total = shares.sum(axis=0)
    return (shares[..., None] * outputs).sum(axis=0) / total[:, None], top + np.log(total)

# %% merge-decoding-splits | wrong | -inf made -1e4 in place: input changed, empty rows get a finite L
def my_gather(outputs, lses):
    lses[np.isneginf(lses)] = -1e4
    top = lses.max(axis=0)
    shares = np.exp(lses - top)
    total = shares.sum(axis=0)
    return np.einsum("cn,cnd->nd", shares / total, outputs), top + np.log(total)

# %% merge-decoding-splits | wrong | log-sum-exps as weights without an exponential
def my_gather(outputs, lses):
    finite = np.where(np.isneginf(lses), 0.0, lses)
    total = finite.sum(axis=0)
    total = np.where(total == 0, 1.0, total)
    top = lses.max(axis=0)
    shift = np.where(np.isneginf(top), 0.0, top)
    with np.errstate(divide="ignore"):
        lse = shift + np.log(np.exp(lses - shift).sum(axis=0))
    return (finite[..., None] * outputs).sum(axis=0) / total[:, None], lse

# %% merge-decoding-splits | wrong | library functions in disguise: softmax by a torch module, logsumexp by its method
def my_gather(outputs, lses):
    big = torch.tensor(lses)
    shares = torch.nn.Softmax(dim=0)(big).nan_to_num(0.0)
    return (shares.unsqueeze(-1) * torch.tensor(outputs)).sum(0), big.logsumexp(0)

# %% merge-decoding-splits | right | functools.reduce over pairs of splits
def my_gather(outputs, lses):
    from functools import reduce

    def merge(left, right):
        (z_a, big_a), (z_b, big_b) = left, right
        m = np.maximum(big_a, big_b)
        ref = np.where(m == -np.inf, 0.0, m)
        w_a, w_b = np.exp(big_a - ref), np.exp(big_b - ref)
        total = w_a + w_b
        safe = np.where(total == 0, 1.0, total)
        z = (w_a / safe)[:, None] * z_a + (w_b / safe)[:, None] * z_b
        return z, np.where(m == -np.inf, m, ref + np.log(safe))

    return reduce(merge, zip(outputs, lses))

# %% merge-decoding-splits | right | query by query, plain floats, empty splits left out of the list
def my_gather(outputs, lses):
    import math

    n_splits, n, width = outputs.shape
    z, big = np.zeros((n, width)), np.full(n, -math.inf)
    for i in range(n):
        there = [c for c in range(n_splits) if lses[c, i] > -math.inf]
        if there:
            high = max(lses[c, i] for c in there)
            big[i] = high + math.log(math.fsum(math.exp(lses[c, i] - high) for c in there))
            z[i] = sum(math.exp(lses[c, i] - big[i]) * outputs[c, i] for c in there)
    return z, big

# %% read-overlap-schedule | wrong | overlap without the first and last ends: ten times the slower unit
my_schedule = (3, 2, 30, 5 / 3)

# %% read-overlap-schedule | wrong | three tiles, as in the figure
my_schedule = (3, 2, 11, 15 / 11)

# %% read-overlap-schedule | wrong | the two units exchanged
my_schedule = (2, 3, 32, 1.56)

# %% read-overlap-schedule | wrong | ten turns of the slower unit, and both ends on top
my_schedule = (3, 2, 35, 50 / 35)

# %% read-overlap-schedule | right | three digits
my_schedule = (3, 2, 32, 1.56)

# %% read-overlap-schedule | right | simulated with two clocks
products, exponentials = 3.0, 2.0
free = done = 0.0
for _ in range(10):
    free += products
    done = max(done, free) + exponentials
my_schedule = (products, exponentials, done, 10 * (products + exponentials) / done)

# %% row-lse-kernel | wrong | columns beyond the end read as 0: they count as keys
import triton
import triton.language as tl


@triton.jit
def row_lse(scores_ptr, lse_ptr, n_columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    row_max = float("-inf")
    row_sum = 0.0
    for start in range(0, n_columns, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x = tl.load(scores_ptr + row * n_columns + columns, mask=columns < n_columns, other=0.0)
        new_max = tl.maximum(row_max, tl.max(x, 0))
        row_sum = row_sum * tl.exp(row_max - new_max) + tl.sum(tl.exp(x - new_max), 0)
        row_max = new_max
    tl.store(lse_ptr + row, row_max + tl.log(row_sum))


def my_row_lse(scores):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    scores = torch.as_tensor(scores, dtype=torch.float32, device=device).contiguous()
    lse = torch.full((len(scores),), torch.nan, dtype=torch.float32, device=device)
    row_lse[(len(scores),)](scores, lse, scores.shape[1], BLOCK=16)
    return lse

# %% row-lse-kernel | wrong | programs for blocks of 16 rows: most rows stay NaN
import triton
import triton.language as tl


@triton.jit
def row_lse(scores_ptr, lse_ptr, n_columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    row_max = float("-inf")
    row_sum = 0.0
    for start in range(0, n_columns, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x = tl.load(scores_ptr + row * n_columns + columns, mask=columns < n_columns, other=float("-inf"))
        new_max = tl.maximum(row_max, tl.max(x, 0))
        row_sum = row_sum * tl.exp(row_max - new_max) + tl.sum(tl.exp(x - new_max), 0)
        row_max = new_max
    tl.store(lse_ptr + row, row_max + tl.log(row_sum))


def my_row_lse(scores):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    scores = torch.as_tensor(scores, dtype=torch.float32, device=device).contiguous()
    lse = torch.full((len(scores),), torch.nan, dtype=torch.float32, device=device)
    row_lse[(triton.cdiv(len(scores), 16),)](scores, lse, scores.shape[1], BLOCK=16)
    return lse

# %% row-lse-kernel | wrong | sum not brought to the new maximum
import triton
import triton.language as tl


@triton.jit
def row_lse(scores_ptr, lse_ptr, n_columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    row_max = float("-inf")
    row_sum = 0.0
    for start in range(0, n_columns, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x = tl.load(scores_ptr + row * n_columns + columns, mask=columns < n_columns, other=float("-inf"))
        row_max = tl.maximum(row_max, tl.max(x, 0))
        row_sum = row_sum + tl.sum(tl.exp(x - row_max), 0)
    tl.store(lse_ptr + row, row_max + tl.log(row_sum))


def my_row_lse(scores):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    scores = torch.as_tensor(scores, dtype=torch.float32, device=device).contiguous()
    lse = torch.full((len(scores),), torch.nan, dtype=torch.float32, device=device)
    row_lse[(len(scores),)](scores, lse, scores.shape[1], BLOCK=16)
    return lse

# %% row-lse-kernel | cheat | kernel launched, its result overwritten by a forbidden logsumexp outside
import triton
import triton.language as tl


@triton.jit
def row_lse(scores_ptr, lse_ptr, n_columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    tl.store(lse_ptr + row, 0.0)


def my_row_lse(scores):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    scores = torch.as_tensor(scores, dtype=torch.float32, device=device).contiguous()
    lse = torch.full((len(scores),), torch.nan, dtype=torch.float32, device=device)
    row_lse[(len(scores),)](scores, lse, scores.shape[1], BLOCK=16)
    lse.copy_(getattr(scores, "logsum" + "exp")(1))
    return lse

# %% row-lse-kernel | right | base 2 inside, masked lanes zeroed by tl.where, finite fill
import triton
import triton.language as tl


@triton.jit
def row_lse(scores_ptr, lse_ptr, n_columns, BLOCK: tl.constexpr):
    row = tl.program_id(axis=0)
    base = scores_ptr + row * n_columns
    row_max = -1.0e9
    row_sum = 0.0
    for start in range(0, n_columns, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        inside = columns < n_columns
        x = tl.load(base + columns, mask=inside, other=-1.0e9) * 1.4426950408889634
        new_max = tl.maximum(row_max, tl.max(x, axis=0))
        terms = tl.where(inside, tl.exp2(x - new_max), 0.0)
        row_sum = row_sum * tl.exp2(row_max - new_max) + tl.sum(terms, axis=0)
        row_max = new_max
    tl.store(lse_ptr + row, (row_max + tl.log2(row_sum)) * 0.6931471805599453)


def my_row_lse(scores):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    scores = torch.as_tensor(scores, dtype=torch.float32, device=device).contiguous()
    lse = torch.full((len(scores),), torch.nan, dtype=torch.float32, device=device)
    row_lse[(scores.shape[0], 1, 1)](scores, lse, scores.shape[1], 16)
    return lse

# %% row-lse-kernel | right | a maximum and a sum for each of the 16 lanes, joined after the loop, grid as a lambda
import triton
import triton.language as tl


@triton.jit
def row_lse(scores_ptr, lse_ptr, n_columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    lane_max = tl.full((BLOCK,), -1.0e30, dtype=tl.float32)
    lane_sum = tl.zeros((BLOCK,), dtype=tl.float32)
    for block in range(0, tl.cdiv(n_columns, BLOCK)):
        columns = block * BLOCK + lanes
        x = tl.load(scores_ptr + row * n_columns + columns, mask=columns < n_columns, other=float("-inf"))
        new_max = tl.maximum(lane_max, x)
        lane_sum = lane_sum * tl.exp(lane_max - new_max) + tl.exp(x - new_max)
        lane_max = new_max
    top = tl.max(lane_max, 0)
    total = tl.sum(lane_sum * tl.exp(lane_max - top), 0)
    tl.store(lse_ptr + row, top + tl.log(total))


def my_row_lse(scores):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    scores = torch.as_tensor(scores, dtype=torch.float32, device=device).contiguous()
    lse = torch.full((len(scores),), torch.nan, dtype=torch.float32, device=device)
    grid = lambda meta: (len(scores),)
    row_lse[grid](scores, lse, scores.shape[1], BLOCK=16)
    return lse

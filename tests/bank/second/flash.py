# %% merge-two-states | wrong | NaN for a query without keys on both sides
def my_merge(m_a, l_a, a_a, m_b, l_b, a_b):
    m = np.maximum(m_a, m_b)
    fa, fb = np.exp(m_a - m), np.exp(m_b - m)
    return m, fa * l_a + fb * l_b, fa[:, None] * a_a + fb[:, None] * a_b
# %% merge-two-states | wrong | one maximum for all queries
def my_merge(m_a, l_a, a_a, m_b, l_b, a_b):
    top = max(m_a.max(), m_b.max())
    top = 0.0 if np.isneginf(top) else top
    fa, fb = np.exp(m_a - top), np.exp(m_b - top)
    return np.full_like(m_a, top), fa * l_a + fb * l_b, fa[:, None] * a_a + fb[:, None] * a_b
# %% merge-two-states | wrong | a finite number for minus infinity is returned
def my_merge(m_a, l_a, a_a, m_b, l_b, a_b):
    m_a, m_b = np.maximum(m_a, -1e30), np.maximum(m_b, -1e30)
    m = np.maximum(m_a, m_b)
    fa, fb = np.exp(m_a - m), np.exp(m_b - m)
    return m, fa * l_a + fb * l_b, fa[:, None] * a_a + fb[:, None] * a_b
# %% merge-two-states | wrong | accumulator divided by the sum
def my_merge(m_a, l_a, a_a, m_b, l_b, a_b):
    m = np.maximum(m_a, m_b)
    ref = np.where(np.isfinite(m), m, 0.0)
    fa, fb = np.exp(m_a - ref), np.exp(m_b - ref)
    l = fa * l_a + fb * l_b
    a = (fa[:, None] * a_a + fb[:, None] * a_b) / np.where(l > 0, l, 1)[:, None]
    return m, l, a
# %% merge-two-states | wrong | accumulators added without their factors
def my_merge(m_a, l_a, a_a, m_b, l_b, a_b):
    m = np.maximum(m_a, m_b)
    ref = np.where(np.isneginf(m), 0.0, m)
    return m, np.exp(m_a - ref) * l_a + np.exp(m_b - ref) * l_b, a_a + a_b
# %% merge-two-states | wrong | through plain exponentials of the maxima, which overflow
def my_merge(m_a, l_a, a_a, m_b, l_b, a_b):
    m = np.maximum(m_a, m_b)
    ea, eb = np.exp(m_a), np.exp(m_b)
    e = np.maximum(np.maximum(ea, eb), 1e-300)
    return m, (ea * l_a + eb * l_b) / e, (ea[:, None] * a_a + eb[:, None] * a_b) / e[:, None]
# %% merge-two-states | wrong | rescales the sums of A in place
def my_merge(m_a, l_a, a_a, m_b, l_b, a_b):
    m = np.maximum(m_a, m_b)
    ref = np.where(np.isneginf(m), 0.0, m)
    l_a *= np.exp(m_a - ref)
    a_a *= np.exp(m_a - ref)[:, None]
    return m, l_a + np.exp(m_b - ref) * l_b, a_a + np.exp(m_b - ref)[:, None] * a_b
# %% merge-two-states | wrong | the side with the larger maximum wins, the other is dropped beyond 5
def my_merge(m_a, l_a, a_a, m_b, l_b, a_b):
    out_m, out_l, out_a = m_a.copy(), l_a.copy(), a_a.copy()
    for i in range(len(m_a)):
        if m_b[i] == -np.inf or m_a[i] - m_b[i] > 5:
            continue
        if m_a[i] == -np.inf or m_b[i] - m_a[i] > 5:
            out_m[i], out_l[i], out_a[i] = m_b[i], l_b[i], a_b[i]
            continue
        m = max(m_a[i], m_b[i])
        f, g = np.exp(m_a[i] - m), np.exp(m_b[i] - m)
        out_m[i], out_l[i], out_a[i] = m, f * l_a[i] + g * l_b[i], f * a_a[i] + g * a_b[i]
    return out_m, out_l, out_a
# %% merge-two-states | right | query by query, with math.exp
def my_merge(m_a, l_a, a_a, m_b, l_b, a_b):
    import math
    rows = []
    for ma, la, aa, mb, lb, ab in zip(m_a, l_a, a_a, m_b, l_b, a_b):
        if ma < mb:
            ma, la, aa, mb, lb, ab = mb, lb, ab, ma, la, aa
        f = 0.0 if mb == -math.inf else math.exp(mb - ma)
        rows.append((ma, la + f * lb, aa + f * ab))
    m, l, a = zip(*rows)
    return np.array(m), np.array(l), np.array(a)
# %% merge-two-states | right | both states stacked, torch.where against NaN
def my_merge(m_a, l_a, a_a, m_b, l_b, a_b):
    m, l, a = (torch.stack([torch.tensor(x), torch.tensor(y)]) for x, y in ((m_a, m_b), (l_a, l_b), (a_a, a_b)))
    top = m.amax(0)
    f = torch.where(m == -torch.inf, 0.0, torch.exp(m - top))
    return top, (f * l).sum(0), torch.einsum("sn,snv->nv", f, a)
# %% merge-two-states | right | sum as one more column of the accumulator, nan_to_num on the factor
def my_merge(m_a, l_a, a_a, m_b, l_b, a_b):
    m = np.fmax(m_a, m_b)
    with np.errstate(invalid="ignore"):
        f, g = (np.nan_to_num(np.exp(x - m), nan=0.0)[:, None] for x in (m_a, m_b))
    both = f * np.column_stack([l_a, a_a]) + g * np.column_stack([l_b, a_b])
    return m, both[:, 0], both[:, 1:]
# %% bytes-saved-by-tiles | wrong | the limit for long sequences
my_factors = tuple(2 * size / d_v for size in B)
# %% bytes-saved-by-tiles | wrong | log-sum-exps forgotten
my_factors = tuple((4 * T * d_v + 4 * T * T) / (2 * T * d_v + T / size * T * 2 * d_v) for size in B)
# %% bytes-saved-by-tiles | wrong | weights not counted in the plain way, only scores
my_factors = tuple((4 * T * d_v + 2 * T * T) / (T * (2 * d_v + 1) + T / size * T * 2 * d_v) for size in B)
# %% bytes-saved-by-tiles | wrong | the fraction turned over
my_factors = tuple((T * (2 * d_v + 1) + T / size * T * 2 * d_v) / (4 * T * d_v + 4 * T * T) for size in B)
# %% bytes-saved-by-tiles | wrong | keys and values read once for all
my_factors = tuple((4 * T * d_v + 4 * T * T) / (T * (2 * d_v + 1) + 2 * T * d_v) for size in B)
# %% bytes-saved-by-tiles | wrong | only keys pass by, values forgotten
my_factors = tuple((4 * T * d_v + 4 * T * T) / (T * (2 * d_v + 1) + T / size * T * d_v) for size in B)
# %% bytes-saved-by-tiles | wrong | the two sizes in the wrong order
my_factors = tuple((4 * T * d_v + 4 * T * T) / (T * (2 * d_v + 1) + T / size * T * 2 * d_v) for size in B[::-1])
# %% bytes-saved-by-tiles | wrong | bytes saved instead of the factor
my_factors = tuple(4 * T * d_v + 4 * T * T - (T * (2 * d_v + 1) + T / size * T * 2 * d_v) for size in B)
# %% bytes-saved-by-tiles | right | Eq. plain-attention-bytes over Eq. tiled-attention-bytes, T cancelled
my_factors = tuple(4 * (d_v + T) / (2 * d_v + 1 + 2 * d_v * T / size) for size in B)
# %% bytes-saved-by-tiles | right | counted with two functions, four bytes a number
def plain(n_q, n_k, d_k, d_out, nbytes=4):
    return nbytes * ((n_q + n_k) * (d_k + d_out) + 4 * n_q * n_k)
def tiled(n_q, n_k, d_k, d_out, block, nbytes=4):
    passes = len(range(0, n_q, block))
    return nbytes * (n_q * (d_k + d_out + 1) + passes * n_k * (d_k + d_out))
my_factors = (plain(T, T, d_v, d_v) / tiled(T, T, d_v, d_v, B[0]), plain(T, T, d_v, d_v) / tiled(T, T, d_v, d_v, B[1]))
# %% shared-key-tile-bytes | wrong | keys and values once for each query head
my_bytes = b * g * (t * (2 * d + 1) + t / r * t * 2 * d)
# %% shared-key-tile-bytes | wrong | log-sum-exps forgotten
my_bytes = b * (2 * g * t * d + t / r * t * 2 * d)
# %% shared-key-tile-bytes | wrong | one log-sum-exp for each query, not for each head
my_bytes = b * (2 * g * t * d + t + 2 * t**2 * d / r)
# %% shared-key-tile-bytes | wrong | keys and values read once in all
my_bytes = b * (g * t * (2 * d + 1) + 2 * t * d)
# %% shared-key-tile-bytes | wrong | the block of r queries shared out over the g heads
my_bytes = b * (g * t * (2 * d + 1) + g * t / r * t * 2 * d)
# %% shared-key-tile-bytes | wrong | numbers, not bytes
my_bytes = g * t * (2 * d + 1) + t / r * t * 2 * d
# %% shared-key-tile-bytes | wrong | values forgotten
my_bytes = b * (g * t * (2 * d + 1) + t**2 * d / r)
# %% shared-key-tile-bytes | wrong | queries and outputs once for all heads
my_bytes = b * (t * (2 * d + g) + 2 * t**2 * d / r)
# %% shared-key-tile-bytes | right | multiplied out
my_bytes = 2 * b * d * g * t + b * g * t + 2 * b * d * t**2 * r**-1
# %% shared-key-tile-bytes | right | program by program, a dictionary of parts
blocks = t / r
parts = {"queries": g * r * d, "outputs": g * r * d, "lse": g * r, "keys": t * d, "values": t * d}
my_bytes = b * blocks * sum(parts.values())
# %% shared-key-tile-bytes | cheat | keys and values as an unevaluated derivative by t
from sympy import Derivative
my_bytes = b * (g * t * (2 * d + 1) + Derivative(2 * d * t**3 / (3 * r), t))
# %% streamed-attention | wrong | no scale
def my_stream(query, key_blocks, value_blocks):
    m = np.full(len(query), -np.inf)
    l, acc = np.zeros(len(query)), 0.0
    for k, v in zip(key_blocks, value_blocks):
        s = query @ k.T
        new = np.maximum(m, s.max(1))
        f, p = np.exp(m - new), np.exp(s - new[:, None])
        m, l, acc = new, f * l + p.sum(1), f[:, None] * acc + p @ v
    return acc / l[:, None], m + np.log(l)
# %% streamed-attention | wrong | scale from the width of the values
def my_stream(query, key_blocks, value_blocks):
    scale = value_blocks[0].shape[-1] ** -0.5
    m = np.full(len(query), -np.inf)
    l, acc = np.zeros(len(query)), 0.0
    for k, v in zip(key_blocks, value_blocks):
        s = query @ k.T * scale
        new = np.maximum(m, s.max(1))
        f, p = np.exp(m - new), np.exp(s - new[:, None])
        m, l, acc = new, f * l + p.sum(1), f[:, None] * acc + p @ v
    return acc / l[:, None], m + np.log(l)
# %% streamed-attention | wrong | the maximum begins at 0
def my_stream(query, key_blocks, value_blocks):
    m, l, acc = np.zeros(len(query)), np.zeros(len(query)), np.zeros((len(query), value_blocks[0].shape[1]))
    for k, v in zip(key_blocks, value_blocks):
        s = query @ k.T / np.sqrt(query.shape[1])
        new = np.maximum(m, s.max(1))
        f, p = np.exp(m - new), np.exp(s - new[:, None])
        m, l, acc = new, f * l + p.sum(1), f[:, None] * acc + p @ v
    return acc / l[:, None], m + np.log(l)
# %% streamed-attention | wrong | the maximum begins at -10 000, scores may be lower
def my_stream(query, key_blocks, value_blocks):
    m, l, acc = np.full(len(query), -1e4), np.zeros(len(query)), np.zeros((len(query), value_blocks[0].shape[1]))
    for k, v in zip(key_blocks, value_blocks):
        s = query @ k.T / np.sqrt(query.shape[1])
        new = np.maximum(m, s.max(1))
        f, p = np.exp(m - new), np.exp(s - new[:, None])
        m, l, acc = new, f * l + p.sum(1), f[:, None] * acc + p @ v
    return acc / l[:, None], m + np.log(l)
# %% streamed-attention | wrong | one maximum for all queries
def my_stream(query, key_blocks, value_blocks):
    m, l, acc = -np.inf, np.zeros(len(query)), np.zeros((len(query), value_blocks[0].shape[1]))
    for k, v in zip(key_blocks, value_blocks):
        s = query @ k.T / np.sqrt(query.shape[1])
        new = max(m, s.max())
        f, p = np.exp(m - new), np.exp(s - new)
        m, l, acc = new, f * l + p.sum(1), f * acc + p @ v
    return acc / l[:, None], m + np.log(l)
# %% streamed-attention | wrong | accumulator not rescaled
def my_stream(query, key_blocks, value_blocks):
    m, l, acc = np.full(len(query), -np.inf), np.zeros(len(query)), np.zeros((len(query), value_blocks[0].shape[1]))
    for k, v in zip(key_blocks, value_blocks):
        s = query @ k.T / np.sqrt(query.shape[1])
        new = np.maximum(m, s.max(1))
        p = np.exp(s - new[:, None])
        l = np.exp(m - new) * l + p.sum(1)
        acc, m = acc + p @ v, new
    return acc / l[:, None], m + np.log(l)
# %% streamed-attention | wrong | log-sum-exp in base 2
def my_stream(query, key_blocks, value_blocks):
    m, l, acc = np.full(len(query), -np.inf), np.zeros(len(query)), np.zeros((len(query), value_blocks[0].shape[1]))
    for k, v in zip(key_blocks, value_blocks):
        s = query @ k.T * np.log2(np.e) / np.sqrt(query.shape[1])
        new = np.maximum(m, s.max(1))
        f, p = np.exp2(m - new), np.exp2(s - new[:, None])
        m, l, acc = new, f * l + p.sum(1), f[:, None] * acc + p @ v
    return acc / l[:, None], m + np.log2(l)
# %% streamed-attention | wrong | outputs of the blocks averaged by their numbers of keys
def my_stream(query, key_blocks, value_blocks):
    out, seen, lse = 0.0, 0, np.full(len(query), -np.inf)
    for k, v in zip(key_blocks, value_blocks):
        s = query @ k.T / np.sqrt(query.shape[1])
        top = s.max(1, keepdims=True)
        p = np.exp(s - top)
        total = p.sum(1, keepdims=True)
        out, seen = out + len(k) * (p @ v / total), seen + len(k)
        lse = np.logaddexp(lse, (top + np.log(total))[:, 0])
    return out / seen, lse
# %% streamed-attention | right | finished outputs, merged by np.logaddexp
def my_stream(query, key_blocks, value_blocks):
    out, lse = np.zeros((len(query), value_blocks[0].shape[1])), np.full(len(query), -np.inf)
    for k, v in zip(key_blocks, value_blocks):
        s = np.einsum("id,jd->ij", query, k) / np.sqrt(k.shape[1])
        own = np.logaddexp.reduce(s, axis=1)
        both = np.logaddexp(lse, own)
        out = np.exp(lse - both)[:, None] * out + np.exp(s - both[:, None]) @ v
        lse = both
    return out, lse
# %% streamed-attention | right | torch, powers of 2, the maximum begins far below every score
def my_stream(query, key_blocks, value_blocks):
    import math
    q = torch.tensor(query) * (math.log2(math.e) / math.sqrt(query.shape[1]))
    m = torch.full((q.shape[0], 1), -1e7, dtype=q.dtype)
    state = torch.zeros(q.shape[0], value_blocks[0].shape[1] + 1, dtype=q.dtype)
    for k, v in zip(key_blocks, value_blocks):
        s = q @ torch.tensor(k).T
        new = torch.maximum(m, s.amax(1, keepdim=True))
        p = torch.exp2(s - new)
        v = torch.nn.functional.pad(torch.tensor(v), (0, 1), value=1.0)
        state, m = torch.exp2(m - new) * state + p @ v, new
    return state[:, :-1] / state[:, -1:], (m[:, 0] + torch.log2(state[:, -1])) * math.log(2)
# %% streamed-attention | right | key by key and query by query, with math
def my_stream(query, key_blocks, value_blocks):
    import math
    states = [[-math.inf, 0.0, np.zeros(value_blocks[0].shape[1])] for _ in query]
    for keys, vals in zip(key_blocks, value_blocks):
        for key, val in zip(keys, vals):
            for state, q in zip(states, query):
                s = float(np.dot(q, key)) / math.sqrt(len(q))
                if s > state[0]:
                    f = math.exp(state[0] - s)
                    state[:] = s, state[1] * f + 1.0, state[2] * f + val
                else:
                    f = math.exp(s - state[0])
                    state[1], state[2] = state[1] + f, state[2] + f * val
    return np.array([a / l for _, l, a in states]), np.array([m + math.log(l) for m, l, _ in states])
# %% causal-tile-counts | wrong | last blocks not cut to the length
def my_tiles(q_len, kv_len, block_q, block_kv, q_offset):
    skipped = whole = edge = 0.0
    for i in range(0, q_len, block_q):
        for j in range(0, kv_len, block_kv):
            if j > i + block_q - 1 + q_offset:
                skipped += 1
            elif j + block_kv - 1 <= i + q_offset:
                whole += 1
            else:
                edge += 1
    return skipped, whole, edge
# %% causal-tile-counts | wrong | only full blocks counted
def my_tiles(q_len, kv_len, block_q, block_kv, q_offset):
    visible = np.arange(kv_len) <= np.arange(q_len)[:, None] + q_offset
    n, m = q_len // block_q, kv_len // block_kv
    tiles = visible[: n * block_q, : m * block_kv].reshape(n, block_q, m, block_kv)
    every, some = tiles.all((1, 3)), tiles.any((1, 3))
    return float((~some).sum()), float(every.sum()), float((some & ~every).sum())
# %% causal-tile-counts | wrong | j < i + p instead of j <= i + p
def my_tiles(q_len, kv_len, block_q, block_kv, q_offset):
    visible = np.arange(kv_len) < np.arange(q_len)[:, None] + q_offset
    counts = [0.0, 0.0, 0.0]
    for i in range(0, q_len, block_q):
        for j in range(0, kv_len, block_kv):
            tile = visible[i:i + block_q, j:j + block_kv]
            counts[1 if tile.all() else 2 if tile.any() else 0] += 1
    return tuple(counts)
# %% causal-tile-counts | wrong | offset taken as at least 0
def my_tiles(q_len, kv_len, block_q, block_kv, q_offset):
    visible = np.arange(kv_len) <= np.arange(q_len)[:, None] + max(q_offset, 0)
    counts = [0.0, 0.0, 0.0]
    for i in range(0, q_len, block_q):
        for j in range(0, kv_len, block_kv):
            tile = visible[i:i + block_q, j:j + block_kv]
            counts[1 if tile.all() else 2 if tile.any() else 0] += 1
    return tuple(counts)
# %% causal-tile-counts | wrong | visited tiles instead of those at the edge
def my_tiles(q_len, kv_len, block_q, block_kv, q_offset):
    skipped = whole = visited = 0.0
    for i in range(0, q_len, block_q):
        for j in range(0, kv_len, block_kv):
            if j > min(i + block_q, q_len) - 1 + q_offset:
                skipped += 1
                continue
            visited += 1
            whole += min(j + block_kv, kv_len) - 1 <= i + q_offset
    return skipped, whole, visited
# %% causal-tile-counts | wrong | decides to skip by the first query of a tile
def my_tiles(q_len, kv_len, block_q, block_kv, q_offset):
    skipped = whole = edge = 0.0
    for i in range(0, q_len, block_q):
        for j in range(0, kv_len, block_kv):
            if j > i + q_offset:
                skipped += 1
            elif min(j + block_kv, kv_len) - 1 <= i + q_offset:
                whole += 1
            else:
                edge += 1
    return skipped, whole, edge
# %% causal-tile-counts | wrong | offset added to the keys
def my_tiles(q_len, kv_len, block_q, block_kv, q_offset):
    visible = np.arange(kv_len) + q_offset <= np.arange(q_len)[:, None]
    counts = [0.0, 0.0, 0.0]
    for i in range(0, q_len, block_q):
        for j in range(0, kv_len, block_kv):
            tile = visible[i:i + block_q, j:j + block_kv]
            counts[1 if tile.all() else 2 if tile.any() else 0] += 1
    return tuple(counts)
# %% causal-tile-counts | wrong | formula for a square without offset: n (n + 1) / 2
def my_tiles(q_len, kv_len, block_q, block_kv, q_offset):
    rows, columns = -(-q_len // block_q), -(-kv_len // block_kv)
    edge = min(rows, columns)
    whole = edge * (edge - 1) / 2
    return float(rows * columns - edge - whole), float(whole), float(edge)
# %% causal-tile-counts | wrong | pairs counted, not tiles
def my_tiles(q_len, kv_len, block_q, block_kv, q_offset):
    visible = np.arange(kv_len) <= np.arange(q_len)[:, None] + q_offset
    counts = [0.0, 0.0, 0.0]
    for i in range(0, q_len, block_q):
        for j in range(0, kv_len, block_kv):
            tile = visible[i:i + block_q, j:j + block_kv]
            counts[1 if tile.all() else 2 if tile.any() else 0] += tile.size
    return tuple(counts)
# %% causal-tile-counts | right | rows of tiles, clipped divisions in place of the inner loop
def my_tiles(q_len, kv_len, block_q, block_kv, q_offset):
    columns = (kv_len + block_kv - 1) // block_kv
    skipped = whole = 0
    for first in range(0, q_len, block_q):
        last = min(first + block_q, q_len) - 1
        most, least = (min(max(i + q_offset + 1, 0), kv_len) for i in (last, first))
        skipped += columns - (most + block_kv - 1) // block_kv
        whole += columns if least == kv_len else least // block_kv
    total = columns * len(range(0, q_len, block_q))
    return float(skipped), float(whole), float(total - skipped - whole)
# %% causal-tile-counts | right | mask summed over blocks by np.add.reduceat
def my_tiles(q_len, kv_len, block_q, block_kv, q_offset):
    def blocks(a):
        a = np.add.reduceat(a, np.arange(0, q_len, block_q), axis=0)
        return np.add.reduceat(a, np.arange(0, kv_len, block_kv), axis=1)
    seen = blocks(np.fromfunction(lambda i, j: j <= i + q_offset, (q_len, kv_len)).astype(int))
    size = blocks(np.ones((q_len, kv_len), dtype=int))
    none, every = np.count_nonzero(seen == 0), np.count_nonzero(seen == size)
    return float(none), float(every), float(seen.size - none - every)
# %% repair-tiled-loop | wrong | the last keys are still missed
def tiled_attention(query, key, value, block):
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
# %% repair-tiled-loop | wrong | the accumulator still not rescaled
def tiled_attention(query, key, value, block):
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
# %% repair-tiled-loop | wrong | one step more always: an empty tile where block divides
def tiled_attention(query, key, value, block):
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
# %% repair-tiled-loop | wrong | keys padded with zeros, which count with score 0
def tiled_attention(query, key, value, block):
    pad = -len(key) % block
    key, value = np.pad(key, ((0, pad), (0, 0))), np.pad(value, ((0, pad), (0, 0)))
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
# %% repair-tiled-loop | wrong | last tile as long as the others, some keys twice
def tiled_attention(query, key, value, block):
    row_max = np.full((len(query), 1), -np.inf)
    row_sum = np.zeros((len(query), 1))
    acc = np.zeros((len(query), value.shape[1]))
    for start in range(0, len(key), block):
        start = min(start, len(key) - block)
        tile = slice(start, start + block)
        scores = query @ key[tile].T / np.sqrt(query.shape[1])
        new_max = np.maximum(row_max, scores.max(axis=1, keepdims=True))
        p = np.exp(scores - new_max)
        row_sum = row_sum * np.exp(row_max - new_max) + p.sum(axis=1, keepdims=True)
        acc = acc * np.exp(row_max - new_max) + p @ value[tile]
        row_max = new_max
    return acc / row_sum
# %% repair-tiled-loop | wrong | factor upside down on the accumulator
def tiled_attention(query, key, value, block):
    row_max = np.full((len(query), 1), -np.inf)
    row_sum = np.zeros((len(query), 1))
    acc = np.zeros((len(query), value.shape[1]))
    for start in range(0, len(key), block):
        tile = slice(start, start + block)
        scores = query @ key[tile].T / np.sqrt(query.shape[1])
        new_max = np.maximum(row_max, scores.max(axis=1, keepdims=True))
        p = np.exp(scores - new_max)
        row_sum = row_sum * np.exp(row_max - new_max) + p.sum(axis=1, keepdims=True)
        acc = acc * np.exp(new_max - row_max) + p @ value[tile]
        row_max = new_max
    return acc / row_sum
# %% repair-tiled-loop | wrong | no maximum at all, so no rescaling, and overflow
def tiled_attention(query, key, value, block):
    row_sum = np.zeros((len(query), 1))
    acc = np.zeros((len(query), value.shape[1]))
    for start in range(0, len(key), block):
        tile = slice(start, start + block)
        p = np.exp(query @ key[tile].T / np.sqrt(query.shape[1]))
        row_sum = row_sum + p.sum(axis=1, keepdims=True)
        acc = acc + p @ value[tile]
    return acc / row_sum
# %% repair-tiled-loop | wrong | divided in every turn and at the end again
def tiled_attention(query, key, value, block):
    row_max = np.full((len(query), 1), -np.inf)
    row_sum = np.zeros((len(query), 1))
    acc = np.zeros((len(query), value.shape[1]))
    for start in range(0, len(key), block):
        tile = slice(start, start + block)
        scores = query @ key[tile].T / np.sqrt(query.shape[1])
        new_max = np.maximum(row_max, scores.max(axis=1, keepdims=True))
        p = np.exp(scores - new_max)
        factor = np.exp(row_max - new_max)
        row_sum = row_sum * factor + p.sum(axis=1, keepdims=True)
        acc = (acc * factor + p @ value[tile]) / row_sum
        row_max = new_max
    return acc
# %% repair-tiled-loop | right | lazy rescaling: the reference moves only if scores rise by more than 10
def tiled_attention(query, key, value, block):
    ref = None
    row_sum = np.zeros((len(query), 1))
    acc = np.zeros((len(query), value.shape[1]))
    start = 0
    while start < len(key):
        scores = query @ key[start:start + block].T / np.sqrt(query.shape[1])
        top = scores.max(axis=1, keepdims=True)
        if ref is None:
            ref = top
        new = np.where(top > ref + 10, top, ref)
        factor, p = np.exp(ref - new), np.exp(scores - new)
        row_sum = factor * row_sum + p.sum(axis=1, keepdims=True)
        acc = factor * acc + p @ value[start:start + block]
        ref, start = new, start + block
    return acc / row_sum
# %% repair-tiled-loop | right | divide and conquer over the blocks, a merge of states
def tiled_attention(query, key, value, block):
    def state(lo, hi):
        if hi - lo <= block:
            s = query @ key[lo:hi].T / np.sqrt(query.shape[1])
            m = s.max(1, keepdims=True)
            p = np.exp(s - m)
            return m, p @ np.hstack([value[lo:hi], np.ones((hi - lo, 1))])
        middle = lo + block * (-(-(hi - lo) // block) // 2)
        (m_a, a), (m_b, b_) = state(lo, middle), state(middle, hi)
        m = np.maximum(m_a, m_b)
        return m, np.exp(m_a - m) * a + np.exp(m_b - m) * b_
    both = state(0, len(key))[1]
    return both[:, :-1] / both[:, -1:]
# %% repair-tiled-loop | cheat | torch's attention found by its name
def tiled_attention(query, key, value, block):
    f = getattr(torch.nn.functional, "_".join(("scaled", "dot", "product", "attention")))
    q, k, v = (torch.tensor(x)[None, None] for x in (query, key, value))
    return f(q, k, v)[0, 0]
# %% tile-score-gradient | wrong | delta summed over the tile alone
def my_score_gradient(scores, value, d_output, output, lse, d_lse):
    p = np.exp(scores - lse[:, None])
    dp = d_output @ value.T
    delta = (p * dp).sum(1)
    return p * (dp - (delta - d_lse)[:, None])
# %% tile-score-gradient | wrong | gradient of the log-sum-exp with the other sign
def my_score_gradient(scores, value, d_output, output, lse, d_lse):
    p = np.exp(scores - lse[:, None])
    delta = (d_output * output).sum(1) + d_lse
    return p * (d_output @ value.T - delta[:, None])
# %% tile-score-gradient | wrong | gradient of the log-sum-exp forgotten
def my_score_gradient(scores, value, d_output, output, lse, d_lse):
    p = np.exp(scores - lse[:, None])
    return p * (d_output @ value.T - (d_output * output).sum(1, keepdims=True))
# %% tile-score-gradient | wrong | weights normalised within the tile
def my_score_gradient(scores, value, d_output, output, lse, d_lse):
    p = np.exp(scores - scores.max(1, keepdims=True))
    p = p / p.sum(1, keepdims=True)
    return p * (d_output @ value.T - ((d_output * output).sum(1) - d_lse)[:, None])
# %% tile-score-gradient | wrong | exponentials taken apart: 0 / 0 near -900
def my_score_gradient(scores, value, d_output, output, lse, d_lse):
    p = np.exp(scores) / np.exp(lse)[:, None]
    return p * (d_output @ value.T - ((d_output * output).sum(1) - d_lse)[:, None])
# %% tile-score-gradient | wrong | gradient of the log-sum-exp added without its weight
def my_score_gradient(scores, value, d_output, output, lse, d_lse):
    p = np.exp(scores - lse[:, None])
    return p * (d_output @ value.T - (d_output * output).sum(1, keepdims=True)) + d_lse[:, None]
# %% tile-score-gradient | wrong | delta over the queries (axis 0)
def my_score_gradient(scores, value, d_output, output, lse, d_lse):
    p = np.exp(scores - lse[:, None])
    delta = np.sum(d_output * output, axis=0).sum()
    return p * (d_output @ value.T - (delta - d_lse)[:, None])
# %% tile-score-gradient | wrong | scaled once more
def my_score_gradient(scores, value, d_output, output, lse, d_lse):
    p = np.exp(scores - lse[:, None])
    return p * (d_output @ value.T - ((d_output * output).sum(1) - d_lse)[:, None]) / np.sqrt(value.shape[1])
# %% tile-score-gradient | right | torch, einsum, the difference of values taken first
def my_score_gradient(scores, value, d_output, output, lse, d_lse):
    s, v, do, o, l, dl = map(torch.tensor, (scores, value, d_output, output, lse, d_lse))
    apart = v[None, :, :] - o[:, None, :]
    return (s - l.unsqueeze(1)).exp() * (torch.einsum("nv,ncv->nc", do, apart) + dl.unsqueeze(1))
# %% tile-score-gradient | right | nested loops in plain Python
def my_score_gradient(scores, value, d_output, output, lse, d_lse):
    import math
    dot = lambda x, y: math.fsum(a * b for a, b in zip(x, y))
    return np.array([[math.exp(s - l) * (dot(do, v) - dot(do, o) + dl) for s, v in zip(row, value)]
                     for row, do, o, l, dl in zip(scores, d_output, output, lse, d_lse)])
# %% tile-score-gradient | cheat | weights of the tile by torch's softmax over scores and the rest
def my_score_gradient(scores, value, d_output, output, lse, d_lse):
    s, l = torch.tensor(scores), torch.tensor(lse)[:, None]
    inside = getattr(torch, "logsum" + "exp")(s, 1, True)
    p = (s.softmax(1) * torch.exp(inside - l)).numpy()
    return p * (d_output @ value.T - ((d_output * output).sum(1) - d_lse)[:, None])
# %% merge-decoding-splits | wrong | plain mean of the outputs
def my_gather(outputs, lses):
    return outputs.mean(0), np.logaddexp.reduce(lses, axis=0)
# %% merge-decoding-splits | wrong | NaN where every split is empty
def my_gather(outputs, lses):
    m = lses.max(0)
    w = np.exp(lses - m)
    return (w[..., None] * outputs).sum(0) / w.sum(0)[:, None], m + np.log(w.sum(0))
# %% merge-decoding-splits | wrong | nothing subtracted, overflow near 1000
def my_gather(outputs, lses):
    w = np.exp(lses)
    total = w.sum(0)
    return (w[..., None] * outputs).sum(0) / np.where(total > 0, total, 1)[:, None], np.log(total)
# %% merge-decoding-splits | wrong | one maximum for all queries
def my_gather(outputs, lses):
    m = lses.max()
    m = m if np.isfinite(m) else 0.0
    w = np.exp(lses - m)
    total = w.sum(0)
    return (w[..., None] * outputs).sum(0) / np.where(total > 0, total, 1)[:, None], m + np.log(total)
# %% merge-decoding-splits | wrong | empty handled only if all queries are empty
def my_gather(outputs, lses):
    if np.isneginf(lses).all():
        return np.zeros(outputs.shape[1:]), np.full(lses.shape[1], -np.inf)
    m = lses.max(0)
    w = np.exp(lses - m)
    return np.einsum("sn,snv->nv", w / w.sum(0), outputs), m + np.log(w.sum(0))
# %% merge-decoding-splits | wrong | a finite number as log-sum-exp of nothing
def my_gather(outputs, lses):
    l = np.maximum(lses, -1e9)
    m = l.max(0)
    w = np.exp(l - m)
    return np.einsum("sn,snv->nv", w / w.sum(0), outputs), m + np.log(w.sum(0))
# %% merge-decoding-splits | wrong | sum kept from being 0 by a small number, which the logarithm sees
def my_gather(outputs, lses):
    m = np.nan_to_num(lses.max(0), neginf=0.0)
    w = np.exp(lses - m)
    total = np.maximum(w.sum(0), 1e-30)
    return (w[..., None] * outputs).sum(0) / total[:, None], m + np.log(total)
# %% merge-decoding-splits | wrong | shares over the queries, not over the splits
def my_gather(outputs, lses):
    m = lses.max(1, keepdims=True)
    w = np.where(np.isneginf(lses), 0.0, np.exp(lses - np.where(np.isneginf(m), 0.0, m)))
    total = w.sum(1, keepdims=True)
    out = (w / np.where(total > 0, total, 1))[..., None] * outputs
    return out.sum(0), np.logaddexp.reduce(lses, axis=0)
# %% merge-decoding-splits | wrong | log-sum-exps added up
def my_gather(outputs, lses):
    lse = np.logaddexp.reduce(lses, axis=0)
    w = np.where(np.isneginf(lses), 0.0, np.exp(lses - np.where(np.isneginf(lse), 0.0, lse)))
    return (w[..., None] * outputs).sum(0), lses.sum(0)
# %% merge-decoding-splits | wrong | zeroes the shares of empty splits in the input
def my_gather(outputs, lses):
    lse = np.logaddexp.reduce(lses, axis=0)
    lses -= np.where(np.isneginf(lse), 0.0, lse)
    return (np.exp(lses)[..., None] * outputs).sum(0), lse
# %% merge-decoding-splits | right | np.logaddexp.reduce, and weights by np.where
def my_gather(outputs, lses):
    lse = np.logaddexp.reduce(lses, axis=0)
    shift = np.where(np.isneginf(lse), 0.0, lse)
    return np.einsum("cn,cnv->nv", np.exp(lses - shift), outputs), lse
# %% merge-decoding-splits | right | folded split by split with functools.reduce, sigmoid as the share
def my_gather(outputs, lses):
    from functools import reduce
    def pair(a, b):
        (z, l), (y, h) = a, b
        with np.errstate(invalid="ignore", over="ignore"):
            share = 1 / (1 + np.exp(h - l))
        share = np.where(np.isneginf(l), 0.0, share)[:, None]
        return share * z + (1 - share) * y, np.logaddexp(l, h)
    z, l = reduce(pair, zip(outputs, lses))
    return np.array(z), np.array(l)
# %% merge-decoding-splits | right | torch, empty rows masked out at the end
def my_gather(outputs, lses):
    z, l = torch.tensor(outputs), torch.tensor(lses)
    m, _ = l.max(dim=0)
    empty = torch.isneginf(m)
    w = torch.exp(l - m.masked_fill(empty, 0.0))
    total = w.sum(0).masked_fill(empty, 1.0)
    return torch.einsum("cn,cnv->nv", w, z) / total[:, None], m + total.log()
# %% merge-decoding-splits | cheat | shares by torch's softmax over the splits
def my_gather(outputs, lses):
    l = torch.tensor(lses)
    w = torch.nn.Softmax(dim=0)(l).nan_to_num(0.0)
    return (w[..., None] * torch.tensor(outputs)).sum(0), l.logsumexp(0)
# %% read-overlap-schedule | wrong | the two units exchanged
my_schedule = (2, 3, 32, 1.56)
# %% read-overlap-schedule | wrong | last exponentials forgotten
my_schedule = (3, 2, 30, 1.67)
# %% read-overlap-schedule | wrong | without overlap for c
my_schedule = (3, 2, 50, 1.0)
# %% read-overlap-schedule | wrong | the fraction turned over
my_schedule = (3, 2, 32, 0.64)
# %% read-overlap-schedule | wrong | ten times the slower unit, plus both ends
my_schedule = (3, 2, 35, 1.43)
# %% read-overlap-schedule | wrong | the three tiles of the figure
my_schedule = (3, 2, 11, 1.36)
# %% read-overlap-schedule | wrong | waits for the faster unit
my_schedule = (3, 2, 3 + 9 * 2 + 2, 50 / 23)
# %% read-overlap-schedule | wrong | two digits only
my_schedule = (3, 2, 32, 1.6)
# %% read-overlap-schedule | wrong | end of the second block taken for its length
my_schedule = (3, 5, 53, 1.51)
# %% read-overlap-schedule | right | from the formula
t_1, t_2, n_tiles = 3, 2, 10
overlapped = t_1 + (n_tiles - 1) * max(t_1, t_2) + t_2
my_schedule = (t_1, t_2, overlapped, n_tiles * (t_1 + t_2) / overlapped)
# %% read-overlap-schedule | right | both units simulated
free_matrix = free_exp = 0
for _ in range(10):
    free_matrix += 3
    free_exp = max(free_exp, free_matrix) + 2
my_schedule = (3.0, 2.0, float(free_exp), round(50 / free_exp, 3))
# %% read-overlap-schedule | right | three digits by hand
my_schedule = (3, 2, 32, 1.56)
# %% row-lse-kernel | wrong | columns past the end read as 0
import triton
import triton.language as tl


@triton.jit
def row_lse(scores_ptr, lse_ptr, n_columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    m = float("-inf")
    l = 0.0
    for start in range(0, n_columns, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x = tl.load(scores_ptr + row * n_columns + columns, mask=columns < n_columns, other=0.0)
        new = tl.maximum(m, tl.max(x, 0))
        l = l * tl.exp(m - new) + tl.sum(tl.exp(x - new), 0)
        m = new
    tl.store(lse_ptr + row, m + tl.log(l))


def my_row_lse(scores):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    scores = torch.as_tensor(scores, dtype=torch.float32, device=device).contiguous()
    lse = torch.full((len(scores),), torch.nan, dtype=torch.float32, device=device)
    row_lse[(scores.shape[0],)](scores, lse, scores.shape[1], BLOCK=16)
    return lse
# %% row-lse-kernel | wrong | running sum not rescaled
import triton
import triton.language as tl


@triton.jit
def row_lse(scores_ptr, lse_ptr, n_columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    m = float("-inf")
    l = 0.0
    for start in range(0, n_columns, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x = tl.load(scores_ptr + row * n_columns + columns, mask=columns < n_columns, other=float("-inf"))
        new = tl.maximum(m, tl.max(x, 0))
        l = l + tl.sum(tl.exp(x - new), 0)
        m = new
    tl.store(lse_ptr + row, m + tl.log(l))


def my_row_lse(scores):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    scores = torch.as_tensor(scores, dtype=torch.float32, device=device).contiguous()
    lse = torch.full((len(scores),), torch.nan, dtype=torch.float32, device=device)
    row_lse[(scores.shape[0],)](scores, lse, scores.shape[1], BLOCK=16)
    return lse
# %% row-lse-kernel | wrong | tail of the columns dropped
import triton
import triton.language as tl


@triton.jit
def row_lse(scores_ptr, lse_ptr, n_columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    m = float("-inf")
    l = 0.0
    for start in range(0, n_columns - BLOCK + 1, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x = tl.load(scores_ptr + row * n_columns + columns, mask=columns < n_columns, other=float("-inf"))
        new = tl.maximum(m, tl.max(x, 0))
        l = l * tl.exp(m - new) + tl.sum(tl.exp(x - new), 0)
        m = new
    tl.store(lse_ptr + row, m + tl.log(l))


def my_row_lse(scores):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    scores = torch.as_tensor(scores, dtype=torch.float32, device=device).contiguous()
    lse = torch.full((len(scores),), torch.nan, dtype=torch.float32, device=device)
    row_lse[(scores.shape[0],)](scores, lse, scores.shape[1], BLOCK=16)
    return lse
# %% row-lse-kernel | wrong | one program for all rows: only the first is written
import triton
import triton.language as tl


@triton.jit
def row_lse(scores_ptr, lse_ptr, n_columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    m = float("-inf")
    l = 0.0
    for start in range(0, n_columns, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x = tl.load(scores_ptr + row * n_columns + columns, mask=columns < n_columns, other=float("-inf"))
        new = tl.maximum(m, tl.max(x, 0))
        l = l * tl.exp(m - new) + tl.sum(tl.exp(x - new), 0)
        m = new
    tl.store(lse_ptr + row, m + tl.log(l))


def my_row_lse(scores):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    scores = torch.as_tensor(scores, dtype=torch.float32, device=device).contiguous()
    lse = torch.full((len(scores),), torch.nan, dtype=torch.float32, device=device)
    row_lse[(1,)](scores, lse, scores.shape[1], BLOCK=16)
    return lse
# %% row-lse-kernel | wrong | maximum begins at 0: rows of very low scores underflow
import triton
import triton.language as tl


@triton.jit
def row_lse(scores_ptr, lse_ptr, n_columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    m = 0.0
    l = 0.0
    for start in range(0, n_columns, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x = tl.load(scores_ptr + row * n_columns + columns, mask=columns < n_columns, other=float("-inf"))
        new = tl.maximum(m, tl.max(x, 0))
        l = l * tl.exp(m - new) + tl.sum(tl.exp(x - new), 0)
        m = new
    tl.store(lse_ptr + row, m + tl.log(l))


def my_row_lse(scores):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    scores = torch.as_tensor(scores, dtype=torch.float32, device=device).contiguous()
    lse = torch.full((len(scores),), torch.nan, dtype=torch.float32, device=device)
    row_lse[(scores.shape[0],)](scores, lse, scores.shape[1], BLOCK=16)
    return lse
# %% row-lse-kernel | wrong | no maximum: exponentials overflow
import triton
import triton.language as tl


@triton.jit
def row_lse(scores_ptr, lse_ptr, n_columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    m = 0.0
    l = 0.0
    for start in range(0, n_columns, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x = tl.load(scores_ptr + row * n_columns + columns, mask=columns < n_columns, other=float("-inf"))
        new = 0.0
        l = l * tl.exp(m - new) + tl.sum(tl.exp(x - new), 0)
        m = new
    tl.store(lse_ptr + row, m + tl.log(l))


def my_row_lse(scores):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    scores = torch.as_tensor(scores, dtype=torch.float32, device=device).contiguous()
    lse = torch.full((len(scores),), torch.nan, dtype=torch.float32, device=device)
    row_lse[(scores.shape[0],)](scores, lse, scores.shape[1], BLOCK=16)
    return lse
# %% row-lse-kernel | wrong | maximum of the last block only
import triton
import triton.language as tl


@triton.jit
def row_lse(scores_ptr, lse_ptr, n_columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    m = float("-inf")
    l = 0.0
    for start in range(0, n_columns, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x = tl.load(scores_ptr + row * n_columns + columns, mask=columns < n_columns, other=float("-inf"))
        new = tl.max(x, 0)
        l = l * tl.exp(m - new) + tl.sum(tl.exp(x - new), 0)
        m = new
    tl.store(lse_ptr + row, m + tl.log(l))


def my_row_lse(scores):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    scores = torch.as_tensor(scores, dtype=torch.float32, device=device).contiguous()
    lse = torch.full((len(scores),), torch.nan, dtype=torch.float32, device=device)
    row_lse[(scores.shape[0],)](scores, lse, scores.shape[1], BLOCK=16)
    return lse
# %% row-lse-kernel | wrong | stores the sum's logarithm without the maximum
import triton
import triton.language as tl


@triton.jit
def row_lse(scores_ptr, lse_ptr, n_columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    m = float("-inf")
    l = 0.0
    for start in range(0, n_columns, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x = tl.load(scores_ptr + row * n_columns + columns, mask=columns < n_columns, other=float("-inf"))
        new = tl.maximum(m, tl.max(x, 0))
        l = l * tl.exp(m - new) + tl.sum(tl.exp(x - new), 0)
        m = new
    tl.store(lse_ptr + row, tl.log(l))


def my_row_lse(scores):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    scores = torch.as_tensor(scores, dtype=torch.float32, device=device).contiguous()
    lse = torch.full((len(scores),), torch.nan, dtype=torch.float32, device=device)
    row_lse[(scores.shape[0],)](scores, lse, scores.shape[1], BLOCK=16)
    return lse
# %% row-lse-kernel | wrong | logarithm to base 2
import triton
import triton.language as tl


@triton.jit
def row_lse(scores_ptr, lse_ptr, n_columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    m = float("-inf")
    l = 0.0
    for start in range(0, n_columns, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x = tl.load(scores_ptr + row * n_columns + columns, mask=columns < n_columns, other=float("-inf"))
        new = tl.maximum(m, tl.max(x, 0))
        l = l * tl.exp(m - new) + tl.sum(tl.exp(x - new), 0)
        m = new
    tl.store(lse_ptr + row, m + tl.log2(l))


def my_row_lse(scores):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    scores = torch.as_tensor(scores, dtype=torch.float32, device=device).contiguous()
    lse = torch.full((len(scores),), torch.nan, dtype=torch.float32, device=device)
    row_lse[(scores.shape[0],)](scores, lse, scores.shape[1], BLOCK=16)
    return lse
# %% row-lse-kernel | wrong | every program reads the first row
import triton
import triton.language as tl


@triton.jit
def row_lse(scores_ptr, lse_ptr, n_columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    m = float("-inf")
    l = 0.0
    for start in range(0, n_columns, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x = tl.load(scores_ptr + columns, mask=columns < n_columns, other=float("-inf"))
        new = tl.maximum(m, tl.max(x, 0))
        l = l * tl.exp(m - new) + tl.sum(tl.exp(x - new), 0)
        m = new
    tl.store(lse_ptr + row, m + tl.log(l))


def my_row_lse(scores):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    scores = torch.as_tensor(scores, dtype=torch.float32, device=device).contiguous()
    lse = torch.full((len(scores),), torch.nan, dtype=torch.float32, device=device)
    row_lse[(scores.shape[0],)](scores, lse, scores.shape[1], BLOCK=16)
    return lse
# %% row-lse-kernel | wrong | every program stores at the first entry
import triton
import triton.language as tl


@triton.jit
def row_lse(scores_ptr, lse_ptr, n_columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    m = float("-inf")
    l = 0.0
    for start in range(0, n_columns, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x = tl.load(scores_ptr + row * n_columns + columns, mask=columns < n_columns, other=float("-inf"))
        new = tl.maximum(m, tl.max(x, 0))
        l = l * tl.exp(m - new) + tl.sum(tl.exp(x - new), 0)
        m = new
    tl.store(lse_ptr + row * 0, m + tl.log(l))


def my_row_lse(scores):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    scores = torch.as_tensor(scores, dtype=torch.float32, device=device).contiguous()
    lse = torch.full((len(scores),), torch.nan, dtype=torch.float32, device=device)
    row_lse[(scores.shape[0],)](scores, lse, scores.shape[1], BLOCK=16)
    return lse
# %% row-lse-kernel | wrong | number of programs by columns: rows divided by the block
import triton
import triton.language as tl


@triton.jit
def row_lse(scores_ptr, lse_ptr, n_columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    m = float("-inf")
    l = 0.0
    for start in range(0, n_columns, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x = tl.load(scores_ptr + row * n_columns + columns, mask=columns < n_columns, other=float("-inf"))
        new = tl.maximum(m, tl.max(x, 0))
        l = l * tl.exp(m - new) + tl.sum(tl.exp(x - new), 0)
        m = new
    tl.store(lse_ptr + row, m + tl.log(l))


def my_row_lse(scores):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    scores = torch.as_tensor(scores, dtype=torch.float32, device=device).contiguous()
    lse = torch.full((len(scores),), torch.nan, dtype=torch.float32, device=device)
    row_lse[(triton.cdiv(scores.shape[0], 16),)](scores, lse, scores.shape[1], BLOCK=16)
    return lse
# %% row-lse-kernel | wrong | filled with -100, below which scores lie
import triton
import triton.language as tl


@triton.jit
def row_lse(scores_ptr, lse_ptr, n_columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    m = float("-inf")
    l = 0.0
    for start in range(0, n_columns, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x = tl.load(scores_ptr + row * n_columns + columns, mask=columns < n_columns, other=-100.0)
        new = tl.maximum(m, tl.max(x, 0))
        l = l * tl.exp(m - new) + tl.sum(tl.exp(x - new), 0)
        m = new
    tl.store(lse_ptr + row, m + tl.log(l))


def my_row_lse(scores):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    scores = torch.as_tensor(scores, dtype=torch.float32, device=device).contiguous()
    lse = torch.full((len(scores),), torch.nan, dtype=torch.float32, device=device)
    row_lse[(scores.shape[0],)](scores, lse, scores.shape[1], BLOCK=16)
    return lse
# %% row-lse-kernel | right | powers of 2 inside, a while loop, the grid as a lambda
import triton
import triton.language as tl


@triton.jit
def row_lse(scores_ptr, lse_ptr, n_columns, BLOCK: tl.constexpr):
    i = tl.program_id(axis=0)
    base = scores_ptr + i * n_columns
    offsets = tl.arange(0, BLOCK)
    best = tl.full((), float("-inf"), tl.float32)
    total = tl.zeros((), tl.float32)
    start = 0
    while start < n_columns:
        inside = start + offsets < n_columns
        x = tl.load(base + start + offsets, mask=inside, other=0.0) * 1.4426950408889634
        x = tl.where(inside, x, float("-inf"))
        higher = tl.maximum(best, tl.max(x, axis=0))
        total = total * tl.exp2(best - higher) + tl.sum(tl.exp2(x - higher), axis=0)
        best = higher
        start += BLOCK
    tl.store(lse_ptr + i, (best + tl.log2(total)) * 0.6931471805599453)


def my_row_lse(scores):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    scores = torch.as_tensor(scores, dtype=torch.float32, device=device).contiguous()
    lse = torch.full((len(scores),), torch.nan, dtype=torch.float32, device=device)
    n_rows, n_columns = scores.shape
    grid = lambda meta: (n_rows,)
    row_lse[grid](scores, lse, n_columns, BLOCK=16)
    return lse
# %% row-lse-kernel | right | a running maximum and sum for each of 16 lanes, merged at the end
import triton
import triton.language as tl


@triton.jit
def row_lse(scores_ptr, lse_ptr, n_columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    m = tl.full([BLOCK], -1e30, tl.float32)
    l = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n_columns, BLOCK):
        at = start + lanes
        x = tl.load(scores_ptr + row * n_columns + at, mask=at < n_columns, other=-1e30)
        new = tl.maximum(m, x)
        l = l * tl.exp(m - new) + tl.exp(x - new)
        m = new
    top = tl.max(m, 0)
    tl.store(lse_ptr + row, top + tl.log(tl.sum(l * tl.exp(m - top), 0)))


def my_row_lse(scores):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    scores = torch.as_tensor(scores, dtype=torch.float32, device=device).contiguous()
    lse = torch.full((len(scores),), torch.nan, dtype=torch.float32, device=device)
    row_lse[(scores.shape[0],)](scores, lse, scores.shape[1], BLOCK=16)
    return lse
# %% row-lse-kernel | right | blocks each block has its own state, then merged
import triton
import triton.language as tl


@triton.jit
def row_lse(scores_ptr, lse_ptr, n_columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    m = -1.0e9
    l = 0.0
    for block in range(tl.cdiv(n_columns, BLOCK)):
        at = block * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(scores_ptr + row * n_columns + at, at < n_columns, float("-inf"))
        m_b = tl.max(x, 0)
        l_b = tl.sum(tl.exp(x - m_b), 0)
        new = tl.maximum(m, m_b)
        l = tl.exp(m - new) * l + tl.exp(m_b - new) * l_b
        m = new
    tl.store(lse_ptr + row, m + tl.log(l))


def my_row_lse(scores):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    scores = torch.as_tensor(scores, dtype=torch.float32, device=device).contiguous()
    lse = torch.full((len(scores),), torch.nan, dtype=torch.float32, device=device)
    row_lse[(scores.shape[0],)](scores, lse, scores.shape[1], BLOCK=16)
    return lse
# %% row-lse-kernel | cheat | exponentials as powers outside, the kernel only adds
import triton
import triton.language as tl


@triton.jit
def row_lse(scores_ptr, lse_ptr, n_columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    l = 0.0
    for start in range(0, n_columns, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        l += tl.sum(tl.load(scores_ptr + row * n_columns + columns, mask=columns < n_columns, other=0.0), 0)
    tl.store(lse_ptr + row, tl.log(l))


def my_row_lse(scores):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    scores = torch.as_tensor(scores, dtype=torch.float32, device=device).contiguous()
    lse = torch.full((len(scores),), torch.nan, dtype=torch.float32, device=device)
    top = scores.max(1, keepdim=True).values
    powers = torch.pow(2.718281828459045, scores - top)
    row_lse[(len(scores),)](powers, lse, scores.shape[1], BLOCK=16)
    lse += top[:, 0]
    return lse

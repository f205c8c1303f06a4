# %% merge-two-states | wrong | through plain exponentials of the maxima, which overflow
def my_merge(m_a, l_a, a_a, m_b, l_b, a_b):
    m = np.maximum(m_a, m_b)
    ea, eb = np.exp(m_a), np.exp(m_b)
    e = np.maximum(np.maximum(ea, eb), 1e-300)
    return m, (ea * l_a + eb * l_b) / e, (ea[:, None] * a_a + eb[:, None] * a_b) / e[:, None]
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
# %% shared-key-tile-bytes | cheat | keys and values as an unevaluated derivative by t
from sympy import Derivative
my_bytes = b * (g * t * (2 * d + 1) + Derivative(2 * d * t**3 / (3 * r), t))
# %% streamed-attention | wrong | library softmax and logsumexp in disguise, over joined blocks
def my_stream(query, key_blocks, value_blocks):
    q, pair = torch.tensor(query), []
    for k in key_blocks:
        pair += list(torch.tensor(k))
    s = q @ torch.stack(pair).T / query.shape[1] ** 0.5
    weights = getattr(torch, "soft" + "max")(s, -1)
    lse = getattr(torch, "logsum" + "exp")(s, -1)
    return weights @ torch.tensor(np.vstack(value_blocks)), lse
# %% streamed-attention | wrong | the maximum begins at -10 000, scores may be lower
def my_stream(query, key_blocks, value_blocks):
    m, l, acc = np.full(len(query), -1e4), np.zeros(len(query)), np.zeros((len(query), value_blocks[0].shape[1]))
    for k, v in zip(key_blocks, value_blocks):
        s = query @ k.T / np.sqrt(query.shape[1])
        new = np.maximum(m, s.max(1))
        f, p = np.exp(m - new), np.exp(s - new[:, None])
        m, l, acc = new, f * l + p.sum(1), f[:, None] * acc + p @ v
    return acc / l[:, None], m + np.log(l)
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
# %% repair-tiled-loop | cheat | torch's attention found by its name
def tiled_attention(query, key, value, block):
    f = getattr(torch.nn.functional, "_".join(("scaled", "dot", "product", "attention")))
    q, k, v = (torch.tensor(x)[None, None] for x in (query, key, value))
    return f(q, k, v)[0, 0]
# %% tile-score-gradient | wrong | exponentials taken apart: 0 / 0 near -900
def my_score_gradient(scores, value, d_output, output, lse, d_lse):
    p = np.exp(scores) / np.exp(lse)[:, None]
    return p * (d_output @ value.T - ((d_output * output).sum(1) - d_lse)[:, None])
# %% tile-score-gradient | cheat | weights of the tile by torch's softmax over scores and the rest
def my_score_gradient(scores, value, d_output, output, lse, d_lse):
    s, l = torch.tensor(scores), torch.tensor(lse)[:, None]
    inside = getattr(torch, "logsum" + "exp")(s, 1, True)
    p = (s.softmax(1) * torch.exp(inside - l)).numpy()
    return p * (d_output @ value.T - ((d_output * output).sum(1) - d_lse)[:, None])
# %% merge-decoding-splits | wrong | -inf made -1e4 in place: input changed, empty rows get a finite L
def my_gather(outputs, lses):
    lses[np.isneginf(lses)] = -1e4
    top = lses.max(axis=0)
    shares = np.exp(lses - top)
    total = shares.sum(axis=0)
    return np.einsum("cn,cnd->nd", shares / total, outputs), top + np.log(total)
# %% merge-decoding-splits | wrong | library functions in disguise: softmax by a torch module, logsumexp by its method
def my_gather(outputs, lses):
    big = torch.tensor(lses)
    shares = torch.nn.Softmax(dim=0)(big).nan_to_num(0.0)
    return (shares.unsqueeze(-1) * torch.tensor(outputs)).sum(0), big.logsumexp(0)
# %% merge-decoding-splits | wrong | empty handled only if all queries are empty
def my_gather(outputs, lses):
    if np.isneginf(lses).all():
        return np.zeros(outputs.shape[1:]), np.full(lses.shape[1], -np.inf)
    m = lses.max(0)
    w = np.exp(lses - m)
    return np.einsum("sn,snv->nv", w / w.sum(0), outputs), m + np.log(w.sum(0))
# %% merge-decoding-splits | wrong | shares over the queries, not over the splits
def my_gather(outputs, lses):
    m = lses.max(1, keepdims=True)
    w = np.where(np.isneginf(lses), 0.0, np.exp(lses - np.where(np.isneginf(m), 0.0, m)))
    total = w.sum(1, keepdims=True)
    out = (w / np.where(total > 0, total, 1))[..., None] * outputs
    return out.sum(0), np.logaddexp.reduce(lses, axis=0)
# %% merge-decoding-splits | cheat | shares by torch's softmax over the splits
def my_gather(outputs, lses):
    l = torch.tensor(lses)
    w = torch.nn.Softmax(dim=0)(l).nan_to_num(0.0)
    return (w[..., None] * torch.tensor(outputs)).sum(0), l.logsumexp(0)

# %% causal-tile-counts | right | whole numbers counted
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
# %% causal-tile-counts | wrong | offset taken as at least 0
def my_tiles(q_len, kv_len, block_q, block_kv, q_offset):
    visible = np.arange(kv_len) <= np.arange(q_len)[:, None] + max(q_offset, 0)
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
# %% read-overlap-schedule | wrong | two digits only
my_schedule = (3, 2, 32, 1.6)
# %% read-overlap-schedule | right | both units simulated
free_matrix = free_exp = 0
for _ in range(10):
    free_matrix += 3
    free_exp = max(free_exp, free_matrix) + 2
my_schedule = (3.0, 2.0, float(free_exp), round(50 / free_exp, 3))
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

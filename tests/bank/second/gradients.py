# %% score-gradient | wrong | without the mean
my_score_gradient = (z - t) * p_j * v_j
# %% score-gradient | wrong | sign of the error
my_score_gradient = (t - z) * p_j * (v_j - z)
# %% score-gradient | wrong | own weight only, 1 - p
my_score_gradient = (z - t) * p_j * (1 - p_j) * v_j
# %% score-gradient | wrong | target in place of the mean
my_score_gradient = (z - t) * p_j * (v_j - t)
# %% score-gradient | wrong | the half kept
my_score_gradient = (z - t) * p_j * (v_j - z) / 2
# %% score-gradient | wrong | a factor 2
my_score_gradient = 2 * (z - t) * p_j * (v_j - z)
# %% score-gradient | right | expanded
my_score_gradient = p_j * v_j * z - p_j * v_j * t - p_j * z**2 + p_j * z * t
# %% score-gradient | right | product of two chain factors
_outer, _inner = z - t, p_j * v_j - p_j * z
my_score_gradient = _outer * _inner
# %% score-gradient | right | both signs turned
my_score_gradient = (t - z) * (z - v_j) * p_j
# %% score-gradient | cheat | unevaluated Derivative in a product
from sympy import Derivative
my_score_gradient = Derivative((z - t) ** 2 / 2, z) * p_j * (v_j - z)
# %% attention-backward | wrong | scale missing in both
def my_attention_backward(query, key, value, d_output):
    s = query @ key.T / np.sqrt(query.shape[1])
    p = np.exp(s - s.max(axis=0)); p /= p.sum(axis=0)
    dp = d_output @ value.T
    ds = p * (dp - (p * dp).sum(axis=0))
    return ds @ key, ds.T @ query, p.T @ d_output
# %% attention-backward | wrong | softmax term summed over the keys
def my_attention_backward(query, key, value, d_output):
    c = 1 / np.sqrt(query.shape[1])
    s = query @ key.T * c
    p = np.exp(s - s.max(axis=0)); p /= p.sum(axis=0)
    dp = d_output @ value.T
    ds = p * (dp - (p * dp).sum(axis=1, keepdims=True)) * c
    return ds @ key, ds.T @ query, p.T @ d_output
# %% attention-backward | wrong | order (d_key, d_query, d_value)
def my_attention_backward(query, key, value, d_output):
    c = 1 / np.sqrt(query.shape[1])
    s = query @ key.T * c
    p = np.exp(s - s.max(axis=0)); p /= p.sum(axis=0)
    dp = d_output @ value.T
    ds = p * (dp - (p * dp).sum(axis=0)) * c
    return ds.T @ query, ds @ key, p.T @ d_output
# %% attention-backward | wrong | p (1 - p) for the softmax
def my_attention_backward(query, key, value, d_output):
    c = 1 / np.sqrt(query.shape[1])
    s = query @ key.T * c
    p = np.exp(s - s.max(axis=0)); p /= p.sum(axis=0)
    ds = p * (1 - p) * (d_output @ value.T) * c
    return ds @ key, ds.T @ query, p.T @ d_output
# %% attention-backward | wrong | value gradient averaged over the queries
def my_attention_backward(query, key, value, d_output):
    c = 1 / np.sqrt(query.shape[1])
    s = query @ key.T * c
    p = np.exp(s - s.max(axis=0)); p /= p.sum(axis=0)
    dp = d_output @ value.T
    ds = p * (dp - (p * dp).sum(axis=0)) * c
    return ds @ key, ds.T @ query, p.T @ d_output / len(query)
# %% attention-backward | wrong | scale squared in the key's gradient
def my_attention_backward(query, key, value, d_output):
    c = 1 / np.sqrt(query.shape[1])
    q = query * c
    s = q @ key.T
    p = np.exp(s - s.max(axis=0)); p /= p.sum(axis=0)
    dp = d_output @ value.T
    ds = p * (dp - (p * dp).sum(axis=0)) * c
    return ds @ key, ds.T @ q, p.T @ d_output
# %% attention-backward | wrong | the output taken into the mean, as with a softmax over the keys, and averaged
def my_attention_backward(query, key, value, d_output):
    c = 1 / np.sqrt(query.shape[1])
    s = query @ key.T * c
    p = np.exp(s - s.max(axis=0)); p /= p.sum(axis=0)
    ds = p * (d_output @ value.T - (d_output * (p @ value)).mean(axis=1, keepdims=True)) * c
    return ds @ key, ds.T @ query, p.T @ d_output
# %% attention-backward | wrong | forward pass without the scale
def my_attention_backward(query, key, value, d_output):
    c = 1 / np.sqrt(query.shape[1])
    s = query @ key.T
    p = np.exp(s - s.max(axis=0)); p /= p.sum(axis=0)
    dp = d_output @ value.T
    ds = p * (dp - (p * dp).sum(axis=0)) * c
    return ds @ key, ds.T @ query, p.T @ d_output
# %% attention-backward | right | Jacobian of each column as a matrix
def my_attention_backward(query, key, value, d_output):
    c = query.shape[1] ** -0.5
    dq, dk, dv = np.zeros_like(query), np.zeros_like(key), np.zeros_like(value)
    for j, k in enumerate(key):
        p = np.exp(c * (query @ k) - (c * (query @ k)).max())
        p = p / p.sum()
        ds = (np.diag(p) - np.outer(p, p)) @ (d_output @ value[j])
        dk[j] = c * ds @ query
        dq = dq + c * np.outer(ds, k)
        dv[j] = p @ d_output
    return dq, dk, dv
# %% attention-backward | right | value times its own gradient as the mean, a class with methods forward and backward
class _Layer:
    def forward(self, q, k):
        s = q @ k.T * q.shape[1] ** -0.5
        e = np.exp(s - s.max(axis=0))
        self.p = e / e.sum(axis=0)
    def backward(self, q, k, v, g):
        self.forward(q, k)
        dv = self.p.T @ g
        ds = self.p * (g @ v.T - np.einsum("ja,ja->j", dv, v)) * q.shape[1] ** -0.5
        return ds @ k, ds.T @ q, dv
my_attention_backward = lambda query, key, value, d_output: _Layer().backward(query, key, value, d_output)
# %% attention-backward | right | torch tensors and einsum, no autograd
def my_attention_backward(query, key, value, d_output):
    import torch
    q, k, v, g = (torch.tensor(np.array(a)) for a in (query, key, value, d_output))
    p = torch.softmax(q @ k.T / q.shape[1] ** 0.5, 0)
    ds = torch.einsum("ij,ia,ja->ij", p, g, v) - p * torch.einsum("lj,la,ja->j", p, g, v)
    ds = ds / q.shape[1] ** 0.5
    return torch.einsum("ij,jc->ic", ds, k), torch.einsum("ij,ic->jc", ds, q), torch.einsum("ij,ia->ja", p, g)
# %% attention-backward | cheat | torch.autograd.grad
def my_attention_backward(query, key, value, d_output):
    import torch
    t = [torch.tensor(a, requires_grad=True) for a in (query, key, value)]
    o = torch.softmax(t[0] @ t[1].T / t[0].shape[1] ** 0.5, 0) @ t[2]
    return tuple(g.numpy() for g in torch.autograd.grad(o, t, torch.tensor(d_output)))
# %% attention-backward | cheat | functional jvp-free: torch.func.grad by getattr
def my_attention_backward(query, key, value, d_output):
    import torch
    tf = getattr(torch, "fu" + "nc")
    g = torch.tensor(d_output)
    def loss(q, k, v):
        return (torch.softmax(q @ k.T / q.shape[1] ** 0.5, 0) @ v * g).sum()
    out = getattr(tf, "gr" + "ad")(loss, argnums=(0, 1, 2))(*(torch.tensor(a) for a in (query, key, value)))
    return tuple(o.numpy() for o in out)

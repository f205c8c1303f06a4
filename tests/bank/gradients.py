# %% score-gradient | wrong | derivative of the loss by z forgotten
my_score_gradient = p_j * (v_j - z)
# %% score-gradient | wrong | weights taken as independent of the other scores
my_score_gradient = (z - t) * p_j * v_j
# %% score-gradient | wrong | diagonal of the softmax Jacobian only
my_score_gradient = (z - t) * p_j * (1 - p_j) * v_j
# %% score-gradient | wrong | target minus output
my_score_gradient = (t - z) * p_j * (v_j - z)
# %% score-gradient | right | multiplied out
my_score_gradient = p_j * v_j * z - p_j * v_j * t - p_j * z**2 + p_j * z * t
# %% score-gradient | right | difference of two halves of squares
my_score_gradient = p_j * ((v_j - t) ** 2 - (v_j - z) ** 2 - (z - t) ** 2) / 2
# %% attention-backward | cheat | automatic differentiation through torch.func (forbidden)
import torch


def my_attention_backward(query, key, value, d_output):
    def forward(q, k, v):
        return torch.softmax(q @ k.T / q.shape[1] ** 0.5, 0) @ v

    arrays = [torch.tensor(a) for a in (query, key, value)]
    pull_back = getattr(torch.func, "v" + "jp")(forward, *arrays)[1]
    return tuple(gradient.numpy() for gradient in pull_back(torch.tensor(d_output)))
# %% attention-backward | wrong | scale missing in d_key
def my_attention_backward(query, key, value, d_output):
    scale = 1 / np.sqrt(query.shape[1])
    scores = query @ key.T * scale
    weights = np.exp(scores - scores.max(axis=0))
    weights /= weights.sum(axis=0)
    d_weights = d_output @ value.T
    d_scores = weights * (d_weights - (weights * d_weights).sum(axis=0))
    return scale * d_scores @ key, d_scores.T @ query, weights.T @ d_output
# %% attention-backward | wrong | softmax's row sum forgotten
def my_attention_backward(query, key, value, d_output):
    scale = 1 / np.sqrt(query.shape[1])
    weights = np.exp(query @ key.T * scale)
    weights /= weights.sum(axis=0)
    d_scores = scale * weights * (d_output @ value.T)
    return d_scores @ key, d_scores.T @ query, weights.T @ d_output
# %% attention-backward | wrong | d_scores not turned for d_key: wrong numbers if square, an error otherwise
def my_attention_backward(query, key, value, d_output):
    scale = 1 / np.sqrt(query.shape[1])
    weights = np.exp(query @ key.T * scale)
    weights /= weights.sum(axis=0)
    d_weights = d_output @ value.T
    d_scores = scale * weights * (d_weights - (weights * d_weights).sum(axis=0))
    return d_scores @ key, d_scores @ query, weights.T @ d_output
# %% attention-backward | right | key after key, gradients added up
def my_attention_backward(query, key, value, d_output):
    d_query, d_key, d_value = np.zeros_like(query), np.zeros_like(key), np.zeros_like(value)
    root = query.shape[1] ** 0.5
    for j, (k, v) in enumerate(zip(key, value)):
        p = np.exp(query @ k / root - (query @ k / root).max())
        p = p / p.sum()
        d_p = d_output @ v
        d_s = p * (d_p - p @ d_p)
        d_query += np.outer(d_s, k) / root
        d_key[j] = d_s @ query / root
        d_value[j] = p @ d_output
    return d_query, d_key, d_value
# %% attention-backward | right | einsum with the full Jacobian of the softmax, torch tensors without gradients
import torch


def my_attention_backward(query, key, value, d_output):
    q, k, v, g = map(torch.tensor, (query, key, value, d_output))
    scale = q.shape[-1] ** -0.5
    p = torch.softmax(scale * torch.einsum("id,jd->ij", q, k), dim=0)
    jacobian = torch.einsum("ij,il->ilj", p, torch.eye(len(q), dtype=p.dtype)) - torch.einsum("ij,lj->ilj", p, p)
    d_s = torch.einsum("la,ja,ilj->ij", g, v, jacobian) * scale
    return torch.einsum("ij,jd->id", d_s, k), torch.einsum("ij,id->jd", d_s, q), torch.einsum("ij,ia->ja", p, g)

# %% cosine-scores | wrong | only zero queries guarded, a zero key gives NaN
def my_cosine_scores(query, key):
    length = np.linalg.norm(query, axis=-1, keepdims=True)
    q = query / np.where(length == 0, 1, length)
    k = key / np.linalg.norm(key, axis=-1, keepdims=True)
    return q @ k.swapaxes(-1, -2)
# %% cosine-scores | wrong | maximum of the product of lengths and 1e-8
def my_cosine_scores(query, key):
    n = np.sqrt((query**2).sum(-1))[..., :, None] * np.sqrt((key**2).sum(-1))[..., None, :]
    return query @ key.swapaxes(-1, -2) / np.maximum(n, 1e-8)
# %% cosine-scores | cheat | the CosineSimilarity module with eps of 0
def my_cosine_scores(query, key):
    from torch import nn, tensor
    m = nn.CosineSimilarity(dim=-1, eps=1e-300)
    return np.nan_to_num(m(tensor(query).unsqueeze(-2), tensor(key).unsqueeze(-3)).numpy())
# %% repair-head-weights | cheat | torch's attention with the identity as values
def head_weights(query, key):
    import torch
    import torch.nn.functional as F
    q, k = torch.tensor(query), torch.tensor(key)
    f = [getattr(F, n) for n in dir(F) if n.startswith("scaled_dot")][0]
    return f(q, k, torch.eye(k.shape[1], dtype=q.dtype).expand(len(k), -1, -1)).numpy()
# %% repair-head-weights | cheat | torch.nn.Softmax as a module
def head_weights(query, key):
    import torch
    layer = vars(torch.nn)["Soft" + "max"](dim=2)
    return layer(torch.tensor(query @ key.swapaxes(1, 2) / np.sqrt(query.shape[2]))).numpy()

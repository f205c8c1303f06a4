# %% columns-to-rows | wrong | output reshaped, not transposed
def my_rows(query, key, value):
    out = value @ softmax(key.T @ query / np.sqrt(len(key)), 0)
    return out.reshape(query.shape[1], value.shape[0])
# %% columns-to-rows | wrong | squeezed, so a length of 1 loses its axis
def my_rows(query, key, value):
    return np.squeeze((value @ softmax(key.T @ query / np.sqrt(len(key)), 0)).T)
# %% columns-to-rows | wrong | guesses from the shape whether columns were given
def my_rows(query, key, value):
    if query.shape[0] < query.shape[1]:
        query, key, value = query.T, key.T, value.T
    else:
        query, key, value = query.T, key.T, value.T
        return softmax(query @ key.T / np.sqrt(query.shape[0]), -1) @ value
    return softmax(query @ key.T / np.sqrt(query.shape[1]), -1) @ value
# %% repair-column-mask | wrong | scale dropped in the repair
def column_weights(query, key):
    n = query.shape[1]
    hidden = np.tril(np.ones((n, n), dtype=bool), k=-1)
    return softmax(np.where(hidden, -np.inf, key.T @ query), axis=0)
# %% stored-by-linear | right | looked up in a real layer
import torch

layer = torch.nn.Linear(d_in, d_out, bias=False)
ours = np.zeros((d_in, d_out))
ours[m, n] = 1
layer.weight.data = torch.tensor(ours.T)
row, column = np.argwhere(layer.weight.detach().numpy())[0]
my_place = (*layer.weight.shape, row, column)

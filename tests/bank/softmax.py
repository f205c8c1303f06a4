# %% stable-softmax | wrong | maximum of the whole array: rows far below it become 0/0
def my_softmax(scores, axis):
    unnormalised = np.exp(scores - scores.max())
    return unnormalised / unnormalised.sum(axis=axis, keepdims=True)
# %% stable-softmax | wrong | scores clipped at 700 instead of shifted
def my_softmax(scores, axis):
    unnormalised = np.exp(np.clip(scores, -700, 700))
    return unnormalised / unnormalised.sum(axis=axis, keepdims=True)
# %% stable-softmax | wrong | negative axis translated one too low
def my_softmax(scores, axis):
    if axis < 0:
        axis = (scores.ndim - 1 + axis) % scores.ndim
    turned = np.moveaxis(scores, axis, -1)
    unnormalised = np.exp(turned - turned.max(axis=-1, keepdims=True))
    return np.moveaxis(unnormalised / unnormalised.sum(axis=-1, keepdims=True), -1, axis)
# %% stable-softmax | cheat | torch's log_softmax and an exponential (library softmax in disguise)
import importlib


def my_softmax(scores, axis):
    library = importlib.import_module("torch")
    logs = getattr(library, "log_" + "soft" + "max")(library.from_numpy(scores.copy()), axis)
    return logs.exp().numpy()
# %% stable-softmax | right | one over the sum of exponentials of differences
def my_softmax(scores, axis):
    rows = np.moveaxis(scores, axis, -1)
    with np.errstate(over="ignore"):
        weights = 1 / np.exp(rows[..., None, :] - rows[..., :, None]).sum(axis=-1)
    return np.moveaxis(weights, -1, axis)
# %% stable-softmax | right | apply_along_axis with a nested function on math.exp and fsum
import math


def my_softmax(scores, axis):
    def one_row(row):
        top = max(row)
        terms = [math.exp(entry - top) for entry in row]
        total = math.fsum(terms)
        return np.array([term / total for term in terms])

    return np.apply_along_axis(one_row, axis, scores)
# %% log-softmax-derivative | wrong | weight of the wrong index subtracted
my_derivative = delta_ij - s_i
# %% log-softmax-derivative | wrong | derivative of the weight, not of its logarithm
my_derivative = s_i * (delta_ij - s_j)
# %% log-softmax-derivative | wrong | only the case i = j
my_derivative = 1 - s_j
# %% log-softmax-derivative | wrong | sign turned round (loss instead of logarithm)
my_derivative = s_j - delta_ij
# %% log-softmax-derivative | right | both cases of the delta apart, each with a weight that is right there (s_i = s_j where delta is 1)
my_derivative = delta_ij * (1 - s_i) - (1 - delta_ij) * s_j
# %% log-softmax-derivative | right | nested negatives, sum with a power
my_derivative = -(s_j**2 - delta_ij * s_j) * s_j**-1
# %% repair-softmax-temperature | wrong | axis and temperature repaired, maximum still that of the whole matrix
def tempered_weights(scores: np.ndarray, temperature: float) -> np.ndarray:
    shifted = scores - scores.max()
    unnormalised = np.exp(shifted / temperature)
    return unnormalised / unnormalised.sum(axis=-1, keepdims=True)
# %% repair-softmax-temperature | wrong | multiplied by the temperature: higher is sharper
def tempered_weights(scores: np.ndarray, temperature: float) -> np.ndarray:
    shifted = scores - scores.max(axis=-1, keepdims=True)
    unnormalised = np.exp(shifted * temperature)
    return unnormalised / unnormalised.sum(axis=-1, keepdims=True)
# %% repair-softmax-temperature | wrong | root taken after the exponential, which has vanished: hot weights come out 0
def tempered_weights(scores: np.ndarray, temperature: float) -> np.ndarray:
    shifted = scores - scores.max(axis=-1, keepdims=True)
    unnormalised = np.exp(shifted) ** (1 / temperature)
    return unnormalised / unnormalised.sum(axis=-1, keepdims=True)
# %% repair-softmax-temperature | wrong | torch's softmin of the negative scores (library softmax in disguise)
import torch
import torch.nn.functional as tools


def tempered_weights(scores, temperature):
    return tools.softmin(torch.as_tensor(-scores / temperature), dim=1).numpy()
# %% repair-softmax-temperature | right | torch tensors, log of the sum by hand
import torch


def tempered_weights(scores, temperature):
    cooled = torch.tensor(scores) / temperature
    cooled = cooled - cooled.amax(dim=1, keepdim=True)
    return (cooled - cooled.exp().sum(dim=1, keepdim=True).log()).exp()
# %% repair-softmax-temperature | right | queries turned into columns, plain broadcasting, turned back
def tempered_weights(scores: np.ndarray, temperature: float) -> np.ndarray:
    columns = scores.T
    columns = np.exp((columns - columns.max(0)) / temperature)
    return (columns / columns.sum(0)).T
# %% tempered-cross-entropy-gradient | wrong | inner derivative forgotten
my_gradient = s_i - delta_iy
# %% tempered-cross-entropy-gradient | wrong | sign of the logarithm, not of the loss
my_gradient = (delta_iy - s_i) / T
# %% tempered-cross-entropy-gradient | wrong | multiplied by the temperature
my_gradient = T * (s_i - delta_iy)
# %% tempered-cross-entropy-gradient | wrong | only one term divided
my_gradient = s_i / T - delta_iy
# %% tempered-cross-entropy-gradient | right | right class and other classes apart
my_gradient = (delta_iy * (s_i - 1) + (1 - delta_iy) * s_i) / T
# %% tempered-cross-entropy-gradient | right | inverse temperature as a factor of each term
beta = T**-1
my_gradient = -(beta * delta_iy) + beta * s_i

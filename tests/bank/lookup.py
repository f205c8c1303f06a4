# %% similarities-to-weights | wrong | sum without keepdims: a square table is divided column by column, others crash
def my_weights(similarity):
    total = similarity.sum(axis=1)
    return similarity / np.where(total == 0, 1, total)
# %% similarities-to-weights | wrong | small number added to the sum: rows of tiny similarities do not sum to 1
def my_weights(similarity):
    return similarity / (similarity.sum(axis=1, keepdims=True) + 1e-8)
# %% similarities-to-weights | wrong | a row of zeros gets uniform weights
def my_weights(similarity):
    total = similarity.sum(axis=1, keepdims=True)
    uniform = np.full_like(similarity, 1 / similarity.shape[1])
    return np.where(total == 0, uniform, similarity / np.where(total == 0, 1, total))
# %% similarities-to-weights | wrong | divides in place: the caller's similarities are changed
def my_weights(similarity):
    total = similarity.sum(axis=1, keepdims=True)
    total[total == 0] = 1
    similarity /= total
    return similarity
# %% similarities-to-weights | right | plain lists, row by row
def my_weights(similarity):
    rows = []
    for row in similarity.tolist():
        total = sum(row)
        rows.append([entry / total for entry in row] if total > 0 else [0.0 for _ in row])
    return np.array(rows, dtype=float).reshape(similarity.shape)
# %% similarities-to-weights | right | np.divide that leaves rows of zeros alone
def my_weights(similarity):
    total = np.broadcast_to(np.einsum("ij->i", similarity)[:, None], similarity.shape)
    return np.divide(similarity, total, out=np.zeros_like(similarity), where=total > 0)
# %% kernel-regression | wrong | a point at which a query stands is left out
def my_regression(query, x, y, h):
    distance = query[:, None] - x[None, :]
    s = np.where(distance == 0, 0.0, np.exp(-(distance**2) / (2 * h**2)))
    return s @ y / s.sum(axis=1)
# %% kernel-regression | wrong | only points within 3 h take part
def my_regression(query, x, y, h):
    distance = np.abs(query[:, None] - x[None, :])
    s = np.where(distance <= 3 * h, np.exp(-(distance**2) / (2 * h**2)), 0.0)
    return s @ y / s.sum(axis=1)
# %% kernel-regression | wrong | x sorted, y not
def my_regression(query, x, y, h):
    x = np.sort(x)
    s = np.exp(-((query[:, None] - x) ** 2) / (2 * h**2))
    return (s @ y) / s.sum(axis=-1)
# %% kernel-regression | wrong | estimates in the order of sorted queries
def my_regression(query, x, y, h):
    s = np.exp(-((np.sort(query)[:, None] - x) ** 2) / (2 * h * h))
    return (s * y).sum(axis=1) / s.sum(axis=1)
# %% kernel-regression | right | np.vectorize of a weighted average
def my_regression(query, x, y, h):
    estimate = lambda q: np.average(y, weights=np.exp(-0.5 * ((q - x) / h) ** 2))
    return np.vectorize(estimate, otypes=[float])(query)
# %% kernel-regression | right | softmax in torch, the square written out without the query's own part
import torch


def my_regression(query, x, y, h):
    q, keys, values = map(torch.tensor, (query, x, y))
    log_similarity = (torch.outer(q, keys) - keys.square() / 2) / h**2
    return torch.softmax(log_similarity, dim=1).mv(values)
# %% duplicated-pair | wrong | a copy thought to change nothing
my_answer = 42 / 6
# %% duplicated-pair | wrong | copy counted above only
my_answer = (1 * 0 + 2 * 9 + 2 * 9 + 3 * 8) / (1 + 2 + 3)
# %% duplicated-pair | wrong | plain mean of four values
my_answer = (0 + 9 + 9 + 8) / 4
# %% duplicated-pair | wrong | softmax of the similarities instead of their ratios
similarity = np.exp([1.0, 2.0, 2.0, 3.0])
my_answer = similarity @ np.array([0, 9, 9, 8]) / similarity.sum()
# %% duplicated-pair | right | library average
my_answer = np.average([0, 9, 8, 9], weights=[1, 2, 3, 2])
# %% duplicated-pair | right | old answer pulled towards 9
my_answer = 7 + (9 - 7) * 2 / (6 + 2)
# %% read-lookup-weights | wrong | outputs counted along the columns
my_reading = (5, 4, 0.8)
# %% read-lookup-weights | wrong | pair of the largest cell instead of the largest column sum
my_reading = (3, 3, 0.8)
# %% read-lookup-weights | wrong | pairs counted from 1
my_reading = (3, 5, 0.8)
# %% read-lookup-weights | wrong | mean of the two weights instead of their sum
my_reading = (3, 4, 0.4)
# %% read-lookup-weights | right | sum of the two weights left as an expression
my_reading = (3, 4, 0.6 + 0.2)
# %% read-lookup-weights | right | the matrix typed in and computed with
P = np.array([[10, 5, 5, 60, 20], [25, 10, 10, 15, 40], [5, 30, 30, 5, 30]]) / 100
my_reading = (len(P), int(P.sum(axis=0).argmax()), float((P @ [0, 0, 0, 1, 1])[0]))
# %% repair-lookup-roles | wrong | only the axis repaired: keys ask
def ask_everybody(x: np.ndarray, w_query: np.ndarray, w_key: np.ndarray, w_value: np.ndarray, beta: float) -> np.ndarray:
    query, key, value = x @ w_query, x @ w_key, x @ w_value
    similarity = np.exp(key @ query.T) ** beta
    weights = similarity / similarity.sum(axis=1, keepdims=True)
    return weights @ value
# %% repair-lookup-roles | wrong | roles right, sums run over the queries
def ask_everybody(x, w_query, w_key, w_value, beta):
    query, key, value = x @ w_query, x @ w_key, x @ w_value
    similarity = np.exp(beta * query @ key.T)
    weights = similarity / similarity.sum(axis=0, keepdims=True)
    return weights @ value
# %% repair-lookup-roles | wrong | repaired, but with a scale of 1/sqrt(d_k) nobody asked for
def ask_everybody(x, w_query, w_key, w_value, beta):
    query, key, value = x @ w_query, x @ w_key, x @ w_value
    similarity = np.exp(beta * query @ key.T / np.sqrt(w_query.shape[1]))
    return similarity / similarity.sum(axis=1, keepdims=True) @ value
# %% repair-lookup-roles | cheat | torch's ready-made attention under an assembled name (forbidden)
import torch


def ask_everybody(x, w_query, w_key, w_value, beta):
    name = "_".join(["scaled", "dot", "product", "attention"])
    query, key, value = (torch.from_numpy(x @ w)[None] for w in (w_query, w_key, w_value))
    return getattr(torch.nn.functional, name)(query, key, value, scale=beta)[0].numpy()
# %% repair-lookup-roles | right | table left with keys in rows, turned at the end
def ask_everybody(x: np.ndarray, w_query: np.ndarray, w_key: np.ndarray, w_value: np.ndarray, beta: float) -> np.ndarray:
    query, key, value = x @ w_query, x @ w_key, x @ w_value
    similarity = np.exp(key @ query.T) ** beta
    weights = similarity / similarity.sum(axis=0, keepdims=True)
    return weights.T @ value
# %% repair-lookup-roles | right | a class with __call__, one token after the other
class AskEverybody:
    def __call__(self, x, w_query, w_key, w_value, beta):
        keys, values = x @ w_key, x @ w_value
        return np.stack([self.one(token @ w_query, keys, values, beta) for token in x])

    @staticmethod
    def one(q, keys, values, beta):
        fits = [np.exp(beta * key.dot(q)) for key in keys]
        return sum(fit * value for fit, value in zip(fits, values)) / sum(fits)


ask_everybody = AskEverybody()
# %% hard-lookup | wrong | argmin: the first of several nearest keys takes all
def my_hard_lookup(query, key, value):
    distance = ((query[:, None] - key[None]) ** 2).sum(axis=-1)
    return value[distance.argmin(axis=1)]
# %% hard-lookup | wrong | ties found with isclose: nearly nearest keys are averaged too
def my_hard_lookup(query, key, value):
    distance = np.linalg.norm(query[:, None] - key[None], axis=-1)
    nearest = np.isclose(distance, distance.min(axis=1, keepdims=True))
    return nearest @ value / nearest.sum(axis=1, keepdims=True)
# %% hard-lookup | wrong | largest dot product instead of smallest distance
def my_hard_lookup(query, key, value):
    scores = query @ key.T
    nearest = scores == scores.max(axis=1, keepdims=True)
    return (nearest / nearest.sum(axis=1, keepdims=True)) @ value
# %% hard-lookup | wrong | no limit: a small but finite width of 0.05
def my_hard_lookup(query, key, value):
    distance = ((query[:, None] - key[None]) ** 2).sum(axis=-1)
    s = np.exp(-(distance - distance.min(axis=1, keepdims=True)) / (2 * 0.05**2))
    return s @ value / s.sum(axis=1, keepdims=True)
# %% hard-lookup | right | loops, a list of the nearest so far
def my_hard_lookup(query, key, value):
    rows = []
    for q in query:
        best, winners = float("inf"), []
        for k, v in zip(key, value):
            squared = sum((float(a) - float(b)) ** 2 for a, b in zip(q, k))
            if squared < best:
                best, winners = squared, [v]
            elif squared == best:
                winners.append(v)
        rows.append(np.mean(winners, axis=0))
    return np.array(rows)
# %% hard-lookup | right | torch: softmax of 0 and minus infinity
import torch


def my_hard_lookup(query, key, value):
    squared = (torch.tensor(query).unsqueeze(1) - torch.tensor(key).unsqueeze(0)).pow(2).sum(-1)
    cold = torch.where(squared > squared.amin(1, keepdim=True), -torch.inf, 0.0).double()
    return cold.softmax(1) @ torch.tensor(value)
# %% derivative-by-similarity | wrong | the denominator taken as a constant
my_gain = v_1 / (s_1 + s_2)
# %% derivative-by-similarity | wrong | the pair's own similarity in front instead of the other's
my_gain = s_1 * (v_1 - v_2) / (s_1 + s_2) ** 2
# %% derivative-by-similarity | wrong | denominator not squared
my_gain = s_2 * (v_1 - v_2) / (s_1 + s_2)
# %% derivative-by-similarity | wrong | left to SymPy as an unevaluated Derivative (does not count)
from sympy import Derivative as work_out

my_gain = work_out((s_1 * v_1 + s_2 * v_2) / (s_1 + s_2), s_1)
# %% derivative-by-similarity | right | distance of the value from the answer over the sum
answer = (s_1 * v_1 + s_2 * v_2) / (s_1 + s_2)
my_gain = (v_1 - answer) / (s_1 + s_2)
# %% derivative-by-similarity | right | weights p (1 - p) and negative powers
p = s_1 * (s_1 + s_2) ** -1
my_gain = p * (1 - p) * (v_1 - v_2) * s_1**-1
# %% feature-mixing-matrix | wrong | solved for it with a pseudo-inverse
def my_feature_weights(x, w_query, w_key, w_value):
    z = (x @ w_query) @ (x @ w_key).T @ (x @ w_value)
    return np.linalg.pinv(x) @ z
# %% feature-mixing-matrix | wrong | roles of the query and key maps exchanged
def my_feature_weights(x, w_query, w_key, w_value):
    return w_key @ w_query.T @ x.T @ x @ w_value
# %% feature-mixing-matrix | wrong | covariance instead of the Gram matrix: divided by the number of positions
def my_feature_weights(x, w_query, w_key, w_value):
    return w_query @ w_key.T @ (x.T @ x / len(x)) @ w_value
# %% feature-mixing-matrix | wrong | returns Z itself, not the matrix behind x
def my_feature_weights(x, w_query, w_key, w_value):
    return (x @ w_query) @ ((x @ w_key).T @ (x @ w_value))
# %% feature-mixing-matrix | right | keys and values summed position by position as outer products
def my_feature_weights(x, w_query, w_key, w_value):
    memory = sum(np.outer(token @ w_key, token @ w_value) for token in x)
    return w_query @ memory
# %% feature-mixing-matrix | right | one einsum over named axes
def my_feature_weights(x, w_query, w_key, w_value):
    return np.einsum("ac,bc,tb,td,de->ae", w_query, w_key, x, x, w_value, optimize=True)

# %% weight-between-two | wrong | what is left, shared equally by the five other words
my_weight = (1 - because - the) / 5
# %% taken-home-by-hand | right | the honest way, with logarithm and exp
query = np.log(base) * np.array(asked)
powers = [np.exp(query @ np.array(k) / 2) for k in ((0, 0, 1, 0), (2, 0, 0, 2), (0, 2, 0, -2), (0, 0, 0, 0))]
w = [p / sum(powers) for p in powers]
my_home = [2 * w[1], 2 * w[2], 2 * w[1] - w[0]]
# %% taken-home-by-hand | right | fractions
from fractions import Fraction

my_home = tuple(float(Fraction(n, 8)) for n in (8, 2, 7))
# %% what-cat-hands-over | right | a linear equation solved
table = np.eye(3) * weights[1]
my_value = np.linalg.solve(table, np.array(wanted) - np.array(weights)[[0, 2, 3]] @ np.array([[0, 0, -1], [0, 2, 0], [1, 2, 1]]))
# %% repair-taking-home | wrong | squeezed, so that a length of 1 loses its axis
def take_home(query, key, value):
    powers = np.exp(query @ key.T / np.sqrt(query.shape[1]))
    return np.squeeze(powers / powers.sum(axis=1, keepdims=True) @ value)
# %% repair-taking-home | wrong | scales the caller's query
def take_home(query, key, value):
    query /= np.sqrt(query.shape[1])
    powers = np.exp(query @ key.T)
    return powers / powers.sum(axis=1, keepdims=True) @ value
# %% share-for-sat | right | halving an interval
low, high = 0.0, 50.0
for _ in range(100):
    middle = (low + high) / 2
    power = np.exp(2 * middle)
    low, high = (middle, high) if power / (power + words - 1) < share else (low, middle)
my_c = low
# %% key-in-the-middle | right | measured with a large query
keys = np.vstack([corners * np.eye(corners), np.ones((eggs, corners)), np.zeros((3, corners))])
scores = keys @ np.full(corners, 20.0) / np.sqrt(corners)
powers = np.exp(scores - scores.max())
my_bound = powers[corners] / powers.sum()
# %% key-in-the-middle | right | as a fraction
from fractions import Fraction

my_bound = float(Fraction(1, corners + eggs))

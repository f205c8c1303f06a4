# %% weight-between-two | wrong | straight line through the two weights
my_weight = because - 2 * (because - the)
# %% weight-between-two | wrong | what is left, shared equally by the five other words
my_weight = (1 - because - the) / 5
# %% weight-between-two | wrong | e to twice the weight
my_weight = np.exp(2 * the) / (np.exp(because) + np.exp(the) + np.exp(2 * the))
# %% weight-between-two | wrong | rounded to one digit
my_weight = round(the**2 / because, 1)
# %% weight-between-two | right | by logarithms, step for step
my_weight = np.exp(np.log(the) + (np.log(the) - np.log(because)))
# %% weight-between-two | right | the same factor once more
my_weight = (the / because) * the
# %% taken-home-by-hand | wrong | softmax of the list times base instead of the logarithm
raw = np.array([[0, 0, 1, 0], [2, 0, 0, 2], [0, 2, 0, -2], [0, 0, 0, 0]]) @ np.array(asked) * base / 2
my_home = np.exp(raw) / np.exp(raw).sum() @ np.array([[0, 0, -1], [2, 0, 2], [0, 2, 0], [0, 0, 0]])
# %% taken-home-by-hand | wrong | the weights instead of what is taken home
my_home = (1 / 8, 1 / 2, 1 / 8, 1 / 4)
# %% taken-home-by-hand | wrong | average of the keys
weights = base ** (np.array([[0, 0, 1, 0], [2, 0, 0, 2], [0, 2, 0, -2], [0, 0, 0, 0]]) @ np.array(asked) / 2)
my_home = (weights / weights.sum() @ np.array([[0, 0, 1, 0], [2, 0, 0, 2], [0, 2, 0, -2], [0, 0, 0, 0]]))[:3]
# %% taken-home-by-hand | wrong | only the winner counts
my_home = (2, 0, 2)
# %% taken-home-by-hand | right | the honest way, with logarithm and exp
query = np.log(base) * np.array(asked)
powers = [np.exp(query @ np.array(k) / 2) for k in ((0, 0, 1, 0), (2, 0, 0, 2), (0, 2, 0, -2), (0, 0, 0, 0))]
w = [p / sum(powers) for p in powers]
my_home = [2 * w[1], 2 * w[2], 2 * w[1] - w[0]]
# %% taken-home-by-hand | right | fractions
from fractions import Fraction

my_home = tuple(float(Fraction(n, 8)) for n in (8, 2, 7))
# %% what-cat-hands-over | wrong | the wanted numbers themselves
my_value = wanted
# %% what-cat-hands-over | wrong | the value that cat has in the lesson
my_value = (2, 0, 2)
# %% what-cat-hands-over | wrong | divided by the wrong weight, that of the
my_value = (np.array(wanted) - weights[2] * np.array([0, 2, 0]) - weights[3] * np.array([1, 2, 1]) + weights[0] * np.array([0, 0, 1])) / weights[0]
# %% what-cat-hands-over | wrong | minus of the value of the lost
my_value = (np.array(wanted) - weights[0] * np.array([0, 0, 1]) - weights[2] * np.array([0, 2, 0]) - weights[3] * np.array([1, 2, 1])) / weights[1]
# %% what-cat-hands-over | right | a linear equation solved
table = np.eye(3) * weights[1]
my_value = np.linalg.solve(table, np.array(wanted) - np.array(weights)[[0, 2, 3]] @ np.array([[0, 0, -1], [0, 2, 0], [1, 2, 1]]))
# %% what-cat-hands-over | right | number by number in plain Python
p_the, p_cat, p_sat, p_tired = weights
my_value = [(wanted[0] - p_tired) / p_cat, (wanted[1] - 2 * p_sat - 2 * p_tired) / p_cat, (wanted[2] + p_the - p_tired) / p_cat]
# %% repair-taking-home | wrong | row sums without keepdims
def take_home(query, key, value):
    powers = np.exp(query @ key.T / np.sqrt(query.shape[1]))
    return powers / powers.sum(axis=1) @ value
# %% repair-taking-home | wrong | scale from the number of queries
def take_home(query, key, value):
    powers = np.exp(query @ key.T / np.sqrt(query.shape[0]))
    return powers / powers.sum(axis=1, keepdims=True) @ value
# %% repair-taking-home | wrong | squeezed, so that a length of 1 loses its axis
def take_home(query, key, value):
    powers = np.exp(query @ key.T / np.sqrt(query.shape[1]))
    return np.squeeze(powers / powers.sum(axis=1, keepdims=True) @ value)
# %% repair-taking-home | wrong | divided by the largest power
def take_home(query, key, value):
    powers = np.exp(query @ key.T / np.sqrt(query.shape[1]))
    return powers / powers.max(axis=1, keepdims=True) @ value
# %% repair-taking-home | wrong | scales the caller's query
def take_home(query, key, value):
    query /= np.sqrt(query.shape[1])
    powers = np.exp(query @ key.T)
    return powers / powers.sum(axis=1, keepdims=True) @ value
# %% repair-taking-home | right | word by word, with np.average
def take_home(query, key, value):
    return np.array([np.average(value, axis=0, weights=np.exp(key @ asks / len(asks) ** 0.5)) for asks in query])
# %% repair-taking-home | right | keys in rows inside, turned at the end
def take_home(query, key, value):
    powers = np.exp(key @ query.T / np.sqrt(key.shape[1]))
    return (value.T @ (powers / powers.sum(axis=0))).T
# %% share-for-sat | wrong | half of sat's share for each other word
my_c = np.log(share / (1 - share)) / 4
# %% share-for-sat | wrong | divisor 4 instead of its root
my_c = np.log((words - 1) * share / (1 - share))
# %% share-for-sat | wrong | the logarithm of the lead forgotten
my_c = (words - 1) * share / (1 - share) / 2
# %% share-for-sat | wrong | the smallest whole number that is enough
my_c = np.ceil(np.log((words - 1) * share / (1 - share)) / 2)
# %% share-for-sat | wrong | cat left out of the others
my_c = np.log((words - 2) * share / (1 - share)) / 2
# %% share-for-sat | right | halving an interval
low, high = 0.0, 50.0
for _ in range(100):
    middle = (low + high) / 2
    power = np.exp(2 * middle)
    low, high = (middle, high) if power / (power + words - 1) < share else (low, middle)
my_c = low
# %% share-for-sat | right | logarithms of each factor
my_c = 0.5 * (np.log(words - 1) + np.log(share) - np.log1p(-share))
# %% key-in-the-middle | wrong | the share of all eggs together
my_bound = eggs / (corners + eggs)
# %% key-in-the-middle | wrong | a query of zeros, with one egg
my_bound = 1 / (corners + 1 + 3)
# %% key-in-the-middle | wrong | all that is not the eggs is halved
my_bound = 1 / (2 * eggs)
# %% key-in-the-middle | right | measured with a large query
keys = np.vstack([corners * np.eye(corners), np.ones((eggs, corners)), np.zeros((3, corners))])
scores = keys @ np.full(corners, 20.0) / np.sqrt(corners)
powers = np.exp(scores - scores.max())
my_bound = powers[corners] / powers.sum()
# %% key-in-the-middle | right | as a fraction
from fractions import Fraction

my_bound = float(Fraction(1, corners + eggs))

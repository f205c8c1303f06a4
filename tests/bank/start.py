# %% weight-between-two | wrong | what is left, shared equally by the five other words
my_weight = (1 - because - the) / 5
# %% repair-taking-home | wrong | squeezed, so that a length of 1 loses its axis
def take_home(query, key, value):
    powers = np.exp(query @ key.T / np.sqrt(query.shape[1]))
    return np.squeeze(powers / powers.sum(axis=1, keepdims=True) @ value)

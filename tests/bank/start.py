# %% weight-between-two | wrong | mean of the two weights, as if weights were scores
my_weight = (0.36 + 0.09) / 2
# %% weight-between-two | wrong | what is left, shared equally by the five other words
my_weight = (1 - 0.36 - 0.09) / 5
# %% weight-between-two | wrong | rounded to one digit
my_weight = 0.2
# %% weight-between-two | right | mean of the logarithms
my_weight = np.exp((np.log(0.36) + np.log(0.09)) / 2)

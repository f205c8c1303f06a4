"""What the tests of several experiments share."""

import torch


def generator(seed=5):
    return torch.Generator().manual_seed(seed)

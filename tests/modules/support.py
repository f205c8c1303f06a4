"""What the tests of the layers share: random tensors, and gradients by finite differences."""

import numpy as np
import torch


def arrays(*shapes):
    rng = np.random.default_rng(7)
    return [rng.normal(size=shape) for shape in shapes]


def tensors(*parts):
    return [torch.from_numpy(part) for part in parts]


def normal(*shape, seed=7):
    return torch.from_numpy(np.random.default_rng(seed).normal(size=shape))


def assert_close(got, wanted, tolerance=1e-12):
    torch.testing.assert_close(got, wanted, rtol=0, atol=tolerance)


def gradients_are_right(made, *inputs, **call):
    """Compare the gradients of the first output, for every input and parameter, with finite differences along one random direction."""
    names, parameters = zip(*made.named_parameters(), strict=True)

    def function(*values):
        given, own = values[: len(inputs)], values[len(inputs) :]
        output = torch.func.functional_call(made, dict(zip(names, own, strict=True)), given, call)
        return output[0] if isinstance(output, tuple) else output

    leaves = [part.detach().clone().requires_grad_() for part in (*inputs, *parameters)]
    return torch.autograd.gradcheck(function, leaves)

"""Put an answer that is a torch module to a case: construct it, load its parameters, call it, and take gradients.

Like `run`, this file knows no right answer and imports nothing of the course but `forms`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from attn_course.tasks.forms import AnswerError, as_arrays, named


@dataclass(frozen=True)
class ModuleCall:
    """Which inputs of a case construct the module, fill it, go into it, and come back as gradients.

    `construct`: inputs that are passed to the class, by keyword.
    `inputs`: arrays that are passed to the module, by position.
    `state`: the input that holds the parameters: a dict of arrays under the names that the module must give them.
    `d_output`: the input that holds the gradient of a loss with respect to the output (of several outputs, to the
    first). With it, the gradients with respect to the floating inputs and to the parameters are judged too, in this
    order.
    """

    construct: Sequence[str]
    inputs: Sequence[str]
    state: str = "state"
    d_output: str | None = None

    def names(self, case: Mapping[str, Any], count: int) -> list[str]:
        """Return what each of the `count` results is called."""
        gradients = []
        if self.d_output:
            gradients = [f"the gradient of {name}" for name in (*_floating(case, self.inputs), *case[self.state])]
        outputs = count - len(gradients)
        return [*(["the output"] if outputs == 1 else [f"output {n}" for n in range(outputs)]), *gradients]


def call_module(answer: Any, case: Mapping[str, Any], entry: str, how: ModuleCall) -> tuple[np.ndarray, ...]:
    """Return the outputs of a module and its gradients as plain arrays.

    `how`: what is done with the inputs. The module computes in the dtype of its parameters' arrays, in evaluation mode.

    Returns `arrays`: outputs, then gradients; the gradient of what the output does not depend on is zero.

    Raises AnswerError if the class is no module, its parameters are other ones, or the output is cut off from them.
    """
    import torch

    if not (isinstance(answer, type) and issubclass(answer, torch.nn.Module)):
        raise AnswerError(f"{entry} must be a class derived from torch.nn.Module; got {named(answer)}")
    module = answer(**{name: case[name] for name in how.construct})
    parameters = _load(module, case[how.state], entry)
    tensors = [torch.tensor(case[name]) if isinstance(case[name], np.ndarray) else case[name] for name in how.inputs]
    floating = [tensors[list(how.inputs).index(name)].requires_grad_(how.d_output is not None) for name in _floating(case, how.inputs)]
    returned = module(*tensors)
    arrays = as_arrays(returned, entry)
    if how.d_output is None:
        return arrays
    output = returned[0] if isinstance(returned, (list, tuple)) else returned
    d_output = torch.as_tensor(np.asarray(case[how.d_output]))
    if not isinstance(output, torch.Tensor) or not output.requires_grad:
        raise AnswerError(f"{entry} returns a result without gradients: does it leave torch, or detach?")
    if output.shape != d_output.shape:
        raise AnswerError(f"{entry} must return an output of shape {tuple(d_output.shape)}; got {tuple(output.shape)}")
    leaves = [*floating, *parameters]
    gradients = torch.autograd.grad(output, leaves, d_output.to(output.dtype), allow_unused=True)
    zeroed = [torch.zeros_like(leaf) if gradient is None else gradient for leaf, gradient in zip(leaves, gradients, strict=True)]
    return (*arrays, *(gradient.detach().numpy().copy() for gradient in zeroed))


def _load(module: Any, state: Mapping[str, np.ndarray], entry: str) -> list[Any]:
    """Fill the parameters with these arrays, and return them in the arrays' order."""
    import torch

    own = dict(module.named_parameters())
    if set(own) != set(state):
        missing, strange = sorted(set(state) - set(own)), sorted(set(own) - set(state))
        parts = [f"{word} {', '.join(names)}" for word, names in (("lacks", missing), ("has also", strange)) if names]
        raise AnswerError(f"{entry} must have the parameters {', '.join(state)}; it {' and '.join(parts)}")
    for name, array in state.items():
        if tuple(own[name].shape) != array.shape:
            raise AnswerError(f"the parameter {name} of {entry} must have shape {array.shape}; got {tuple(own[name].shape)}")
    module.eval()
    module.to(torch.as_tensor(next(iter(state.values()))).dtype if state else torch.get_default_dtype())
    filled = dict(module.named_parameters())  # Module.to may put others in their place
    with torch.no_grad():
        for name, array in state.items():
            filled[name].copy_(torch.as_tensor(array))
    return [filled[name].requires_grad_() for name in state]


def _floating(case: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    return [name for name in names if isinstance(case[name], np.ndarray) and case[name].dtype.kind == "f"]

"""Library calls that several chapters forbid."""

AUTOGRAD_CALLS = (  # whatever differentiates in torch
    ".backward",
    "torch.autograd.grad",
    "torch.autograd.functional.*",
    "torch.autograd.forward_ad.*",
    "torch.func.grad",
    "torch.func.grad_and_value",
    "torch.func.jacrev",
    "torch.func.jacfwd",
    "torch.func.vjp",
    "torch.func.jvp",
    "torch.func.linearize",
    "torch.func.hessian",
)

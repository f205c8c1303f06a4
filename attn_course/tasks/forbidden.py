"""Library calls that several chapters forbid."""

SOFTMAX_CALLS = (  # whatever takes a softmax or its logarithm
    ".softmax",
    ".log_softmax",
    ".logsumexp",
    "torch.nn.Softmax",
    "torch.nn.functional.softmax",
    "torch.nn.functional.log_softmax",
    "torch.nn.functional.softmin",
    "torch.nn.Softmin",
    "torch.special.softmax",
    "torch.special.log_softmax",
    "torch.special.logsumexp",
    "torch.softmax",
    "torch.logsumexp",
    "scipy.special.softmax",
    "scipy.special.log_softmax",
    "scipy.special.logsumexp",
)
ATTENTION_CALLS = (  # whatever attends
    ".scaled_dot_product_attention",
    "torch.nn.functional.scaled_dot_product_attention",
    "torch.nn.functional.multi_head_attention_forward",
    "torch.nn.MultiheadAttention",
)
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

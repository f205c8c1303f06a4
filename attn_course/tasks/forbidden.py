"""What tasks forbid: one concept each, as a learner reads it on the task's card and as both engines look for it.

A rule is one of these:

- "torch.nn.Softmax", a function or class by its dotted name; "torch.autograd.functional.*", all that a package defines;
- ".softmax", a method of that name, and what has that name in one of the PLACES;
- "aten::_softmax", operators of torch whose names begin so, and its functions of that name: a class's marks look for what torch
  runs in the end, whatever it is called by;
- THREADS and UNLAUNCHED, see there.

This file imports nothing of the course, so that a confined worker can load it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

PLACES = (  # where functions and methods of a forbidden name stand
    *("torch.Tensor", "torch", "torch.nn.functional", "torch.special", "torch.autograd", "scipy.special", "scipy.special._logsumexp"),
    *("sympy", "sympy.Basic", "sympy.Expr", "sympy.Symbol", "sympy.MatrixBase", "sympy.Poly", "sympy.NDimArray"),
    "sympy.polys.rings.PolyElement",
)
LIBRARIES = frozenset(place.partition(".")[0] for place in PLACES)
THREADS = "threads"  # of one's own, in which nothing watches over torch
THREADING = ("threading.", "_thread.", "concurrent.futures.", "multiprocessing.")
UNLAUNCHED = "unlaunched"  # a result for which no Triton kernel was launched
WATCHED = "aten::"


@dataclass(frozen=True)
class Forbidden:
    """One thing that a task forbids: `words` stand on its card, after "Not allowed:"."""

    words: str
    rules: tuple[str, ...]


def _each(beginning: str, names: str) -> Iterator[str]:
    return (beginning + name for name in names.split())


_FUSED = (
    *_each(WATCHED, "_scaled_dot_product scaled_dot_product _safe_softmax _flash_attention _efficient_attention"),
    *_each(WATCHED, "_native_multi_head _transformer_encoder"),
)
SOFTMAX = Forbidden(
    "a library's softmax or log-sum-exp (`np.logaddexp` is neither)",
    (
        *_each(".", "softmax log_softmax softmin logsumexp logcumsumexp"),
        *_each("torch.nn.", "Softmax LogSoftmax Softmin"),
        *_each(WATCHED, "_softmax _log_softmax _sparse_softmax _sparse_log_softmax _masked_softmax logsumexp logcumsumexp _logcumsumexp"),
        *_FUSED,
    ),
)
ATTENTION = Forbidden(
    "a library's attention",
    (".scaled_dot_product_attention", ".multi_head_attention_forward", "torch.nn.MultiheadAttention", *_FUSED),
)
AUTOGRAD = Forbidden(
    "automatic differentiation",
    (
        ".backward",
        *_each("torch.autograd.", "grad functional.* forward_ad.*"),
        *_each("torch.func.", "grad grad_and_value jacrev jacfwd vjp jvp linearize hessian"),
        *_each(WATCHED, "_softmax_backward_data _log_softmax_backward_data"),
    ),
)
COSINE = Forbidden(
    "a library's cosine similarity",
    (
        *_each(".", "cosine_similarity cosine_embedding_loss"),
        *("torch.nn.CosineSimilarity", "torch.nn.CosineEmbeddingLoss", "scipy.spatial.*", "sklearn.*"),
        *_each(WATCHED, "cosine_similarity cosine_embedding_loss"),
    ),
)
LOSSES = Forbidden(
    "a library's loss",
    (
        *_each(".", "cross_entropy nll_loss"),
        *_each("torch.nn.", "CrossEntropyLoss NLLLoss"),
        *_each(WATCHED, "cross_entropy_loss nll_loss"),
    ),
)
JOINING = Forbidden(
    "joining the blocks (`np.concatenate`, `torch.cat` and their kin)",
    (
        *_each("numpy.", "concatenate concat vstack hstack row_stack append block r_ c_"),
        *_each("torch.", "cat concat concatenate vstack hstack row_stack"),
        "aten::cat",
    ),
)
EXPONENTIALS = Forbidden(
    "exponentials outside the kernel",
    (
        *_each("numpy.", "exp exp2 expm1 logaddexp logaddexp2 power float_power"),
        *_each("math.", "exp exp2 expm1 pow"),
        *_each(".", "exp exp2 expm1 logaddexp logaddexp2 pow"),
        "torch.nn.functional.*",
    ),
)
KERNEL_LAUNCHED = Forbidden("a result for which no kernel was launched", (UNLAUNCHED,))
CALCULUS = Forbidden(  # the roads around it too: a derivative is a residue
    "what SymPy derives (`diff`, `Derivative`, `limit`, `series` and their kin); its `solve` and `simplify` are welcome",
    (
        *_each(".", "diff fdiff _eval_derivative jacobian differentiate_finite as_finite_difference integrate limit"),
        *_each(".", "leadterm as_leading_term compute_leading_term taylor_term series nseries lseries aseries fps"),
        *_each("sympy.", "Derivative finite_diff_weights apply_finite_diff derive_by_array idiff hessian wronskian euler_equations"),
        *_each("sympy.", "Integral Limit gruntz residue vector.*"),
    ),
)
NO_THREADS = Forbidden("threads", (THREADS,))


def all_forbidden(forbid: tuple[Forbidden, ...], *, derive: bool) -> tuple[Forbidden, ...]:
    """Return what a task forbids and what follows from it: no calculus where one is to derive, no threads where torch is watched."""
    found = (*forbid, *([CALCULUS] if derive else []))
    return (*found, NO_THREADS) if any(rule.startswith(WATCHED) for each in found for rule in each.rules) else found

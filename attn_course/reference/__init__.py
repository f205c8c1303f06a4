"""The formulas of the course in NumPy: clarity first, defined in every corner.

Arrays are ``(..., len, features)``; leading axes broadcast; rows are positions. Imported eagerly, so that
``from attn_course.reference import softmax`` is always the function and never a module of that name.
"""

from attn_course.reference.softmax import logsumexp, softmax, softmax_jacobian, softmax_vjp

__all__ = ["logsumexp", "softmax", "softmax_jacobian", "softmax_vjp"]

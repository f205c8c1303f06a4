"""Triton's interpreter, less what it does again and again.

For each call of a function within a kernel it looks through the whole language for what the launch of the kernel has put in its place
already, and for each number it makes the table of dtypes anew: a third of the time of the tests of this room.
"""

import contextlib
import functools
from typing import Any

with contextlib.suppress(ImportError):  # there may be no Triton
    import triton.language as tl
    from triton.runtime import interpreter

    in_place: set[Any] = set()  # modules of the language

    def quick(patch, restore):
        """What puts the language in its place, and what takes it away again at the end of a launch."""
        seen: dict[Any, set[Any]] = {}

        def patch_once(function):
            if function not in seen:
                seen[function] = {each for each in function.__globals__.values() if each is tl or each is tl.core}
            if seen[function] and seen[function] <= in_place:
                return interpreter._LangPatchScope()
            in_place.update(seen[function])
            return patch(function)

        def restore_all(scope):
            restore(scope)
            in_place.clear()

        return patch_once, restore_all

    def quick_dtype(dtype_of):
        """NumPy's dtype of a number of Triton; other types than plain numbers have no hash."""
        known = functools.cache(dtype_of)

        def dtype(kind):
            scalar = kind.element_ty if isinstance(kind, tl.block_type) else kind
            return dtype_of(scalar) if isinstance(scalar, tl.pointer_type) else known(scalar)

        return dtype

    if hasattr(interpreter, "_LangPatchScope"):
        interpreter._patch_lang, interpreter._LangPatchScope.restore = quick(interpreter._patch_lang, interpreter._LangPatchScope.restore)
        interpreter._get_np_dtype = quick_dtype(interpreter._get_np_dtype)

"""Triton's interpreter, less what it does again and again.

For each call of a function within a kernel it looks through the whole language for what the launch of the kernel has put in its place
already; for each number it makes the table of dtypes anew, and for each tile the type of tiles of its shape; for each sum of integers
it computes whether they overflow, and looks at the answer only when it debugs. That was two thirds of the time of the tests of this room.
"""

import contextlib
import dataclasses
import functools
from typing import Any

import pytest

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

    def quick_tiles(begin_type, begin_tile):
        """Types of tiles, and the tiles themselves, take what others of the same shape hold; nobody changes it."""
        types: dict[Any, dict[str, Any]] = {}
        tiles: dict[Any, dict[str, Any]] = {}

        def of_type(self, element_ty, shape):
            sizes = shape.values if isinstance(shape, tl.tuple) else shape
            key = (element_ty.name, *(size.value if isinstance(size, tl.constexpr) else size for size in sizes))
            if type(element_ty) is not tl.dtype:  # a pointer has more than a name
                begin_type(self, element_ty, shape)
            elif known := types.get(key):
                vars(self).update(known)
            else:
                begin_type(self, element_ty, shape)
                types[key] = dict(vars(self))

        def of_tile(self, handle, kind):
            key = tuple(kind.shape.values) if kind.is_block() else ()
            if known := tiles.get(key):
                vars(self).update(known, handle=handle, type=kind, dtype=kind.scalar)
            else:
                begin_tile(self, handle, kind)
                tiles[key] = {name: value for name, value in vars(self).items() if name in ("numel", "shape")}

        return of_type, of_tile

    if hasattr(interpreter, "_LangPatchScope"):
        interpreter._patch_lang, interpreter._LangPatchScope.restore = quick(interpreter._patch_lang, interpreter._LangPatchScope.restore)
        interpreter._get_np_dtype = quick_dtype(interpreter._get_np_dtype)
        builder = interpreter.interpreter_builder
        builder.options = dataclasses.replace(builder.options, sanitize_overflow=builder.options.debug)
        tl.block_type.__init__, tl.tensor.__init__ = quick_tiles(tl.block_type.__init__, tl.tensor.__init__)


@pytest.fixture
def watch(monkeypatch):
    """Tell the arguments of each launch of a kernel, which is named within its module."""

    def begin(module, name, tell):
        kernel = getattr(module, name)

        class Spy:
            def __getitem__(self, grid):
                return lambda *arguments, **constants: (tell(arguments), kernel[grid](*arguments, **constants))

        monkeypatch.setattr(module, name, Spy())

    return begin

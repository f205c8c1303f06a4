"""Tasks as they are handed out: nobody reads an answer in passing, and the check still knows it."""

import base64
import linecache
import textwrap
import zlib
from typing import Any

PACKED = '''"""The tasks of this lesson; what answers them is packed."""

from attn_course.tasks.packed import unpack

unpack(globals(), """
{}
""")
'''


def pack(source: str) -> str:
    """Return a module that does what this one does, and in which nothing of it can be read."""
    return PACKED.format("\n".join(textwrap.wrap(base64.b64encode(zlib.compress(source.encode(), 9)).decode(), 120)))


def unpack(names: dict[str, Any], packed: str) -> None:
    """Fill a module with what was packed."""
    source, file = zlib.decompress(base64.b64decode(packed)).decode(), f"<{names['__name__']}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    exec(compile(source, file, "exec"), names)  # our own tasks

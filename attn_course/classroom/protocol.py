"""Frames between the grader and a worker: plain values and arrays as dtype, shape and raw bytes; never pickle.

A frame is two lengths, a header in JSON, and the bytes of its arrays one after the other. What comes from a worker may be
forged by the code that runs there, so `decode` takes nothing on trust: sizes, dtypes, shapes and depth are checked before an
array is made, and a forged frame can hold nothing but arrays and text.
"""

import json
import math
import struct
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

LENGTHS = struct.Struct(">IQ")  # of the header, of the body
MAX_HEADER_BYTES = 8 * 2**20
MAX_BODY_BYTES = 64 * 2**20
MAX_REPLY_HEADER_BYTES = 2**18
MAX_DEPTH = 8
MAX_AXES = 16
_DTYPES = {
    dtype.name: dtype
    for dtype in map(np.dtype, ("?", "b", "h", "i", "l", "q", "B", "H", "I", "L", "Q", "float16", "float32", "float64", "longdouble"))
}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}  # NumPy makes a name anew each time


class ProtocolError(ValueError):
    """A frame is not of the agreed form; the text says in what."""


def encode(message: Mapping[str, Any]) -> bytes:
    """Return a message as a frame.

    `message`: names to None, bools, numbers, text, arrays of plain numbers, and lists, tuples and dicts of these. Returns
    lengths, header and body. Raises TypeError if a value is of another type.
    """
    body: list[bytes] = []
    header = json.dumps({name: _pack(value, body) for name, value in message.items()}).encode()
    return b"".join([LENGTHS.pack(len(header), sum(map(len, body))), header, *body])


def is_last(reply: Mapping[str, Any]) -> bool:
    """Whether a reply to a call is the last about its task, whose other cases are not put to it then."""
    texts = (reply.get("refused"), reply.get("problem"))
    return reply.get("undefined") is True or any(isinstance(text, str) and text for text in texts)


def lengths(start: bytes, *, max_header: int = MAX_HEADER_BYTES) -> tuple[int, int]:
    """Return the lengths of header and body from the first bytes of a frame; ProtocolError if they are too large."""
    header, body = LENGTHS.unpack(start)
    if header > max_header or body > MAX_BODY_BYTES:
        raise ProtocolError(f"a frame may hold {max_header} and {MAX_BODY_BYTES} bytes; it claims {header} and {body}")
    return header, body


def receive(read: Callable[[int], bytes], *, max_header: int = MAX_HEADER_BYTES) -> dict[str, Any]:
    """Return the next message of a line, of which `read` takes so many bytes; ProtocolError if it is not of the agreed form."""
    header, body = lengths(read(LENGTHS.size), max_header=max_header)
    return decode(read(header), read(body))


def decode(header: bytes, body: bytes) -> dict[str, Any]:
    """Return the message of a frame.

    `header`, `body`: as they came. It is as it was given to `encode`; arrays are fresh and writable. Raises ProtocolError if the
    frame is not of the agreed form.
    """
    try:
        packed = json.loads(header)
    except (ValueError, RecursionError):
        raise ProtocolError("the header of a frame must be JSON") from None
    if not isinstance(packed, dict):
        raise ProtocolError("the header of a frame must be a JSON object")
    rest = _Body(body)
    message = {name: _unpack(value, rest, 0) for name, value in packed.items()}
    if rest.at != len(body):
        raise ProtocolError(f"{len(body) - rest.at} bytes of a frame belong to no array")
    return message


def _pack(value: Any, body: list[bytes]) -> Any:
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, np.generic):
        return {"scalar": _pack(np.asarray(value), body)}
    if isinstance(value, np.ndarray):
        name = _NAMES.get(value.dtype) or value.dtype.name
        if name not in _DTYPES:
            raise TypeError(f"arrays in a frame must be of plain numbers; got dtype {value.dtype}")
        body.append(np.asarray(value, dtype=_DTYPES[name], order="C").tobytes())
        return {"array": [name, list(value.shape)]}
    if isinstance(value, (list, tuple)):
        return {type(value).__name__: [_pack(item, body) for item in value]}
    if isinstance(value, Mapping):
        return {"dict": [[str(key), _pack(item, body)] for key, item in value.items()]}
    raise TypeError(f"a frame holds plain values and arrays; got {type(value).__name__}")


class _Body:
    """The bytes of a frame's arrays, taken off one after the other."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, count: int) -> bytes:
        if count > len(self.data) - self.at:
            raise ProtocolError("a frame holds fewer bytes than its arrays need")
        self.at += count
        return self.data[self.at - count : self.at]


def _unpack(packed: Any, body: _Body, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise ProtocolError(f"values in a frame are nested {MAX_DEPTH} deep at most")
    if not isinstance(packed, (dict, list)):
        return packed
    if not isinstance(packed, dict) or len(packed) != 1:
        raise ProtocolError("a value in a frame must carry one tag")
    ((tag, inside),) = packed.items()
    if tag == "array":
        return _array(inside, body)
    if tag == "scalar":
        array = _unpack(inside, body, depth + 1)
        if not isinstance(array, np.ndarray) or array.shape:
            raise ProtocolError("a scalar in a frame must be an array without axes")
        return array[()]
    if not isinstance(inside, list) or tag not in ("list", "tuple", "dict"):
        raise ProtocolError(f"no value in a frame has the tag {tag!r:.20}")
    if tag == "dict":
        if not all(isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str) for pair in inside):
            raise ProtocolError("a dict in a frame must be a list of pairs")
        return {name: _unpack(item, body, depth + 1) for name, item in inside}
    items = [_unpack(item, body, depth + 1) for item in inside]
    return tuple(items) if tag == "tuple" else items


def _array(form: Any, body: _Body) -> np.ndarray:
    if not isinstance(form, list) or len(form) != 2 or not isinstance(form[0], str) or form[0] not in _DTYPES:
        raise ProtocolError("an array in a frame must have a dtype of plain numbers")
    dtype, shape = _DTYPES[form[0]], form[1]
    if not isinstance(shape, list) or len(shape) > MAX_AXES or not all(type(n) is int and 0 <= n < 2**40 for n in shape):
        raise ProtocolError(f"an array in a frame must have up to {MAX_AXES} axes of whole lengths")
    data = body.take(math.prod(shape) * dtype.itemsize)
    try:
        return np.frombuffer(data, dtype).reshape(shape).copy()
    except ValueError:  # no bytes, and more elements than a machine can count
        raise ProtocolError("an array in a frame must have a shape that NumPy takes") from None

"""Frames: what goes in comes out; what is forged is refused before an array is made of it."""

import io
import json
from dataclasses import asdict

import numpy as np
import pytest

from attn_course.classroom import protocol
from attn_course.classroom.protocol import LENGTHS, ProtocolError, decode, encode, receive
from attn_course.tasks.run import Call


def through(message):
    return receive(io.BytesIO(encode(message)).read)


@pytest.mark.parametrize(
    "array",
    [
        *(np.arange(6.0).reshape(2, 3).T, np.float32([1.5, np.nan, np.inf, -0.0]), np.array(2.5), np.zeros((3, 0, 2))),
        *(np.array([True, False]), np.arange(5), np.arange(3, dtype=">f8"), np.longdouble([0.1])),
    ],
    ids=lambda array: f"{array.dtype.str}{array.shape}",
)
def test_an_array_comes_back_bit_for_bit_and_writable(array):
    back = through({"x": array})["x"]
    assert (back.shape, back.dtype.name) == (array.shape, array.dtype.name)
    np.testing.assert_array_equal(back, array)
    np.testing.assert_array_equal(np.signbit(back), np.signbit(array))
    assert back.flags.writeable


def test_how_a_task_is_called_comes_back_as_it_was():
    how = Call("Twice", "write", ("s_i",), ["exp"], ["torch.nn.Linear"])
    for call in (how, Call("my_n", "predict")):
        assert Call(**through(asdict(call))) == call


def test_plain_values_keep_their_types():
    message = {"a": None, "b": True, "c": 7, "d": -1.5e-300, "e": "π", "f": (1, [2.0, {"g": (np.float64(3.0),)}])}
    back = through(message)
    assert back == message
    assert repr(back) == repr(message)


@pytest.mark.parametrize("value", [object(), np.array([object()]), np.array(["text"]), 1j, b"bytes", {1, 2}])
def test_nothing_else_can_be_sent(value):
    with pytest.raises(TypeError):
        encode({"x": value})


@pytest.mark.parametrize(
    ("header", "body", "words"),
    [
        (b"{", b"", "must be JSON"),
        (b"[" * 100_000, b"", "must be JSON"),
        (b"[1]", b"", "must be a JSON object"),
        (b'{"x": [1, 2]}', b"", "must carry one tag"),
        (b'{"x": {"pickle": []}}', b"", "no value in a frame has the tag 'pickle'"),
        (b'{"x": {"tuple": 1}}', b"", "no value in a frame has the tag"),
        (b'{"x": {"dict": [[1, 2]]}}', b"", "must be a list of pairs"),
        (b'{"x": {"array": ["object", [1]]}}', b"12345678", "must have a dtype of plain numbers"),
        (b'{"x": {"array": [["float64"], [1]]}}', b"12345678", "must have a dtype of plain numbers"),
        (b'{"x": {"array": ["float64", [2]]}}', b"12345678", "fewer bytes than its arrays need"),
        (b'{"x": {"array": ["float64", [1099511627775, 1099511627775]]}}', b"", "fewer bytes than its arrays need"),
        (b'{"x": {"array": ["float64", [-1]]}}', b"", "axes of whole lengths"),
        (b'{"x": {"array": ["float64", [true]]}}', b"12345678", "axes of whole lengths"),
        (b'{"x": {"array": ["float64", ' + json.dumps([1] * 17).encode() + b"]}}", b"12345678", "up to 16 axes"),
        (b'{"x": 1}', b"12345678", "8 bytes of a frame belong to no array"),
        (b'{"x": ' + b'{"list": [' * 20 + b"1" + b"]}" * 20 + b"}", b"", "nested 8 deep at most"),
        (b'{"x": {"scalar": 3}}', b"", "an array without axes"),
    ],
)
def test_a_forged_frame_is_refused(header, body, words):
    with pytest.raises(ProtocolError, match=words):
        decode(header, body)


@pytest.mark.parametrize("lengths", [(10, protocol.MAX_BODY_BYTES + 1), (2**32 - 1, 0)])
def test_a_frame_that_claims_to_be_huge_is_refused_before_it_is_read(lengths):
    with pytest.raises(ProtocolError, match="claims"):
        receive(io.BytesIO(LENGTHS.pack(*lengths)).read)

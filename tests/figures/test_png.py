"""The small PNG writer keeps what matters and is read by others."""

import struct
import zlib

import numpy as np

from attn_course.figures.png import encode_png, reduce_colours
from tests.figures.support import decode


def test_a_picture_of_few_colours_comes_back_exactly():
    pixels = np.random.default_rng(3).choice(np.array([0, 114, 178, 255], dtype=np.uint8), size=(13, 17, 3))
    np.testing.assert_array_equal(decode(encode_png(pixels, 144)), pixels)


def test_flat_fills_are_exact_and_a_rare_edge_colour_takes_its_neighbour():
    pixels = np.full((11, 7, 3), (204, 121, 167), dtype=np.uint8)
    pixels[5:] = (0, 114, 178)
    pixels[3, 2] = (203, 121, 166)
    palette, indices = reduce_colours(pixels, size=2)
    restored = palette[indices]
    assert palette.tolist() == [[0, 114, 178], [204, 121, 167]]
    assert restored[3, 2].tolist() == [204, 121, 167]
    assert (restored[5:] == pixels[5:]).all()


def test_a_smooth_gradient_of_many_colours_stays_within_four_levels():
    grid = np.stack(np.meshgrid(np.arange(64), np.arange(64), indexing="ij"), axis=-1)
    pixels = np.concatenate([grid + 90, np.full((64, 64, 1), 120)], axis=-1).astype(np.uint8)
    error = np.abs(decode(encode_png(pixels, 144)).astype(int) - pixels)
    assert 0 < error.max() <= 4


def test_every_chunk_has_a_valid_checksum_and_the_resolution_is_noted():
    data = encode_png(np.zeros((2, 3, 3), dtype=np.uint8), 144)
    chunks, position = {}, 8
    while position < len(data):
        length, name = struct.unpack(">I4s", data[position : position + 8])
        body = data[position + 8 : position + 8 + length]
        (checksum,) = struct.unpack(">I", data[position + 8 + length : position + 12 + length])
        assert checksum == zlib.crc32(name + body)
        chunks[name] = body
        position += 12 + length
    assert list(chunks) == [b"IHDR", b"pHYs", b"PLTE", b"IDAT", b"IEND"]
    assert struct.unpack(">IIB", chunks[b"pHYs"]) == (5669, 5669, 1)

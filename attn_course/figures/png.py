"""Small PNG files: a chart has few colours, and a palette of 256 of them takes a third of the bytes of full colour."""

import struct
import zlib

import numpy as np

PALETTE_SIZE = 256
SIGNATURE = b"\x89PNG\r\n\x1a\n"
PALETTE_COLOUR_TYPE = 3


def reduce_colours(pixels: np.ndarray, size: int = PALETTE_SIZE) -> tuple[np.ndarray, np.ndarray]:
    """Return a palette and the index of each pixel in it.

    Colours are kept one by one: next comes the colour whose pixels, together, are worst served by those kept so far.
    Flat fills are therefore exact; only rare colours on smoothed edges take a neighbour.

    Parameters
    ----------
    pixels : (height, width, 3) ndarray of uint8
        Red, green, blue.
    size : int
        The most colours to keep.

    Returns
    -------
    palette : (n_colours, 3) ndarray of uint8
        At most `size` colours, the most frequent first.
    indices : (height, width) ndarray of uint8
        Which colour each pixel takes.

    Examples
    --------
    >>> palette, indices = reduce_colours(np.array([[[255, 255, 255], [255, 255, 255], [0, 114, 178]]], dtype=np.uint8))
    >>> palette.tolist(), indices.tolist()
    ([[255, 255, 255], [0, 114, 178]], [[0, 0, 1]])
    """
    height, width, _ = pixels.shape
    codes = pixels.reshape(-1, 3).astype(np.int64) @ np.array([65536, 256, 1])
    colours, inverse, counts = np.unique(codes, return_inverse=True, return_counts=True)
    channels = np.stack([colours >> 16, colours >> 8 & 255, colours & 255], axis=-1)
    kept = [int(counts.argmax())]
    nearest = np.zeros(len(colours), dtype=np.uint8)
    error = ((channels - channels[kept[0]]) ** 2).sum(axis=-1)
    while len(kept) < size and error.any():
        worst = int((error * counts).argmax())
        distance = ((channels - channels[worst]) ** 2).sum(axis=-1)
        nearest[distance < error] = len(kept)
        error = np.minimum(error, distance)
        kept.append(worst)
    return channels[kept].astype(np.uint8), nearest[inverse.reshape(height, width)]


def encode_png(pixels: np.ndarray, dots_per_inch: int) -> bytes:
    """Return a PNG file with at most 256 colours.

    Parameters
    ----------
    pixels : (height, width, 3) ndarray of uint8
        Red, green, blue.
    dots_per_inch : int
        Resolution noted in the file.

    Returns
    -------
    file : bytes
        The same pixels always give the same bytes.

    Notes
    -----
    PNG specification, third edition, sections 5 and 11: signature, then chunks IHDR, pHYs, PLTE, IDAT and IEND.
    """
    palette, indices = reduce_colours(pixels)
    height, width = indices.shape
    dots_per_metre = round(dots_per_inch / 0.0254)
    rows = np.concatenate([np.zeros((height, 1), dtype=np.uint8), indices], axis=1)  # each row starts with "filter 0": stored as it is
    chunks = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, PALETTE_COLOUR_TYPE, 0, 0, 0)),
        (b"pHYs", struct.pack(">IIB", dots_per_metre, dots_per_metre, 1)),
        (b"PLTE", palette.tobytes()),
        (b"IDAT", zlib.compress(rows.tobytes(), 9)),
        (b"IEND", b""),
    ]
    return SIGNATURE + b"".join(chunk(name, data) for name, data in chunks)


def chunk(name: bytes, data: bytes) -> bytes:
    """Return one chunk of a PNG file: length, name, data, checksum."""
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

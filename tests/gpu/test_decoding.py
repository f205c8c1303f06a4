"""Few queries and many keys: how the keys are cut, and the kernels that attend over parts and merge them, in Triton's interpreter."""

import itertools

import pytest
import torch

from attn_course.gpu import decoding, flash_operators
from attn_course.gpu.configurations import Configuration, configuration
from attn_course.gpu.decoding import is_for, keys_met, number_of_parts, tile_for
from attn_course.gpu.flash import flash_attention
from attn_course.reference import attention as reference_attention
from tests.gpu.oracle import GATES, errors, wide
from tests.gpu.support import bool_mask, interpreted, normal

pytest.importorskip("triton", reason="Triton is not to be had here (it is for Linux)")


def inputs(q_len=2, kv_len=149, *, heads=6, kv_heads=2, d_k=11, d_v=7, dtype=torch.float64):
    shapes = [(2, heads, q_len, d_k), (2, kv_heads, kv_len, d_k), (2, kv_heads, kv_len, d_v)]
    return tuple(normal(*shape, dtype=dtype, seed=seed) for seed, shape in enumerate(shapes))


OPTIONS = {
    "everything": {},
    "causal behind a cache": {"is_causal": True, "q_offset": 147},
    "causal, an offset for each sequence: one is at its beginning": {"is_causal": True, "q_offset": torch.tensor([[140], [-1]])},
    "a window": {"window": (50, 3), "q_offset": 100},
    "a window for each head": {"window": (3, 3), "q_offset": torch.tensor([-9, 0, 50, 75, 148, 190])},
    "a mask": {"mask": bool_mask(2, 6, 2, 149)},
    "a mask that heads share, and a softcap": {"mask": bool_mask(2, 1, 2, 149), "softcap": 2.0},
    "a negative scale": {"scale": -0.3},
    "a mask whose keys lie far apart: a column of a large matrix": {
        "mask": torch.empty(149, 2**24 - 1, dtype=torch.bool)[:, 5].fill_(True)
    },
}


@pytest.fixture
def parts(monkeypatch):
    """Cut the keys into so many parts."""
    return lambda number: monkeypatch.setattr(decoding, "number_of_parts", lambda *_: number)


def assert_forward_pass_is_that_of_the_reference(tensors, **options):
    found = flash_attention(*tensors, enable_gqa=True, return_lse=True, **options)
    options = {name: wide(option) if isinstance(option, torch.Tensor) else option for name, option in options.items()}
    wanted = reference_attention(*map(wide, tensors), enable_gqa=True, return_lse=True, **options)
    torch.testing.assert_close(found, tuple(map(torch.from_numpy, wanted)), rtol=1e-12, atol=1e-13)


@interpreted
@pytest.mark.parametrize("name", OPTIONS)
def test_output_and_lse_are_those_of_the_reference(name, parts):
    parts(3)
    assert_forward_pass_is_that_of_the_reference(inputs(), **OPTIONS[name])


@interpreted
def test_the_backward_pass_goes_on_from_what_is_merged(parts):
    parts(3)
    options = {"is_causal": True, "q_offset": torch.tensor([[140], [-1]]), "enable_gqa": True}
    assert max(errors(inputs(kv_len=71), options)) < GATES[torch.float64]


@interpreted
@pytest.mark.parametrize("number", [1, 2, 9])  # of 5 tiles: some parts of 9 are empty
def test_the_parts_are_merged_whatever_their_number(number, parts):
    parts(number)
    assert_forward_pass_is_that_of_the_reference(
        inputs(4, kv_heads=1, heads=4), window=(90, 30), q_offset=95
    )  # 4 and 4: no other order does


@interpreted
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_every_dtype_keeps_to_its_gate(dtype, parts):
    parts(2)
    assert max(errors(inputs(kv_len=71, dtype=dtype, d_k=24, d_v=40), {"enable_gqa": True})) < GATES[dtype]


@interpreted
def test_padding_lengths_end_the_keys_of_each_head(parts):
    parts(2)
    query, key, value = inputs(kv_heads=6)
    lengths = torch.tensor([149, 0, 1, 64, 65, 100])
    hidden = torch.arange(149) >= lengths[:, None]
    spoilt = [part.masked_fill(hidden[None, :, :, None], torch.nan) for part in (key, value)]
    output, lse = flash_attention(query, *spoilt, kv_lengths=lengths, return_lse=True)
    wanted = reference_attention(*map(wide, (query, key, value)), mask=~wide(hidden)[:, None], return_lse=True)
    torch.testing.assert_close([output, lse], [torch.from_numpy(one) for one in wanted], rtol=1e-12, atol=1e-13)
    assert not output[:, 1].any()
    assert lse[:, 1].isneginf().all()


@interpreted
@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")  # NumPy's, for what the kernel computes and drops
@pytest.mark.parametrize("rotten", [torch.nan, torch.inf])
def test_what_is_hidden_may_hold_anything_and_what_is_seen_spoils_its_rows(rotten, parts):
    parts(2)
    query, key, value = inputs(4, kv_heads=2)
    options = {"is_causal": True, "q_offset": 100, "enable_gqa": True}
    clean = flash_attention(query, key, value, **options, return_lse=True)
    hidden = torch.arange(104, 149)
    unseen = flash_attention(query, key.index_fill(-2, hidden, rotten), value.index_fill(-2, hidden, rotten), **options, return_lse=True)
    assert all(torch.equal(*pair) for pair in zip(unseen, clean, strict=True))
    value[0, 1, 102, 3] = rotten
    rows = flash_attention(query, key, value, **options).isnan().any(-1)
    assert rows.nonzero().tolist() == [[0, head, row] for head in (3, 4, 5) for row in (2, 3)]


@interpreted
def test_two_runs_give_the_same_bits_and_memory_need_not_be_contiguous(parts):
    parts(3)
    query, key, value = inputs(d_k=16, d_v=16)
    turned = [part.transpose(1, 2).contiguous().transpose(1, 2) for part in (query, key, value)]
    first, second, third = (flash_attention(*tensors, enable_gqa=True) for tensors in ((query, key, value), (query, key, value), turned))
    assert torch.equal(first, second)
    assert torch.equal(first, third)
    assert third.stride() == turned[0].stride()


@interpreted
@pytest.mark.parametrize(
    ("heads", "q_len", "options", "is_short"),
    [
        (8, 2, {}, True),
        (9, 2, {}, False),
        (2, 18, {}, True),  # a chunk: the keys are eight times as many, and it has two programs for four multiprocessors
        (3, 18, {}, False),
        (2, 19, {}, False),
        (1, 16, {}, True),
        (8, 2, {"mask": torch.ones(149, dtype=torch.bool)}, True),
        (1, 2, {"mask": torch.zeros(149)}, False),
    ],
)
def test_it_is_for_few_queries_without_a_mask_of_floats(heads, q_len, options, is_short, monkeypatch):
    asked = []
    monkeypatch.setattr(decoding, "launch", lambda *arguments: asked.append(arguments))
    flash_attention(*inputs(q_len, kv_len=149, heads=heads, kv_heads=1), enable_gqa=True, **options)
    assert len(asked) == is_short


@interpreted
def test_a_chunk_is_split_and_a_request_has_the_same_bits_alone_and_beside_others():
    for q_len, heads in ((1, 1), (33, 1)):
        query, key, value = (normal(8, heads, length, 16, dtype=torch.float32, seed=length) for length in (q_len, 700, 701))
        value = value[:, :, 1:]
        together = flash_attention(query, key, value, is_causal=True, q_offset=700 - q_len)
        alone = flash_attention(query[3:4], key[3:4], value[3:4], is_causal=True, q_offset=700 - q_len)
        assert torch.equal(together[3:4], alone)
        wanted = reference_attention(*map(wide, (query, key, value)), is_causal=True, q_offset=700 - q_len)
        torch.testing.assert_close(together.double(), torch.from_numpy(wanted), rtol=1e-5, atol=1e-6)


@interpreted
@pytest.mark.parametrize(("width", "begin"), [(100, 0), (16, 3), (17, 0), (18, 2)])
def test_a_cache_whose_rows_begin_anywhere_is_not_copied(width, begin, watch):
    from attn_course.gpu import flash_decode

    read = []
    watch(flash_decode, "flash_decode", lambda arguments: read.extend(rows.ptr.data_ptr() for rows in arguments[0][1:3]))
    room = normal(3, 2 * 2 * 149 * width + begin)
    query, key, value = (part[begin:].view(2, 2, 149, width) for part in room)
    assert_forward_pass_is_that_of_the_reference((query[:, :, :2], key, value))
    assert read == [key.data_ptr(), value.data_ptr()]


@interpreted
def test_every_launch_asks_for_a_tile_that_fits_its_device(monkeypatch):
    asked = []

    def spy(kernel, *sizes, shared, **options):
        asked.append((kernel, shared))
        return configuration(kernel, *sizes, shared=shared, **options)

    for module in (decoding, flash_operators):
        monkeypatch.setattr(module, "configuration", spy)
    monkeypatch.setattr(flash_operators, "shared_bytes", lambda device: 99)
    query = normal(1, 1, 17, 3).requires_grad_()
    flash_attention(query, query, query, mask=normal(17, 17).requires_grad_()).sum().backward()
    flash_attention(query[:, :, :1], query, query)
    kernels = ["forward", "backward_query", "backward_key_value", "backward_mask", "forward", "decode"]
    assert list(dict.fromkeys(asked)) == list(dict.fromkeys((kernel, 99) for kernel in kernels))


# ---- pure functions


def test_parts_fill_the_device_once_and_none_is_tiny():
    for multiprocessors, programs, keys in itertools.product([20, 58, 132], [1, 8, 100, 5000], [0, 1, 64, 4096, 1_000_000]):
        number = number_of_parts(programs, keys, 64, multiprocessors)
        assert number == 1 or (1 < number <= 128 and programs * number <= 2 * multiprocessors and keys > 256 * number - 64)
        more = number + 1
        assert more > 128 or programs * more > 2 * multiprocessors or keys <= 256 * more - 64  # why there is not one part more


def test_the_tile_has_the_rows_that_share_their_keys():
    def tile(rows, d=128, dtype=torch.bfloat16, masked=False):
        return tile_for(rows, d, d, dtype, masked=masked, interpreted=False)

    assert tile(1) == tile(16) == Configuration(16, 64, 4, 2)
    assert [tile(rows).block_q for rows in (17, 33, 64)] == [32, 64, 64]
    assert tile(65) == tile(4096) == tile(64)
    assert tile(33, d=256).block_q == 32
    assert tile(9, dtype=torch.float32).block_q == tile(64, masked=True).block_q == 16


def test_the_keys_that_are_met_are_counted():
    for low, high, q_len, kv_len in itertools.product([None, -10, 0, 3], [None, -4, 0, 5], [1, 3], [7, 100]):
        band = [range(0 if low is None else row + low, kv_len if high is None else row + high + 1) for row in range(q_len)]
        met = [key for key in range(kv_len) if any(key in keys for keys in band)]
        assert len(met) <= keys_met(low, high, q_len, kv_len)
        if low is None or high is None or low <= high:
            assert len(met) == keys_met(low, high, q_len, kv_len)


def test_a_chunk_behind_a_long_cache_is_split_where_the_general_kernel_has_few_programs(monkeypatch):
    monkeypatch.setattr(decoding, "multiprocessors", lambda device: 132)
    general = configuration("forward", 128, 128, torch.bfloat16)

    def split(q_len, keys, heads=32, group=4):
        return is_for(q_len, heads, group, keys, general, torch.device("cpu"))

    assert split(16, 16)  # 64 rows: half a tile
    assert split(128, 4096)
    assert split(256, 4096)
    assert not split(257, 4096)  # 96 programs
    assert not split(128, 1000)
    assert not split(512, 512, heads=4)

"""Latent attention: both forms are the reference, agree, decode from one small cache, and never rebuild what they need not."""

import math
from dataclasses import fields

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from attn_course import costs, reference
from attn_course.modules import KeyValueCache, LatentAttention
from tests.modules.support import normal

BATCH, LEN, D_MODEL, HEADS = 2, 7, 11, 3
SIZES = {"d_latent": 5, "d_query_latent": 13, "d_head": 7, "d_rope": 4, "d_v": 2}
PLAIN = {**SIZES, "d_query_latent": None}
FORMS = ["naive", "absorbed"]


def layer(kind=LatentAttention, n_heads=HEADS, *, sizes=SIZES, **options):
    made = kind(D_MODEL, n_heads, **sizes, **options, generator=torch.Generator().manual_seed(3)).double()
    for seed, norm in enumerate((made.norm_q, made.norm_kv)):
        if norm is not None:
            norm.weight.data = 1.0 + 0.3 * normal(*norm.weight.shape, seed=seed)
    return made


def by_reference(made, x, function=reference.latent_attention, *, positions=None, cache=None):
    weights = reference.LatentWeights(**{name: matrix.numpy() for name, matrix in made.latent_weights().items()})
    gains = {name: None if norm is None else norm.weight.detach().numpy() for name, norm in (("q", made.norm_q), ("kv", made.norm_kv))}

    def norm(gain):
        return None if gain is None else lambda c: c / np.sqrt((c**2).mean(axis=-1, keepdims=True) + 1e-6) * gain

    where = np.arange(x.shape[-2]) if positions is None else positions.numpy()
    norms = {f"norm_{name}": norm(gain) for name, gain in gains.items()}
    return torch.from_numpy(function(x.numpy(), weights, n_heads=made.n_heads, positions=where, cache=cache, **norms))


# ---- what is computed


@settings(max_examples=60)
@given(st.data())
def test_both_forms_are_the_reference(data):
    draw, choose = data.draw, st.sampled_from
    sizes = {
        "d_latent": draw(choose([1, 5, 8])),
        "d_query_latent": draw(choose([None, 1, 13])),
        "d_head": draw(choose([1, 7])),
        "d_rope": draw(choose([0, 2, 6])),
        "d_v": draw(choose([None, 2])),
    }
    made = layer(n_heads=draw(choose([1, 3, 5])), sizes=sizes, norm=draw(st.booleans()), backend=draw(choose(["auto", "eager"])))
    x = normal(*draw(choose([(), (2,), (2, 3)])), draw(choose([1, 2, LEN])), D_MODEL)
    positions = draw(choose([None, torch.tensor([4, 0, 9, 2, 7, 7, 40])[: x.shape[-2]]]))
    wanted = by_reference(made, x, positions=positions)
    for form in (*FORMS, "auto"):
        with torch.no_grad():
            torch.testing.assert_close(made(x, positions=positions, form=form), wanted, rtol=0, atol=1e-10)


# ---- positions


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("layout", ["halves", "interleaved"])
def test_only_distances_count_and_every_sequence_may_have_positions_of_its_own(form, layout):
    made, x = layer(rope_layout=layout, rope_theta=50.0, form=form), normal(BATCH, LEN, D_MODEL)
    where = torch.tensor([[4, 0, 9, 2, 7, 1, 3], [0, 1, 2, 3, 4, 5, 6]])
    here = made(x, positions=where)
    torch.testing.assert_close(made(x, positions=where + 1000), here, rtol=0, atol=1e-10)
    torch.testing.assert_close(made(x[1:]), here[1:], rtol=0, atol=1e-12)
    torch.testing.assert_close(made(x[0], positions=where[0]), here[0], rtol=0, atol=1e-12)
    assert (made(x, positions=2 * where) - here).abs().max() > 1e-3


# ---- decoding


@pytest.mark.parametrize("form", FORMS)
def test_the_caches_of_the_layer_and_of_the_reference_hold_the_same(form):
    made, x, ours, theirs = layer(form=form), normal(BATCH, 5, D_MODEL), KeyValueCache(), reference.KeyValueCache()
    with torch.no_grad():
        made(x, cache=ours)
    by_reference(made, x, cache=theirs)
    nothing = [np.zeros((BATCH, 0, size)) for size in (SIZES["d_latent"], SIZES["d_rope"])]
    for mine, other in zip(ours.append(*map(torch.from_numpy, nothing)), theirs.append(*nothing), strict=True):
        torch.testing.assert_close(mine, torch.tensor(other), rtol=0, atol=1e-12)


# ---- what a step makes


class Made(TorchDispatchMode):
    """Count the numbers in each new piece of memory that an operation makes."""

    def __init__(self):
        super().__init__()
        self.numbers = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        old = {tensor.untyped_storage().data_ptr() for tensor in tree_leaves((args, kwargs)) if isinstance(tensor, torch.Tensor)}
        new = [tensor for tensor in tree_leaves(result) if isinstance(tensor, torch.Tensor)]
        self.numbers += [one.untyped_storage().nbytes() // one.itemsize for one in new if one.untyped_storage().data_ptr() not in old]
        return result


@pytest.mark.parametrize("backend", ["auto", "eager"])
@pytest.mark.parametrize("n_new", [1, 3])
def test_an_absorbed_step_makes_no_keys_and_no_values_of_heads_and_a_naive_one_does(n_new, backend):
    past, heads = 499, 5
    sizes = {"d_latent": 5, "d_head": 16, "d_rope": 2, "d_v": 17}
    made = layer(n_heads=heads, sizes=sizes, backend=backend)
    largest = {}
    for form in FORMS:
        cache = KeyValueCache()
        with torch.no_grad():
            made(normal(1, past, D_MODEL), cache=cache)
            with Made() as seen:
                made(normal(1, n_new, D_MODEL), cache=cache, form=form)
        largest[form] = max(seen.numbers)
    total = past + n_new
    assert largest["naive"] >= total * heads * (16 + 2)  # the keys of all heads
    assert largest["absorbed"] <= total * max(5 + 2, heads * n_new)  # cached vectors side by side, or scores
    assert largest["absorbed"] < total * heads * min(16, 17)  # less than keys or values of all heads


@pytest.mark.parametrize(
    ("n_new", "past", "wanted"), [(1, 0, "naive"), (1, 1, "absorbed"), (1, 900, "absorbed"), (64, 0, "naive"), (64, 9, "naive")]
)
def test_auto_takes_the_form_with_fewer_flops(n_new, past, wanted):
    made, asked = layer(sizes={"d_latent": 32, "d_query_latent": 9, "d_head": 8, "d_rope": 4, "d_v": 8}), []
    sizes = costs.LatentSizes(d_model=D_MODEL, n_heads=HEADS, d_query_latent=9, d_latent=32, d_head=8, d_rope=4, d_v=8)
    naive, factored = (costs.latent_attention_flops(sizes, n_new, past + n_new, form=form) for form in ("naive", "factored"))
    assert ("absorbed" if factored < naive else "naive") == wanted
    for form in FORMS:
        before = getattr(made, f"_{form}")
        setattr(made, f"_{form}", lambda *arguments, before=before, form=form: (asked.append(form), before(*arguments))[1])
    cache = KeyValueCache()
    with torch.no_grad():
        if past:
            made(normal(1, past, D_MODEL), cache=cache, form="naive")
        made(normal(1, n_new, D_MODEL), cache=cache)
    assert asked[-1] == wanted


# ---- who sees whom


@pytest.mark.parametrize("shape", [(LEN, LEN), (HEADS, 1, LEN), (BATCH, 1, LEN, LEN), (1, LEN), (BATCH, HEADS, LEN, 1)])
@pytest.mark.parametrize("kind", ["bool", "float"])
@pytest.mark.parametrize("lengths", [None, [5, 2]])
def test_masks_of_every_shape_and_lengths_mean_the_same_in_both_forms(shape, kind, lengths):
    made, x, keep = layer(), normal(BATCH, LEN, D_MODEL), normal(*shape, seed=2) > -0.5
    mask = keep if kind == "bool" else torch.where(keep, normal(*shape, seed=4), -math.inf)
    real = torch.full((BATCH,), LEN) if lengths is None else torch.tensor(lengths)
    call = {"mask": mask, "lengths": None if lengths is None else real}
    (output, weights), absorbed = (made(x, form=form, return_weights=True, **call) for form in FORMS)
    for one, other in zip((*absorbed, made(x, form="absorbed", **call)), (output, weights, output), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-10)
    allowed = keep & torch.ones(LEN, LEN, dtype=torch.bool).tril() & (torch.arange(LEN) < real[:, None, None, None])
    assert torch.equal(weights > 0, allowed.expand(BATCH, HEADS, LEN, LEN))
    torch.testing.assert_close(weights.sum(dim=-1), allowed.expand(BATCH, HEADS, LEN, LEN).any(dim=-1).double())


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("backend", ["auto", "eager"])
def test_what_padding_holds_changes_nothing_and_a_token_that_sees_nothing_gives_zero(form, backend):
    made, x, lengths = layer(form=form, backend=backend), normal(3, LEN, D_MODEL), torch.tensor([7, 2, 0])
    padded = x.clone()
    padded[1, 2:] = math.nan
    got, wanted = made(padded, lengths=lengths), made(x, lengths=lengths)
    torch.testing.assert_close(got[1, :2], wanted[1, :2])
    torch.testing.assert_close(wanted[1, :2], made(x[1, :2]), rtol=0, atol=1e-12)
    assert not wanted[2].any()


@pytest.mark.parametrize("form", FORMS)
def test_padding_on_the_left_is_masked_and_positions_start_behind_it(form):
    made, x, cache = layer(form=form), normal(1, 5, D_MODEL), KeyValueCache()
    wanted = made(x)
    padded, real = torch.cat([normal(1, 2, D_MODEL, seed=8), x], dim=1), torch.arange(7) >= 2
    with torch.no_grad():
        first = made(padded[:, :6], mask=real[:6].expand(6, 6), positions=torch.arange(6) - 2, cache=cache)
        last = made(padded[:, 6:], mask=real[None], positions=torch.tensor([4]), cache=cache)
    torch.testing.assert_close(torch.cat([first[:, 2:], last], dim=1), wanted, rtol=0, atol=1e-12)


# ---- weights in and out


@pytest.mark.parametrize("sizes", [SIZES, PLAIN], ids=["queries compressed", "not compressed"])
def test_weights_go_out_by_the_names_of_the_reference_and_come_in_again(sizes):
    made, x = layer(sizes=sizes, norm=False), normal(BATCH, LEN, D_MODEL)
    weights = made.latent_weights()
    assert list(weights) == [field.name for field in fields(reference.LatentWeights)]
    again = LatentAttention.from_weights(weights, n_heads=HEADS, norm=False)
    torch.testing.assert_close(again(x), made(x), rtol=0, atol=1e-12)
    if sizes is PLAIN:
        assert torch.equal(weights.pop("w_query_down"), torch.eye(D_MODEL).double())
        assert LatentAttention.from_weights(weights, n_heads=HEADS).w_query_down is None
    weights["w_output"].zero_()
    assert made.w_output.any()

"""Hooks read the stream, the maps and what each part adds, and take parts out."""

import re
from functools import partial

import pytest
import torch

from attn_course.modules import hooked
from tests.modules.support import assert_close
from tests.modules.test_transformer import D_MODEL, HEADS, LAYERS, ids, model


def test_hooks_see_the_stream_and_what_each_part_adds():
    made, seen = model(), {}
    names = ["embedded"] + [f"blocks.{layer}.{name}" for layer in range(LAYERS) for name in ("attended", "fed", "stream")]
    with hooked(made, {name: lambda x, name=name: seen.update({name: x}) for name in names}):
        logits = made(ids(2, 5))
    assert_close(logits, made(ids(2, 5)))
    total = sum(tensor for name, tensor in seen.items() if not name.endswith("stream"))
    assert_close(total, seen["blocks.1.stream"])
    assert_close(made.norm(total) @ made.w_tokens.T, logits)


def test_maps_are_those_of_attention_and_a_head_set_to_zero_takes_its_share_away():
    made, maps, heads, before, after = model(), [], [], [], []

    def without_head_one(found):
        heads.append(found)
        return torch.cat([found[..., :1, :], torch.zeros_like(found[..., 1:2, :]), found[..., 2:, :]], dim=-2)

    with hooked(made, {"blocks.0.attention.weights": maps.append, "blocks.0.attended": before.append}):
        logits = made(ids(2, 5))
    with hooked(made, {"blocks.0.attention.heads": without_head_one, "blocks.0.attended": after.append}):
        ablated = made(ids(2, 5))
    assert_close(maps[0].sum(dim=-1), torch.ones(2, HEADS, 5).double())
    assert not maps[0].triu(1).any()
    size = D_MODEL // HEADS
    assert_close(before[0] - after[0], heads[0][..., 1, :] @ made.blocks[0].attention.w_output[size : 2 * size])
    assert not torch.allclose(logits, ablated)


def test_a_hook_goes_with_its_block_even_after_an_error_and_hooks_of_two_blocks_come_in_order():
    made, order = model(), []

    def fail(_):
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"), hooked(made, {"blocks.0.fed": fail}):
        made(ids(1, 3))
    with hooked(made, {"embedded": lambda _: order.append("first")}), hooked(made, {"embedded": lambda x: order.append("second") or 0 * x}):
        made(ids(1, 3))
    made(ids(1, 3))
    assert order == ["first", "second"]


def hooked_call(name, hook):
    with hooked(made := model(), {name: hook}):
        return made(torch.tensor([[1, 2]]))


def test_queries_keys_and_values_may_be_exchanged_before_they_are_turned():
    made, tokens = model("llama"), ids(2, 7)
    usual, seen = made(tokens), {}
    with hooked(made, {f"blocks.1.attention.{role}": partial(seen.__setitem__, role) for role in ("query", "key", "value")}):
        made(tokens)
    assert seen["query"].shape == (2, 3, 7, 4)
    assert seen["key"].shape == seen["value"].shape == (2, 1, 7, 4)
    with hooked(made, {"blocks.1.attention.key": torch.zeros_like}):  # then all keys are alike, and every map is even
        maps = []
        with hooked(made, {"blocks.1.attention.weights": maps.append}):
            changed = made(tokens)
    assert_close(maps[0], torch.ones(7, 7, dtype=torch.float64).tril().div(torch.arange(1, 8)[:, None]).expand(2, 3, 7, 7))
    assert not torch.allclose(changed, usual)


MALFORMED = [
    (lambda: hooked_call("blocks.2.fed", print), "hooks must name places of the model, blocks.0.attention.query, "),
    (lambda: hooked_call("embedded", lambda x: x[:, :1]), "a hook must return None or a tensor of shape (1, 2, 12); got (1, 1, 12)"),
    (lambda: hooked_call("embedded", lambda x: 3), "a hook must return None or a tensor of shape (1, 2, 12); got int"),
    (lambda: hooked_call("blocks.0.attention.weights", torch.zeros_like), "a hook must return None where one may only look; got Tensor"),
]


@pytest.mark.parametrize(("call", "message"), MALFORMED, ids=[message for _, message in MALFORMED])
def test_a_name_or_a_result_that_does_not_fit_is_refused(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()

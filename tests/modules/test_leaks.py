"""The leak test is silent for layers that keep their mask, and finds the mistakes that people make."""

import math

import pytest
import torch
from torch import nn

from attn_course.modules import MultiHeadAttention, influence, leaks

LEN, HEADS, D_MODEL = 5, 3, 6
CAUSAL = torch.ones(LEN, LEN, dtype=torch.bool).tril()
WAYS = ["gradient", "perturbation"]


def added(scores, mask):
    return scores.masked_fill(~mask, -math.inf).softmax(dim=-1)


def one_head_forgets(scores, mask):
    return torch.cat([added(scores[:, :-1], mask), scores[:, -1:].softmax(dim=-1)], dim=1)


# How weights come from scores (batch, heads, len, len) and a mask that is True where a query may attend.
MISTAKES = {
    "the mask transposed": lambda scores, mask: added(scores, mask.mT),
    "the mask after the softmax": lambda scores, mask: scores.softmax(dim=-1) * mask,
    "causal, but one too late": lambda scores, mask: added(scores, mask | torch.ones(LEN, LEN).tril(1).bool()),
    "zeros and ones added": lambda scores, mask: (scores + mask).softmax(dim=-1),
    "the mask inverted": lambda scores, mask: added(scores, ~mask | torch.eye(LEN).bool()),
    "a softmax over queries": lambda scores, mask: scores.masked_fill(~mask, -math.inf).softmax(dim=-2),
    "one head forgets the mask": one_head_forgets,
}


class Layer(nn.Module):
    def __init__(self, weigh, mask):
        super().__init__()
        self.weigh, self.mask = weigh, mask
        self.parts = MultiHeadAttention(D_MODEL, HEADS, generator=torch.Generator().manual_seed(1)).double()

    def forward(self, x):
        query, key, value = (
            (x @ weight).unflatten(-1, (HEADS, -1)).transpose(1, 2) for weight in (self.parts.w_query, self.parts.w_key, self.parts.w_value)
        )
        weights = self.weigh(query @ key.mT / math.sqrt(D_MODEL / HEADS), self.mask)
        return (weights @ value).transpose(1, 2).flatten(-2) @ self.parts.w_output


def inputs(batch=2):
    return torch.randn(batch, LEN, D_MODEL, generator=torch.Generator().manual_seed(7), dtype=torch.float64)


def pairs(found):
    assert all(leak.query[0] == leak.key[0] for leak in found)
    return {(leak.query[0], leak.query[1], leak.key[1]) for leak in found}


@pytest.mark.parametrize("by", WAYS)
def test_a_layer_that_keeps_its_mask_has_no_leak_and_uses_all_it_may(by):
    layer, x = Layer(added, CAUSAL), inputs()
    assert leaks(layer, x, CAUSAL, by=by) == []
    found = influence(layer, x, by=by)
    assert torch.equal(x, inputs())
    assert torch.equal(found, influence(layer, x, by=by))
    assert found.shape == (2, LEN, 2, LEN)
    for example in range(2):
        assert torch.equal(found[example, :, example] > 0, CAUSAL)
        assert not found[example, :, 1 - example].any()


@pytest.mark.parametrize("by", WAYS)
@pytest.mark.parametrize("mistake", MISTAKES)
def test_every_mistake_is_found(mistake, by):
    found = leaks(Layer(MISTAKES[mistake], CAUSAL), inputs(), CAUSAL, by=by)
    above = {(example, query, key) for example in range(2) for query in range(LEN) for key in range(query + 1, LEN)}
    assert found
    assert pairs(found) <= above
    if mistake == "causal, but one too late":
        assert pairs(found) == {(example, query, query + 1) for example in range(2) for query in range(LEN - 1)}
    elif mistake != "a softmax over queries":  # there a query hears of later queries, not of keys
        assert pairs(found) == above
    assert [leak.influence for leak in found] == sorted((leak.influence for leak in found), reverse=True)


@pytest.mark.parametrize("by", WAYS)
def test_padding_that_shows_through_one_head_only_is_found(by):
    real = (torch.arange(LEN) < torch.tensor([5, 3])[:, None])[:, None, None]  # (batch, 1, 1, len)
    allowed = real[:, 0].expand(2, LEN, LEN) | torch.eye(LEN).bool()  # a padded position is still its own query
    assert leaks(Layer(added, real), inputs(), allowed, by=by) == []
    found = leaks(Layer(one_head_forgets, real), inputs(), allowed, by=by)
    assert pairs(found) == {(1, query, key) for query in range(LEN) for key in (3, 4) if query != key}


@pytest.mark.parametrize("by", WAYS)
def test_examples_that_attend_to_each_other_are_found(by):
    def mixed(x):
        return x.flatten(0, 1).cumsum(dim=0).reshape(x.shape)  # the batch taken for one long sequence

    found = leaks(mixed, inputs(), CAUSAL, by=by)
    assert {(leak.query, leak.key) for leak in found} == {((1, query), (0, key)) for query in range(LEN) for key in range(LEN)}


def test_a_large_finite_number_in_the_place_of_minus_infinity_needs_a_step_of_its_size():
    layer, x = Layer(lambda scores, mask: (scores - 1e4 * ~mask).softmax(dim=-1), CAUSAL), inputs()
    assert leaks(layer, x, CAUSAL) == leaks(layer, x, CAUSAL, by="perturbation") == []
    assert leaks(layer, x, CAUSAL, by="perturbation", size=1e6)
    assert leaks(Layer(added, CAUSAL), x, CAUSAL, by="perturbation", size=1e6) == []


def test_a_comparison_is_found_by_steps_only():
    def compares(x):
        return x + (x.roll(-1, dims=-2) > 0.0)

    x = torch.full((3, 2), -0.1)
    assert leaks(compares, x, torch.eye(3).bool()) == []
    found = leaks(compares, x, torch.eye(3).bool(), by="perturbation", size=10.0)
    assert {(leak.query, leak.key) for leak in found} <= {((0,), (1,)), ((1,), (2,)), ((2,), (0,))}
    assert found


@pytest.mark.parametrize("by", WAYS)
def test_what_a_layer_norm_hides_from_equal_steps_is_found(by):
    norm = nn.LayerNorm(D_MODEL, dtype=torch.float64)
    assert len(leaks(lambda x: norm(x).roll(-1, dims=-2), inputs(1), CAUSAL, by=by)) == LEN - 1


@pytest.mark.parametrize("by", WAYS)
def test_nan_that_reaches_an_output_counts_as_infinite(by):
    def nan_ahead(x):
        return x + (x.roll(-1, dims=-2) - 1.0).sqrt() * 0.0  # the square root of a negative number

    found = leaks(nan_ahead, torch.full((3, 2), 1.0, dtype=torch.float64), torch.eye(3).bool(), by=by, size=5.0)
    assert found
    assert found[0].influence == math.inf


def test_the_output_may_be_the_first_of_a_tuple_and_shorter_than_the_input():
    found = influence(lambda x: (x[:2].detach() + x[:1], None), torch.ones(3, 2))
    assert torch.equal(found > 0, torch.tensor([[True, False, False], [True, False, False]]))
    assert not influence(lambda x: x.detach(), torch.ones(3, 2)).any()


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((nn.Identity(), torch.ones(3), CAUSAL), {}, r"x must be floating, with the axes \(len, d_model\) or .* got torch\.float32 \(3,\)"),
        ((nn.Identity(), torch.ones(5, 2).int(), CAUSAL), {}, r"x must be floating, .* got torch\.int32 \(5, 2\)"),
        ((nn.Identity(), torch.ones(5, 2), CAUSAL), {"by": "eye"}, r"by must be \"gradient\" or \"perturbation\"; got 'eye'"),
        ((nn.Identity(), torch.ones(4, 2), CAUSAL), {}, r"allowed must broadcast to \(\.\.\., q_len, len\) = \(4, 4\); got \(5, 5\)"),
        ((nn.Dropout(), torch.ones(5, 20), CAUSAL), {}, r"module must give the same output twice; got two: is dropout at work"),
        ((lambda x: x.sum(), torch.ones(5, 2), CAUSAL), {}, r"module must return rows, .* got \(\)"),
        ((lambda x: x * math.nan, torch.ones(5, 2), CAUSAL), {"by": "perturbation"}, r"module must return numbers at x; got NaN"),
        ((lambda x: x.tolist(), torch.ones(5, 2), CAUSAL), {}, r"module must return rows, .* got list"),
    ],
)
def test_errors_name_the_argument(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        leaks(*arguments, **options)

"""The texts of lesson masking, the five ways to put the mask on, and what each lets through."""

import math

import pytest
import torch

from attn_course.lessons.masking.experiments import HALF, HONEST_LOSS, MASKS, SYMBOLS, NextToken, evaluate, masked_weights, texts


def generator(seed=5):
    return torch.Generator().manual_seed(seed)


def test_the_second_half_translates_the_first_by_a_code_that_can_be_undone():
    text = texts(500, generator())
    assert text.shape == (500, 2 * HALF)
    pairs = set(zip(text[:, :HALF].flatten().tolist(), text[:, HALF:].flatten().tolist(), strict=True))
    assert len(pairs) == len({source for source, _ in pairs}) == len({target for _, target in pairs}) == SYMBOLS


def test_the_honest_loss_is_the_entropy_of_what_nobody_can_know():
    assert pytest.approx(7 * math.log(8) / 15) == HONEST_LOSS


def future_gradients(kind):
    """Which rows of logits depend on which later token: (length, length), True where they do."""
    model, text = NextToken(kind, generator()), texts(1, generator())
    x = (model.tokens[text[0]] + model.places).detach()

    def logits(rows):
        scores = rows @ model.w_query @ (rows @ model.w_key).mT / math.sqrt(model.w_query.shape[1])
        return torch.relu((rows + masked_weights(scores, kind) @ (rows @ model.w_value)) @ model.w_hidden) @ model.w_logits

    by_token = torch.autograd.functional.jacobian(logits, x)  # (length, symbols, length, d_model)
    return (by_token.abs().amax(dim=(1, 3)) > 0).triu(1)


@pytest.mark.parametrize("kind", MASKS)
def test_only_the_right_mask_lets_nothing_through(kind):
    leaks = future_gradients(kind).sum().item()
    pairs = HALF * (2 * HALF - 1)
    assert leaks == {"right": 0, "one column too wide": 2 * HALF - 1}.get(kind, pairs)


@pytest.mark.parametrize("kind", ["right", "one column too wide", "transposed"])
def test_these_rows_sum_to_one(kind):
    weights = masked_weights(torch.randn(3, 5, 5, generator=generator()), kind)
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(3, 5))


def test_a_fresh_model_guesses_and_the_same_seed_gives_the_same_model():
    shares = evaluate(NextToken("right", generator()), generator())
    assert all(share < 0.3 for share in shares.values())
    assert torch.equal(NextToken("right", generator()).w_key, NextToken("right", generator()).w_key)


def test_another_mask_is_refused():
    with pytest.raises(ValueError, match="kind must be one of"):
        masked_weights(torch.zeros(2, 2), "left")

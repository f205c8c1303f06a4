"""The encoder-decoder: step by step what its equations say, blind to padding and to the future."""

import pytest
import torch

from attn_course.modules import EncoderDecoder

N_SOURCE, N_TARGET, PADDING, START, END = 11, 13, 0, 1, 2
KINDS = ["additive", "dot", None]
SOURCE = torch.tensor([[3, 5, 7, 9, 4], [6, 8, 10, 0, 0], [5, 0, 0, 0, 0]])
TARGET = torch.tensor([[4, 6, 12, 2, 0, 0, 0], [5, 7, 11, 9, 8, 6, 2], [2, 0, 0, 0, 0, 0, 0]])


def fresh_model(attention="additive", seed=0, **sizes):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return EncoderDecoder(N_SOURCE, N_TARGET, attention=attention, **{"d_embed": 3, "d_state": 4, "d_hidden": 5, **sizes}).double()


@pytest.mark.parametrize("attention", ["additive", "dot"])
def test_the_first_context_is_the_average_of_annotations_under_the_aligner_written_as_loops(attention):
    model = fresh_model(attention)
    with torch.no_grad():
        encoded = model.encode(SOURCE)
        _, features, weights = model.step(model.target_embedding(torch.full((3,), START)), encoded.state, encoded)
    aligner = model.aligner
    for n, length in enumerate([5, 3, 1]):
        h, s = encoded.annotations[n], encoded.state[n]
        q, k = s @ aligner.w_query, h @ aligner.w_key
        e = [aligner.w_score @ torch.tanh(q + k[j]) if attention == "additive" else q @ k[j] / 5**0.5 for j in range(length)]
        alpha = torch.stack(e).exp() / torch.stack(e).exp().sum()
        torch.testing.assert_close(weights[n, :length], alpha)
        torch.testing.assert_close(features[n, 4:8], sum(alpha[j] * h[j] for j in range(length)))


def test_annotations_and_summary_are_those_of_each_source_read_alone():
    model = fresh_model()
    with torch.no_grad():
        together = model.encode(SOURCE)
        for n, length in enumerate([5, 3, 1]):
            states, last = model.encoder(model.source_embedding(SOURCE[n : n + 1, :length]))
            torch.testing.assert_close(together.annotations[n, :length], states[0])
            torch.testing.assert_close(together.summary[n], last.flatten())
            torch.testing.assert_close(together.summary[n], torch.cat([states[0, -1, :2], states[0, 0, 2:]]))


@pytest.mark.parametrize("attention", KINDS)
def test_padding_of_source_and_target_changes_nothing(attention):
    model = fresh_model(attention)
    with torch.no_grad():
        logits, alignments = model(SOURCE, TARGET)
        alone, rows = model(SOURCE[1:2, :3], TARGET[1:2])
        wider, _ = model(torch.cat([SOURCE, torch.zeros(3, 2, dtype=torch.long)], dim=1), TARGET)
    torch.testing.assert_close(logits[1:2], alone)
    torch.testing.assert_close(wider, logits)
    if attention is not None:
        torch.testing.assert_close(alignments[1:2, ..., :3], rows)
        torch.testing.assert_close(alignments.sum(dim=-1), torch.ones(alignments.shape[:-1], dtype=torch.float64))
        assert not alignments[1, ..., 3:].any()


@pytest.mark.parametrize("attention", KINDS)
def test_a_position_does_not_see_the_token_it_is_to_write_nor_later_ones(attention):
    model, changed = fresh_model(attention), TARGET.clone()
    changed[:, 3:] = 10
    with torch.no_grad():
        torch.testing.assert_close(model(SOURCE, changed)[0][:, :4], model(SOURCE, TARGET)[0][:, :4])
        assert not torch.allclose(model(SOURCE, changed)[0][:, 4], model(SOURCE, TARGET)[0][:, 4])


@pytest.mark.parametrize("attention", KINDS)
def test_greedy_tokens_are_the_likeliest_ones_given_those_before(attention):
    model = fresh_model(attention, seed=1)
    tokens, alignments = model.greedy(SOURCE, 6)
    with torch.no_grad():
        logits, again = model(SOURCE, tokens)
    for row, wanted in zip(tokens, logits.argmax(dim=-1), strict=True):
        written = (row != PADDING).nonzero()[-1] + 1 if END in row else 6
        assert torch.equal(row[:written], wanted[:written])
    assert (alignments is None) == (attention is None)
    if attention is not None:
        torch.testing.assert_close(alignments[..., 0, :], again[..., 0, :])


def test_after_the_end_token_only_padding_is_written():
    model = fresh_model()
    with torch.no_grad():
        model.output.bias[END] = 100.0
    tokens, _ = model.greedy(SOURCE, 4)
    assert tokens.tolist() == [[END, PADDING, PADDING, PADDING]] * 3


def test_the_loss_is_the_mean_over_real_tokens_worked_by_hand():
    model = fresh_model()
    with torch.no_grad():
        logs = model(SOURCE, TARGET)[0].log_softmax(dim=-1)
        terms = [-logs[n, i, TARGET[n, i]] for n, length in enumerate([4, 7, 1]) for i in range(length)]
        torch.testing.assert_close(model.loss(SOURCE, TARGET), torch.stack(terms).mean())


@pytest.mark.parametrize("attention", KINDS)
def test_every_parameter_gets_a_finite_gradient(attention):
    model = fresh_model(attention)
    model.loss(SOURCE, TARGET).backward()
    assert all(part.grad is not None and part.grad.isfinite().all() for part in model.parameters())
    assert all(part.grad.abs().sum() > 0 for part in model.parameters())

"""The encoder-decoder without recurrence: equal to its parts, blind to padding and to the future, the same step by step."""

import pytest
import torch

from attn_course.modules import CrossAttention, MultiHeadAttention, SequenceToSequence

N_SOURCE, N_TARGET, PADDING, START, END = 11, 13, 0, 1, 2
SOURCE = torch.tensor([[3, 5, 7, 9, 4], [6, 8, 10, 0, 0], [5, 0, 0, 0, 0]])
TARGET = torch.tensor([[4, 6, 12, 2, 0, 0, 0], [5, 7, 11, 9, 8, 6, 2], [2, 0, 0, 0, 0, 0, 0]])


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def fresh_model(seed=0, **sizes):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return SequenceToSequence(N_SOURCE, N_TARGET, **{"d_model": 12, "n_heads": 3, **sizes}).double()


def test_the_two_halves_of_cross_attention_are_multi_head_attention():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        cross = CrossAttention(6, 3, n_kv_heads=1, d_k=5, d_v=7, d_key_value=11, bias=True).double()
        whole = MultiHeadAttention(6, 3, n_kv_heads=1, d_k=5, d_v=7, d_key_value=11, bias=True).double()
        x, y = torch.randn(2, 4, 6).double(), torch.randn(2, 13, 11).double()
    whole.load_state_dict(cross.state_dict())
    lengths = torch.tensor([13, 5])
    with torch.no_grad():
        output, weights = cross.ask(x, *cross.answers(y), lengths)
        wanted, wanted_weights = whole(x, y, lengths=lengths, return_weights=True)
    torch.testing.assert_close(output, wanted)
    torch.testing.assert_close(weights, wanted_weights)
    assert not weights[1, :, :, 5:].any()


def test_cross_attention_equals_the_formula_written_as_loops():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        layer = CrossAttention(4, 2, d_key_value=3).double()
        x, y = torch.randn(5, 4).double(), torch.randn(7, 3).double()
    with torch.no_grad():
        output, _ = layer.ask(x, *layer.answers(y))
        for i in range(5):
            heads = []
            for head in (slice(0, 2), slice(2, 4)):
                q = (x[i] @ layer.w_query)[head]
                e = torch.stack([q @ (row @ layer.w_key)[head] / 2**0.5 for row in y])
                heads.append(sum(a * (row @ layer.w_value)[head] for a, row in zip(e.exp() / e.exp().sum(), y, strict=True)))
            torch.testing.assert_close(output[i], torch.cat(heads) @ layer.w_output)


def test_padding_of_source_and_target_changes_nothing():
    model = fresh_model()
    with torch.no_grad():
        logits, alignments = model(SOURCE, TARGET)
        alone, rows = model(SOURCE[1:2, :3], TARGET[1:2])
        wider, _ = model(torch.cat([SOURCE, torch.zeros(3, 2, dtype=torch.long)], dim=1), TARGET)
    torch.testing.assert_close(logits[1:2], alone)
    torch.testing.assert_close(wider, logits)
    torch.testing.assert_close(alignments[1:2, ..., :3], rows)
    assert not alignments[1, ..., 3:].any()
    torch.testing.assert_close(alignments.sum(dim=-1), torch.ones(3, 3, 7, dtype=torch.float64))


def test_a_position_does_not_see_the_token_it_is_to_write_nor_later_ones():
    model, changed = fresh_model(), TARGET.clone()
    changed[:, 3:] = 10
    with torch.no_grad():
        torch.testing.assert_close(model(SOURCE, changed)[0][:, :4], model(SOURCE, TARGET)[0][:, :4])
        assert not torch.allclose(model(SOURCE, changed)[0][:, 4], model(SOURCE, TARGET)[0][:, 4])


def test_the_order_of_the_source_matters():
    model = fresh_model()
    with torch.no_grad():
        assert not torch.allclose(model(SOURCE[:1].flip(1), TARGET[:1])[0], model(SOURCE[:1], TARGET[:1])[0])


def test_writing_step_by_step_with_the_kept_source_is_the_parallel_pass():
    model = fresh_model()
    first = torch.cat([torch.full((3, 1), START), TARGET[:, :-1]], dim=1)
    with torch.no_grad():
        prepared = model.encode(SOURCE)
        steps = [model.write(first[:, t : t + 1], prepared) for t in range(7)]
        logits, alignments = model(SOURCE, TARGET)
    torch.testing.assert_close(torch.cat([step for step, _ in steps], dim=1), logits)
    torch.testing.assert_close(torch.cat([rows for _, rows in steps], dim=2), alignments)
    assert len(prepared.past) == 7


def test_the_source_is_projected_once_however_long_the_target(monkeypatch):
    model, calls = fresh_model(), []
    answers = CrossAttention.answers
    monkeypatch.setattr(CrossAttention, "answers", lambda self, y: calls.append(1) or answers(self, y))
    model.greedy(SOURCE, 6)
    assert len(calls) == 1


def test_greedy_tokens_are_the_likeliest_ones_given_those_before():
    model = fresh_model(seed=1)
    tokens, alignments = model.greedy(SOURCE, 6)
    with torch.no_grad():
        logits, again = model(SOURCE, tokens)
    for row, wanted in zip(tokens, logits.argmax(dim=-1), strict=True):
        written = (row != PADDING).nonzero()[-1] + 1 if END in row else 6
        assert torch.equal(row[:written], wanted[:written])
    assert alignments.shape == (3, 3, 6, 5)
    torch.testing.assert_close(alignments[:, :, 0], again[:, :, 0])


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


def test_every_parameter_gets_a_finite_gradient():
    model = fresh_model()
    model.loss(SOURCE, TARGET).backward()
    for name, part in model.named_parameters():
        assert part.grad is not None, name
        assert part.grad.isfinite().all(), name
        assert part.grad.abs().sum() > 0, name


def test_a_few_steps_learn_to_copy():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = SequenceToSequence(8, 8, d_model=16)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
    source = torch.tensor([[3, 4, 5], [6, 7, 3], [4, 6, 7], [7, 5, 4]])
    target = torch.cat([source, torch.full((4, 1), END)], dim=1)
    for _ in range(60):
        optimiser.zero_grad()
        model.loss(source, target).backward()
        optimiser.step()
    assert torch.equal(model.greedy(source, 4)[0], target)

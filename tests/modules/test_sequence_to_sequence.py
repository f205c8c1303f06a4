"""The encoder-decoder without recurrence: equal to its parts, blind to padding and to the future, the same step by step."""

import torch

from attn_course.modules import CrossAttention, MultiHeadAttention
from tests.modules.test_encoder_decoder import SOURCE, START, TARGET, fresh_model


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


def test_writing_step_by_step_with_the_kept_source_is_the_parallel_pass():
    model = fresh_model("heads")
    first = torch.cat([torch.full((3, 1), START), TARGET[:, :-1]], dim=1)
    with torch.no_grad():
        prepared = model.encode(SOURCE)
        steps = [model.write(first[:, t : t + 1], prepared) for t in range(7)]
        logits, alignments = model(SOURCE, TARGET)
    torch.testing.assert_close(torch.cat([step for step, _ in steps], dim=1), logits)
    torch.testing.assert_close(torch.cat([rows for _, rows in steps], dim=2), alignments)
    assert len(prepared.past) == 7


def test_the_source_is_projected_once_however_long_the_target(monkeypatch):
    model, calls = fresh_model("heads"), []
    answers = CrossAttention.answers
    monkeypatch.setattr(CrossAttention, "answers", lambda self, y: calls.append(1) or answers(self, y))
    model.greedy(SOURCE, 6)
    assert len(calls) == 1

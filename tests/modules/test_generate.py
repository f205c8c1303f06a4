"""Writing after texts of several lengths, padded on the left, is writing after each alone; a temperature that is no number is refused."""

import re

import pytest
import torch

from attn_course.modules import Transformer

KINDS = {
    "learned positions": {"n_positions": 16},
    "rotary, grouped heads": {"rope_theta": 100.0, "n_kv_heads": 1, "norm": "rms"},
    "window, no positions": {"window": (3, 0)},
}
PAD = -7  # no token at all
TEXTS = [[3, 1, 4, 1, 5], [9], [2, 6, 5], [3, 5, 8]]


def model(kind):
    return Transformer(11, 12, 3, 2, **KINDS[kind], generator=torch.Generator().manual_seed(2)).double()


@pytest.mark.parametrize("use_cache", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_padding_on_the_left_changes_nothing_whatever_it_holds(kind, use_cache):
    made, lengths = model(kind), torch.tensor([len(text) for text in TEXTS])
    padded = torch.tensor([[PAD] * (5 - len(text)) + text for text in TEXTS])
    written = made.generate(padded, 6, lengths=lengths, use_cache=use_cache)
    assert torch.equal(written[:, :5], padded)
    for row, text in zip(written, TEXTS, strict=True):
        assert torch.equal(row[5:], made.generate(torch.tensor(text), 6)[len(text) :])
    batched = made.generate(padded.unflatten(0, (2, 2)), 6, lengths=lengths.unflatten(0, (2, 2)), use_cache=use_cache)
    assert torch.equal(batched.flatten(0, 1), written)
    assert torch.equal(made.generate(padded[0], 6, lengths=lengths[0]), written[0])


def test_without_padding_lengths_say_nothing_and_draws_are_the_same():
    made, ids = model("learned positions"), torch.tensor([TEXTS[2], TEXTS[3]])
    drawn = [
        made.generate(ids, 5, temperature=2.0, generator=torch.Generator().manual_seed(4), **more)
        for more in ({}, {"lengths": torch.tensor([3, 3])})
    ]
    assert torch.equal(*drawn)
    assert torch.equal(made.generate(ids, 0, lengths=torch.tensor([1, 3])), ids)


IDS = torch.tensor([TEXTS[2], TEXTS[3]])
MALFORMED = [
    ({"temperature": float("nan")}, "n_new and temperature must be 0 or more, ids hold a token or more; got 1, nan and shape (2, 3)"),
    ({"lengths": torch.tensor([3])}, "lengths must be from 1 to 3, one for each sequence, shape (2,); got [3]"),
    ({"lengths": torch.tensor([0, 3])}, "lengths must be from 1 to 3, one for each sequence, shape (2,); got [0, 3]"),
    ({"lengths": torch.tensor([4, 3])}, "lengths must be from 1 to 3, one for each sequence, shape (2,); got [4, 3]"),
]


@pytest.mark.parametrize(("options", "message"), MALFORMED, ids=[message for _, message in MALFORMED])
def test_what_cannot_be_is_refused(options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        model("learned positions").generate(IDS, 1, **options)

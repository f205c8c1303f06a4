"""The dates of lesson cross_attention: what is said, what it means, and that nothing held out is trained on."""

from datetime import date, timedelta

import numpy as np
import pytest
import torch

from attn_course.lessons.cross_attention.experiments import (
    DATES,
    EXAMPLE,
    PHRASINGS,
    PIECES,
    SEES,
    Translator,
    alignment,
    batch,
    parts_right,
    phrase,
    pieces,
    roles,
    seen,
    signs,
    sources,
    split,
    targets,
    without,
    write,
)


@pytest.mark.parametrize(
    ("day", "ordinal"), [(1, "first"), (12, "twelfth"), (20, "twentieth"), (23, "twenty-third"), (30, "thirtieth"), (31, "thirty-first")]
)
def test_days_have_their_ordinals(day, ordinal):
    assert phrase(date(2021, 3, day), PHRASINGS[0]) == f"the {ordinal} of March 2021"


def test_every_date_in_every_phrasing_can_be_encoded_and_says_its_parts():
    for n in range(366):
        day = date(2000, 1, 1) + timedelta(days=n)
        for phrasing in PHRASINGS:
            text = phrase(day, phrasing)
            said = roles(text)
            assert len(said) == len(pieces(text))
            assert "".join(p for p, role in zip(pieces(text), said, strict=True) if role == "year") == "2000"
            assert [p for p, role in zip(pieces(text), said, strict=True) if role == "month"] == [day.strftime("%B")]
            assert said.count("day") >= 1
            assert sources([text]).shape == (1, len(said))


def test_the_two_parts_share_no_date():
    train, held_out = map(set, split(np.random.default_rng(7)))
    assert not train & held_out
    assert len(train) + len(held_out) == 73_049
    assert EXAMPLE in held_out


def test_a_batch_is_padded_on_the_right_and_its_targets_end():
    texts, source, target = batch([date(1998, 5, 9), date(2021, 3, 31)], 50, np.random.default_rng(0))
    for row, text in zip(source, texts, strict=True):
        assert [PIECES[n] for n in row if n] == pieces(text)
        assert not row[len(pieces(text)) :].any()
    assert {signs(row) for row in target} == {"1998-05-09", "2021-03-31"}


def test_parts_are_counted_one_by_one():
    target = targets([date(1998, 5, 9), date(1998, 5, 9)])
    written = target.clone()
    written[0, 9] = target[0, 0]
    assert parts_right(written, target) == {"year": 1.0, "month": 1.0, "day": 0.5, "all": 0.5}


def test_rows_that_are_not_seen_get_no_weight_and_padding_changes_nothing():
    texts = [phrase(EXAMPLE, PHRASINGS[0]), phrase(date(1952, 10, 21), PHRASINGS[4])]
    source, model = sources(texts), Translator()
    for visible in (seen(source), seen(source, SEES[1]), without("month", texts, seen(source))):
        _, weights = write(model, source, visible)
        assert not weights[(visible == 0).expand(weights.shape)].any()
        torch.testing.assert_close(weights.sum(dim=-1), torch.ones(2, 11))
    assert seen(source, SEES[1]).sum(dim=-1).tolist() == [[1.0], [1.0]]
    assert without("month", texts, seen(source))[0, 0, :8].tolist() == [1, 1, 1, 0, 1, 1, 1, 1]
    alone, together = (model(each, targets([EXAMPLE] * len(each)), seen(each))[0] for each in (source[:1, :8], source))
    torch.testing.assert_close(together[:1], alone)


def test_stored_alignments_are_shares_of_a_date_that_was_written_right():
    for result in DATES.load().results:
        example = result["example"]
        assert (example["text"], example["written"]) == (phrase(EXAMPLE, PHRASINGS[0]), EXAMPLE.isoformat())
        weights = alignment(example)
        assert weights.shape == (10, len(pieces(example["text"])))
        np.testing.assert_allclose(weights.sum(axis=1), 1.0, atol=0.05)

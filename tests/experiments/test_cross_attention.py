"""The dates of lesson cross_attention: what is said, what it means, and that nothing held out is trained on."""

from datetime import date, timedelta

import numpy as np
import pytest
import torch

from attn_course.lessons.cross_attention.experiments import (
    DATES,
    EXAMPLES,
    KINDS,
    PHRASINGS,
    SOURCE_TOKENS,
    TARGET_TOKENS,
    alignment,
    batch,
    encode_sources,
    encode_targets,
    new_translator,
    parts_right,
    phrase,
    pieces,
    roles,
    split,
    written,
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
            assert "".join(p for p, role in zip(pieces(text), said, strict=True) if role.startswith("year")) == "2000"
            assert [p for p, role in zip(pieces(text), said, strict=True) if role == "month"] == [day.strftime("%B")]
            assert said.count("day") >= 1
            assert encode_sources([text]).shape == (1, len(said))


def test_the_three_parts_share_no_date_and_whole_years_are_held_out():
    parts = split(np.random.default_rng(7))
    train, new_dates, new_years = set(parts.train), set(parts.new_dates), set(parts.new_years)
    assert not train & new_dates
    assert not train & new_years
    assert not new_dates & new_years
    assert len(train) + len(new_dates) + len(new_years) == 73_049
    assert len({day.year for day in new_years}) == 20
    assert not {day.year for day in new_years} & {day.year for day in train}
    assert not train & set(EXAMPLES)


def test_a_batch_is_padded_on_the_right_and_its_targets_end():
    texts, days = batch([date(1998, 5, 9), date(2021, 3, 31)], 50, np.random.default_rng(0))
    source, target = encode_sources(texts), encode_targets(days)
    for row, text in zip(source, texts, strict=True):
        assert [SOURCE_TOKENS[n] for n in row if n] == pieces(text)
        assert not row[len(pieces(text)) :].any()
    assert "".join(TARGET_TOKENS[n] for n in target[0]) == f"{days[0].isoformat()}<end>"


def test_parts_are_counted_one_by_one():
    days = [date(1998, 5, 9), date(1998, 5, 9)]
    tokens = encode_targets(days)
    tokens[0, 9] = TARGET_TOKENS.index("8")
    assert parts_right(tokens, days) == {"year": 1.0, "month": 1.0, "day": 0.5}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_written_has_an_alignment_for_each_head(kind):
    texts = [phrase(day, PHRASINGS[4]) for day in EXAMPLES]
    tokens, heads = written(new_translator(kind, 0), texts)
    assert tokens.shape == (6, 11)
    assert len(heads) == {"additive": 1, "no recurrence": 2, "fixed vector": 0}[kind]
    assert all(head.shape[:2] == (6, 11) for head in heads)


def test_hidden_pieces_get_no_weight_and_hiding_nothing_changes_nothing():
    model, texts = new_translator("additive", 0), [phrase(day, PHRASINGS[2]) for day in EXAMPLES[:3]]
    assert torch.equal(written(model, texts)[0][:, 0], written(model, texts, hide="nothing")[0][:, 0])
    seen = []
    attend = model.aligner.attend
    model.aligner.attend = lambda *inputs: seen.append(attend(*inputs)) or seen[-1]
    written(model, texts, hide="month")
    for _, weights in seen:
        for row, text in zip(weights[:, 0], texts, strict=True):
            assert row[roles(text).index("month")] == 0.0
            assert float(row.sum()) == pytest.approx(1.0, abs=1e-5)


def test_stored_alignments_are_shares_of_six_dates_in_six_phrasings():
    for result in DATES.load().results:
        for kind, heads in (("additive", 1), ("no recurrence", 2)):
            found = result["examples"][kind]
            assert [example["text"] for example in found] == [phrase(d, p) for d, p in zip(EXAMPLES, PHRASINGS, strict=True)]
            for example in found:
                assert len(example["heads"]) == heads
                weights = alignment(example, heads - 1)
                assert weights.shape == (10, len(pieces(example["text"])))
                np.testing.assert_allclose(weights.sum(axis=1), 1.0, atol=0.05)

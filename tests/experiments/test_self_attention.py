"""The sentences and the tables of lesson self_attention are what its lesson says they are."""

import numpy as np
import pytest
import torch

from attn_course.lessons.self_attention import experiments, experiments_given, experiments_pairs
from attn_course.modules.attention import attention
from attn_course.modules.positions import rope


def read(sentence) -> str:
    return " ".join(experiments.WORDS[number] for number in sentence.tolist())


def test_the_place_of_the_answer_follows_the_adjective_and_the_words_in_front():
    one = np.array([0])
    first, place = experiments.sentences_of(one, one + 3, one, one + experiments.ADJECTIVES.index("angry"), 0)
    assert (read(first[0]), int(place[0])) == ("the cat chased the owl because it was angry", 1)
    second, place = experiments.sentences_of(one, one + 3, one, one + experiments.ADJECTIVES.index("slow"), 2)
    assert (read(second[0]), int(place[0])) == ("early today the cat chased the owl because it was slow", 6)
    assert experiments.NOUNS[int(experiments.answers(second, place)[0])] == "owl"
    assert experiments.WORDS[int(second[0, experiments.IT])] == "it"


def test_no_pair_of_nouns_is_both_trained_on_and_held_out():
    seen, unseen = experiments.pairs_of_nouns(np.random.default_rng(0))
    assert len(seen) + len(unseen) == 45
    assert {tuple(pair) for pair in seen.tolist()}.isdisjoint(tuple(pair) for pair in unseen.tolist())
    sentences, _ = experiments.draw(np.random.default_rng(1), seen, 500, 1)
    nouns = sentences[:, [2, 5]] - experiments.NUMBER[experiments.NOUNS[0]]
    assert {tuple(sorted(pair)) for pair in nouns.tolist()} <= {tuple(pair) for pair in seen.tolist()}


def test_given_sentences_are_numbered_as_the_lesson_says():
    texts, meant = experiments_given.sentences(experiments_given.NEW)
    assert texts.shape == (324, 9)
    assert (texts[:, 6] == experiments.NUMBER["it"]).all()
    assert experiments.WORDS[6:16] == experiments.NOUNS
    assert len(experiments.WORDS) == 25
    first = torch.tensor([experiments.WORDS[end] in experiments.OF_THE_FIRST for end in texts[:, 8]])
    assert torch.equal(meant + 6, torch.where(first, texts[:, 1], texts[:, 4]))


def test_one_layer_is_right_in_three_of_four_sentences_at_most_whatever_its_weights():
    two, ending = np.array([0, 3, 0, 3]), np.array([0, 0, 4, 4])  # both orders, an ending of either kind
    most = 0
    for seed in range(40):
        model = experiments.Resolver("one layer", torch.Generator().manual_seed(seed))
        for w in model.parameters():
            w.data *= 3
        texts, place = experiments.sentences_of(two, 3 - two, 0 * two, ending, 0)
        logits = model(texts)[0][:, [0, 3]]  # the two nouns: no other may be named
        right = 3 * logits.argmax(dim=-1) == experiments.answers(texts, place)
        most = max(most, int(right.sum()))
    assert most == 3


def test_two_heads_in_one_layer_are_right_in_all_new_sentences():
    texts, meant = experiments_given.sentences(experiments_given.NEW)
    number, places = experiments.NUMBER, torch.arange(9)
    x = torch.eye(32)[texts]  # 25 words; the last two features are the slowest clock
    output = torch.zeros(len(texts), 9, 32)
    for back, adjectives in ((5.0, experiments.OF_THE_SECOND), (2.0, experiments.OF_THE_FIRST)):
        w_query, w_key, w_value = torch.zeros(3, 32, 32)
        w_query[number["it"], 0], w_query[number["it"], 1] = 6 * np.cos(back), -6 * np.sin(back)
        w_query[number["it"], 30] = 10.0
        for noun in experiments.NOUNS:  # found best so many places back; only nouns pass something on
            w_key[number[noun], 0], w_key[number[noun], 30] = 6.0, 10.0
            w_value[number[noun], number[noun]] = 1.0
        for adjective in adjectives:  # draws all of the weight, and has nothing to say
            w_key[number[adjective], 30] = 30.0
        query, key = (rope(x @ w, places, layout="interleaved") for w in (w_query, w_key))
        output += attention(query, key, x @ w_value)[0]
    named = (x + output)[:, experiments.IT, 6:16].argmax(dim=-1)
    assert torch.equal(named, meant)


def test_the_nearest_noun_is_right_in_exactly_half_of_the_test_sentences():
    _, unseen = experiments.pairs_of_nouns(np.random.default_rng(0))
    for lead in range(3):
        _, place = experiments.all_sentences(unseen, lead)
        assert (place == lead + 4).double().mean() == 0.5


def test_without_places_mirror_images_get_the_same_answer():
    model = experiments.Resolver("without places", torch.Generator().manual_seed(0))
    one = np.array([2])
    logits = [model(experiments.sentences_of(*nouns, one, one, 0)[0])[0] for nouns in ((one, one + 3), (one + 3, one))]
    torch.testing.assert_close(*logits)


def test_half_of_the_answers_at_most_are_right_without_places():
    record = experiments.PRONOUNS.load()
    assert record.values("without places", "accuracy").max() <= 0.5


def test_a_hidden_place_gets_no_weight_from_it_and_other_rows_keep_theirs():
    model = experiments.Resolver("with places", torch.Generator().manual_seed(0))
    sentences, place = experiments.all_sentences(np.array([[0, 1]]), 1)
    before, after = model(sentences)[1][-1], model(sentences, hidden=place)[1][-1]
    rows = torch.arange(len(sentences))
    assert not after[rows, experiments.IT, place].any()
    torch.testing.assert_close(after[:, : experiments.IT], before[:, : experiments.IT])


def test_another_kind_of_model_is_refused():
    with pytest.raises(ValueError, match="kind must be one of"):
        experiments.Resolver("three layers", torch.Generator())


def test_planted_pairs_are_distinct_and_have_the_correlations_that_are_said():
    pairs = experiments_pairs.plant(np.random.default_rng(0))
    members = [feature for found in pairs.values() for pair in found for feature in pair]
    assert len(set(members)) == 12
    table = experiments_pairs.individuals(np.random.default_rng(1), pairs, 20_000)
    shares = np.stack([(table == count).mean(axis=0) for count in range(3)])
    np.testing.assert_allclose(shares, np.array([[0.25], [0.5], [0.25]]) * np.ones(20), atol=0.02)
    r = np.corrcoef(table, rowvar=False)
    for kind, wanted in (("alike", 0.85), ("opposite", -0.85), ("hidden", 0.0)):
        for a, b in pairs[kind]:
            assert r[a, b] == pytest.approx(wanted, abs=0.03)


def test_mutual_information_is_the_entropy_for_a_copy_and_nothing_for_independent_features():
    table = np.array([[0, 0, 0], [0, 0, 1], [1, 1, 0], [1, 1, 1]])
    information = experiments_pairs.mutual_information(table)
    assert information[0, 1] == pytest.approx(np.log(2))
    assert information[0, 2] == pytest.approx(0.0)


def test_found_counts_partners_in_both_directions_and_leaves_the_diagonal_out():
    matrix = np.array([[9.0, 2.0, 1.0], [0.0, 9.0, 1.0], [1.0, 2.0, 9.0]])
    assert experiments_pairs.partners_found(matrix, {"alike": [[0, 1]]}) == {"alike": 1}
    assert experiments_pairs.partners_found(matrix, {"alike": [[1, 2]]}) == {"alike": 2}


def test_the_hidden_entry_does_not_reach_the_guess():
    model = experiments_pairs.Guesser(torch.Generator().manual_seed(0))
    table = torch.tensor(experiments_pairs.individuals(np.random.default_rng(1), {}, 5))
    changed = table.clone()
    changed[:, 7] = (changed[:, 7] + 1) % 3
    torch.testing.assert_close(model(table, torch.full((5,), 7))[0], model(changed, torch.full((5,), 7))[0])

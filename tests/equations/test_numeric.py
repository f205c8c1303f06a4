"""Numeric and statistical claims: rounding is forgiven, nothing else is."""

import numpy as np
import pytest

from attn_course.equations.claims import Chain, Equal, Limit, Moment
from attn_course.equations.core import Registry
from attn_course.equations.errors import Malformed, Refuted, Unproved
from attn_course.equations.gates import mutant_problems
from attn_course.equations.mutants import mutants
from attn_course.equations.numeric import judge
from attn_course.equations.points import score_vectors

RNG = np.random.default_rng(7)


def test_rounding_of_the_largest_term_is_forgiven_and_more_is_not():
    values = RNG.normal(size=11)
    judge(Equal(values * (1 + 1e-15), values))
    with pytest.raises(Refuted, match=r"left side .*, right side .* at entry \d+"):
        judge(Equal(values * (1 + 1e-12), values))


def test_cancellation_is_forgiven_only_at_the_scale_that_is_named():
    cancelled = (1e8 + 0.1) - 1e8
    judge(Equal(cancelled, 0.1, scale=1e8))
    with pytest.raises(Refuted):
        judge(Equal(cancelled, 0.1))


def test_nan_is_refuted_and_equal_infinities_agree():
    with pytest.raises(Refuted):
        judge(Equal(np.array([1.0, np.nan]), np.array([1.0, np.nan])))
    judge(Equal(np.array([-np.inf]), np.array([-np.inf])))


def test_a_strict_bound_allows_no_equality_and_a_weak_one_allows_rounding():
    judge(Chain(0, "<", np.array([0.5, 1e-300]), "<", 1))
    judge(Chain(1.0 + 1e-16, "<=", 1.0))
    for broken in (Chain(0, "<", np.array([0.5, 0.0])), Chain(1.0 + 1e-12, "<=", 1.0), Chain(np.nan, "<=", 1.0)):
        with pytest.raises(Refuted, match="is false"):
            judge(broken)


def test_a_bound_that_should_be_attained_must_be():
    judge(Chain(2.0, "<=", 2.0, "<=", 3.0, tight=(True, False)))
    with pytest.raises(Refuted, match="2 <= 3 should be an equality at this point"):
        judge(Chain(2.0, "<=", 2.0, "<=", 3.0, tight=(True, True)))


def test_a_limit_is_reached_steadily_or_not_at_all():
    steps = 2.0 ** -np.arange(0, 40)
    judge(Limit(1 + steps, 1.0))
    with pytest.raises(Refuted, match="still 1 away"):
        judge(Limit(1 + steps, 2.0))
    with pytest.raises(Refuted, match="still"):
        judge(Limit(1 + steps[:5], 1.0))
    with pytest.raises(Refuted, match="steadily"):
        judge(Limit(np.array([1.0, 0.1, 5.0, 0.0]), 0.0))


@pytest.mark.parametrize(
    ("claim", "says"),
    [
        (Equal(np.ones(3), np.ones(4)), r"differ in shape: \(3,\) and \(4,\)"),
        (Equal(np.ones(0), np.ones(0)), "an empty array claims nothing"),
        (Equal("one", 1.0), "real numbers"),
        (Equal([1.0, [2.0]], 1.0), "real numbers"),
        (Equal(1j, 1j), "real numbers"),
        (Limit(np.ones((2, 3)), np.ones(3)), "at least 3 steps"),
        (Moment(np.ones(99), 1.0), "at least 100 samples"),
        (Moment(np.ones((100, 2)), np.ones(3)), "shaped like its expectation"),
    ],
)
def test_what_is_no_claim_about_numbers_is_malformed(claim, says: str):
    with pytest.raises(Malformed, match=says):
        judge(claim)


@pytest.mark.parametrize(
    ("parts", "options"), [((1,), {}), ((1, "<"), {}), ((1, ">", 2), {}), ((1, 2, 3), {}), ((1, "<", 2), {"tight": (True, True)})]
)
def test_a_chain_wants_terms_with_signs_between(parts, options):
    with pytest.raises(Malformed):
        Chain(*parts, **options)


def test_a_true_moment_passes_and_a_false_one_does_not():
    samples = RNG.normal(size=(40_000, 3)) + np.array([1.0, 2.0, -3.0])
    judge(Moment(samples, np.array([1.0, 2.0, -3.0])))
    with pytest.raises(Refuted, match=r"sample mean .* \+- .*, expected 2.1 at entry 1"):
        judge(Moment(samples, np.array([1.0, 2.1, -3.0])))


def test_too_few_samples_to_tell_is_a_failure_of_its_own():
    with pytest.raises(Unproved, match="too few samples to tell"):
        judge(Moment(RNG.normal(size=200) + 1, 1.0))
    with pytest.raises(Unproved, match="too few samples to tell"):
        judge(Moment(RNG.normal(size=200_000), 0.0))  # nothing has a size of 0: name a scale
    judge(Moment(RNG.normal(size=200_000), 0.0, scale=1.0))


def variance_of_a_dot_product(rng):
    d_k = 7
    query, key = rng.normal(size=(2, 100_000, 7))
    return Moment((query * key).sum(axis=-1) ** 2, d_k, resolution=0.02)


def test_a_statistical_equation_rejects_its_mutants_and_wrong_forms():
    registry = Registry()
    equation = registry.equation("variance-of-a-score", r"\mathrm{Var}[q \cdot k] = d_k", rows=["C1"], kind="statistical", scope="d_k = 7")(
        variance_of_a_dot_product
    )
    registry.verify("variance-of-a-score")
    assert mutant_problems(equation) == []
    assert {mutant.change for mutant in mutants(equation) if mutant.fate == "rejected"} >= {
        "7 -> 8 (statement 1)",
        "moved by ten resolutions (equation 1 of the line)",
    }
    with pytest.raises(Refuted):
        equation.check(lambda rng: Moment((rng.normal(size=(2, 100_000, 7)).prod(axis=0)).sum(axis=-1) ** 2, 7**2))


def test_a_kind_claims_only_what_it_can_judge():
    registry = Registry()
    registry.equation("variance-of-a-score", "?", rows=["C1"], kind="numeric")(variance_of_a_dot_product)
    with pytest.raises(Malformed, match="a numeric equation cannot claim a Moment"):
        registry.verify("variance-of-a-score")


def test_the_score_vectors_hold_what_formulas_stumble_over():
    vectors = list(score_vectors(np.random.default_rng(0)))
    assert {vector.size for vector in vectors} == set(range(1, 8))
    assert any(vector.size > 2 and (vector == vector.max()).sum() not in (1, vector.size) for vector in vectors)
    assert any(np.ptp(vector) == 0 and vector.size > 1 for vector in vectors)
    assert max(vector.max() for vector in vectors) > 710  # exp overflows
    assert min(vector.max() for vector in vectors) < -746  # every exp underflows
    assert max(np.ptp(vector) for vector in vectors) > 1000

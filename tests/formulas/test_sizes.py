"""The sizes a formula is tried at: three sets of different primes and one of equal sizes."""

import pytest
import sympy

from attn_course.formulas import size_sets


@pytest.mark.parametrize(
    ("letters", "relations"),
    [
        ("n", ()),
        ("T_q T_k d_k d_v", ()),
        ("T_q T_k d_k d_v", ("T_k >= T_q",)),
        ("d_model H d_k", ("d_model = H d_k",)),
        ("d_model H g H_kv d_k T", ("d_model = H d_k", "H = g H_kv")),
        ("T w", ("T > w",)),
        ("T_q T_k d_x d_y d_k d_v", ()),
    ],
)
def test_sizes_are_different_primes_and_once_equal(letters, relations):
    *primes, equal = size_sets(letters, relations)
    products = {relation.split(" = ")[0]: relation.split(" = ")[1].split() for relation in relations if " = " in relation}
    assert len(primes) == 3
    assert len({tuple(sizes.items()) for sizes in primes}) == 3
    for sizes in primes:
        assert list(sizes) == letters.split()
        assert len(set(sizes.values())) == len(sizes)
        assert all(sympy.isprime(size) and size >= 3 for name, size in sizes.items() if name not in products)
    for sizes in (*primes, equal):
        for name, factors in products.items():
            assert sizes[name] == sympy.prod(sizes[factor] for factor in factors)
        for greater, sign, less in (relation.split() for relation in relations if ">" in relation):
            assert sizes[greater] > sizes[less] or (sign == ">=" and sizes[greater] == sizes[less])
    if not relations:
        assert len(set(equal.values())) == 1


def test_a_seed_gives_the_same_sizes_and_another_seed_others():
    assert size_sets("a b c d", seed=1) == size_sets("a b c d", seed=1)
    assert size_sets("a b c d", seed=1) != size_sets("a b c d", seed=2)


@pytest.mark.parametrize(
    ("relation", "problem"),
    [("a = c", "relation wants"), ("a << b", "relation wants"), ("a > a", "no sizes"), ("a = a b", "products of each other")],
)
def test_a_relation_that_cannot_be_kept_is_refused(relation, problem):
    with pytest.raises(ValueError, match=problem):
        size_sets("a b", (relation,))

"""The sizes at which a formula is tried: three sets of different primes, which shapes and values tell apart, and one of equal sizes."""

import itertools
import re
from collections.abc import Iterable, Mapping
from typing import TypeAlias

import numpy as np

PRIMES = (3, 5, 7, 11, 13, 17, 19, 23)
Parsed: TypeAlias = tuple[list[str], dict[str, list[str]], list[tuple[str, str, str]]]
EQUAL = 6  # of every size in the fourth set: even, unlike the primes, and 6 * 5 / 2, 6^2, 2^6 are different numbers


def size_sets(letters: str, relations: Iterable[str] = (), seed: int = 0) -> list[dict[str, int]]:
    """Draw four sets of sizes, the smallest primes from 3 on in three orders, then all equal; the same for the same seed.

    `letters` are their names, "T_q T_k d_k d_v", and `relations` what binds them, which may stand behind the names too, after commas:
    "d_model = H d_k" (a product, which then differs from every other size) or "T_k >= T_q", "T > w" (an order). Raises ValueError if
    a relation cannot be read, or no order of the primes fulfils all of them.
    """
    names, products, orders = parsed(letters, relations)
    free = [name for name in names if name not in products]
    rng = np.random.default_rng(seed)
    found: list[dict[str, int]] = []
    orders_left = {*itertools.permutations(PRIMES[: len(free)])} if len(free) < 4 else {()}  # of few letters all are soon tried
    for _ in range(1000):
        drawn = tuple(map(int, rng.permutation(PRIMES[: len(free)])))
        orders_left.discard(drawn)
        sizes = with_products(dict(zip(free, drawn, strict=True)), products)
        if sizes not in found and len(set(sizes.values())) == len(sizes) and in_order(sizes, orders):
            found.append(sizes)
        if len(found) == 3 or not orders_left:
            break
    if not found:
        raise ValueError(f"no sizes fulfil {', '.join(f'{a} {sign} {b}' for a, sign, b in orders)}")
    ranks = sorted(free, key=found[0].__getitem__)
    while len(found) < 3:  # one or two letters: take larger primes too, in the same order
        primes = [prime for prime in PRIMES if prime not in {size for sizes in found for size in sizes.values()}] or PRIMES
        found.append(with_products(dict(zip(ranks, primes, strict=False)), products))
    equal = dict.fromkeys(free, EQUAL) | {greater: EQUAL + 1 for greater, sign, _ in orders if sign == ">"}
    return [{name: sizes[name] for name in names} for sizes in [*found, with_products(equal, products)]]


def parsed(letters: str, relations: Iterable[str] = ()) -> Parsed:
    """Return the letters, those that are products of others, and the orders; relations may stand behind the letters, after commas."""
    listed, *more = (part.strip() for part in letters.split(","))
    names, products, orders = listed.split(), dict[str, list[str]](), list[tuple[str, str, str]]()
    for relation in (*more, *relations):
        match = re.fullmatch(r"(\w+) (=|>=|>) (\w+(?: \w+)*)", relation)
        if match is None or not {match[1], *match[3].split()} <= {*names}:
            raise ValueError(f'relation wants "d = H d_k" or "T_k >= T_q" between the sizes {listed}; got {relation!r}')
        if match[2] == "=":
            products[match[1]] = match[3].split()
        else:
            orders.append((match[1], match[2], match[3]))
    return names, products, orders


def in_products(letters: str) -> set[str]:
    """Return the letters that are products of others, and those others."""
    products = parsed(letters)[1] if letters else {}
    return {name for whole, factors in products.items() for name in (whole, *factors)}


def with_products(sizes: dict[str, int], products: dict[str, list[str]]) -> dict[str, int]:
    """Return sizes and those that are products of them."""
    sizes, left = dict(sizes), dict(products)
    while left:
        ready = [name for name, factors in left.items() if all(factor in sizes for factor in factors)]
        if not ready:
            raise ValueError(f"{' and '.join(left)} are products of each other")
        for name in ready:
            sizes[name] = int(np.prod([sizes[factor] for factor in left.pop(name)]))
    return sizes


def in_order(sizes: Mapping[str, int], orders: Iterable[tuple[str, str, str]]) -> bool:
    """Whether sizes are in those orders."""
    return all(sizes[a] > sizes[b] or (sign == ">=" and sizes[a] == sizes[b]) for a, sign, b in orders)

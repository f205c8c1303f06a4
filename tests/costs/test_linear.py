"""Linear attention and the delta rule: each form counted in loops that give what the reference gives."""

import numpy as np
import pytest

from attn_course import costs, reference
from tests.costs.counting import Counted, Tally, average, dot, values

SIZES = [(7, 3, 5), (1, 2, 3), (0, 3, 2), (6, 1, 1)]  # length, d_k, d_v


def arrays(length, d_k, d_v):
    rng = np.random.default_rng(7)
    key = rng.normal(size=(length, d_k))
    return rng.normal(size=(length, d_k)), key / np.linalg.norm(key, axis=-1, keepdims=True), rng.normal(size=(length, d_v))


def read(state, row, d_v, tally):
    """row @ state."""
    return average(row, state, d_v, tally)


def write(state, row, value):
    """state + outer(row, value)."""
    return [[have + a * b for have, b in zip(line, value, strict=True)] for line, a in zip(state, row, strict=True)]


def zeros(d_k, d_v, tally):
    return [[tally.zero() for _ in range(d_v)] for _ in range(d_k)]


def added(a, b):
    """Sums that a product ends with: the second product starts where the first stopped, so they are no operations of their own."""
    return [Counted(x.value + y.value, x.tally) for x, y in zip(a, b, strict=True)]


def linear_loops(query, key, value, d_k, d_v, form, chunk, tally):
    state, output = zeros(d_k, d_v, tally), []
    if form == "recurrent":
        for q, k, v in zip(query, key, value, strict=True):
            state = write(state, k, v)
            output.append(read(state, q, d_v, tally))
        return output
    if form == "parallel":
        return [average([dot(q, k, tally) for k in key[: i + 1]], value[: i + 1], d_v, tally) for i, q in enumerate(query)]
    for start in range(0, len(query), chunk):
        here = slice(start, start + chunk)
        inside = linear_loops(query[here], key[here], value[here], d_k, d_v, "parallel", chunk, tally)
        output += [added(read(state, q, d_v, tally), part) for q, part in zip(query[here], inside, strict=True)]
        for k, v in zip(key[here], value[here], strict=True):
            state = write(state, k, v)
    return output


@pytest.mark.parametrize(("length", "d_k", "d_v"), SIZES)
@pytest.mark.parametrize(("form", "chunk"), [("parallel", 64), ("recurrent", 64), ("chunked", 3), ("chunked", 1), ("chunked", 64)])
def test_linear_attention_takes_what_loops_take(length, d_k, d_v, form, chunk):
    tally, given = Tally(), arrays(length, d_k, d_v)
    output = linear_loops(*map(tally.numbers, given), d_k, d_v, form, chunk, tally)
    np.testing.assert_allclose(values(output).reshape(length, d_v), reference.linear_attention(*given), atol=1e-13)
    assert tally.flops == costs.linear_attention_flops(length, d_k, d_v, form=form, chunk=chunk)


def delta_loops(query, key, value, beta, d_k, d_v, form, chunk, tally):
    state, output = zeros(d_k, d_v, tally), []
    for start in range(0, len(query), 1 if form == "recurrent" else chunk):
        here = slice(start, start + (1 if form == "recurrent" else chunk))
        if form == "recurrent":
            answers = [read(state, k, d_v, tally) for k in key[here]]
            written = [_corrected(b, v, a) for b, v, a in zip(beta[here], value[here], answers, strict=True)]
            state = write(state, key[start], written[0])
            output.append(read(state, query[start], d_v, tally))
            continue
        u, w = [], []  # what the values and the keys write, solved position by position
        for i, (k, v, b) in enumerate(zip(key[here], value[here], beta[here], strict=True)):
            scores = [dot(k, key[start + j], tally) for j in range(i)]
            u.append(_corrected(b, v, average(scores, u, d_v, tally)))
            w.append(_corrected(b, k, average(scores, w, d_k, tally)))
        written = [_corrected(1.0, a, read(state, b, d_v, tally)) for a, b in zip(u, w, strict=True)]
        inside = linear_loops(query[here], key[here], written, d_k, d_v, "parallel", chunk, tally)
        output += [added(read(state, q, d_v, tally), part) for q, part in zip(query[here], inside, strict=True)]
        for k, part in zip(key[here], written, strict=True):
            state = write(state, k, part)
    return output


def _corrected(beta, target, answer):
    """beta (target - answer), uncounted: linear in the features."""
    return [Counted(float(beta) * (t.value - a.value), t.tally) for t, a in zip(target, answer, strict=True)]


@pytest.mark.parametrize(("length", "d_k", "d_v"), SIZES)
@pytest.mark.parametrize(("form", "chunk"), [("recurrent", 64), ("chunked", 3), ("chunked", 1), ("chunked", 64)])
def test_the_delta_rule_takes_what_loops_take(length, d_k, d_v, form, chunk):
    tally, given = Tally(), arrays(length, d_k, d_v)
    beta = np.random.default_rng(11).uniform(size=(length, 1))
    output = delta_loops(*map(tally.numbers, given), beta[:, 0], d_k, d_v, form, chunk, tally)
    np.testing.assert_allclose(values(output).reshape(length, d_v), reference.delta_rule_attention(*given, beta), atol=1e-13)
    assert tally.flops == costs.delta_rule_flops(length, d_k, d_v, form=form, chunk=chunk)


def test_the_normaliser_is_one_more_feature_of_the_values():
    for form in ("parallel", "recurrent", "chunked"):
        wanted = costs.linear_attention_flops(13, 3, 6, form=form, chunk=5)
        assert costs.linear_attention_flops(13, 3, 5, form=form, chunk=5, normalize=True) == wanted


def test_one_chunk_is_the_parallel_form_with_the_state_read_and_written():
    one = costs.linear_attention_flops(13, 3, 5, form="chunked", chunk=13)
    assert one - costs.linear_attention_flops(13, 3, 5, form="parallel") == costs.linear_attention_flops(13, 3, 5, form="recurrent")


@pytest.mark.parametrize(("d_k", "d_v", "d_phi"), [(3, 5, 3), (64, 64, 64), (2, 7, 31), (1, 1, 1), (5, 1, 2), (64, 128, 256)])
@pytest.mark.parametrize("is_causal", [True, False])
def test_the_crossover_is_where_the_flops_of_softmax_attention_pass_those_of_linear_attention(d_k, d_v, d_phi, is_causal):
    def linear_is_cheaper(length):
        pairs = costs.attended_pairs(length, length, is_causal=is_causal)
        return costs.linear_attention_flops(length, d_phi, d_v) < costs.attention_flops(pairs, d_k, d_v)

    found = costs.linear_attention_crossover_length(d_k, d_v, d_phi, is_causal=is_causal)
    cheaper = [length for length in range(1, 3 * found + 10) if linear_is_cheaper(length)]
    assert cheaper == list(range(found, 3 * found + 10))


def test_attention_that_is_not_causal_builds_one_state_at_the_same_cost():
    length, d_phi, d_v = 7, 3, 5
    built_and_read = costs.projection_flops(d_phi, length, d_v) + costs.projection_flops(length, d_phi, d_v)
    assert built_and_read == costs.linear_attention_flops(length, d_phi, d_v, form="recurrent")


def test_chunks_have_64_positions_unless_it_is_said_otherwise():
    for flops in (costs.linear_attention_flops, costs.delta_rule_flops):
        assert flops(200, 3, 5, form="chunked") == flops(200, 3, 5, form="chunked", chunk=64) != flops(200, 3, 5, form="chunked", chunk=65)

"""The formulas for FLOPs and parameters against counted loops, and the loops against the reference."""

from dataclasses import fields

import numpy as np
import pytest

from attn_course import costs, reference
from tests.costs.counting import Counted, Tally, attend, values
from tests.reference.support import latent_weights

SIZES = [(5, 7, 3, 11), (1, 1, 1, 1), (1, 13, 2, 3), (7, 1, 5, 2), (0, 5, 3, 2), (5, 0, 3, 2), (3, 2, 1, 0)]  # q_len, kv_len, d_k, d_v
LATENT = costs.LatentSizes(d_model=7, n_heads=3, d_query_latent=5, d_latent=4, d_head=3, d_rope=2, d_v=6)


def normal(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape)


def every(q_len, kv_len):
    return np.ones((q_len, kv_len), dtype=bool)


def test_a_tally_counts_a_product_of_matrices_by_multiplications():
    tally = Tally()
    product = tally.numbers(normal(5, 7)) @ tally.numbers(normal(7, 3))
    np.testing.assert_allclose(values(product), normal(5, 7) @ normal(7, 3), atol=1e-14)
    assert tally.flops == 2 * 5 * 7 * 3 == costs.projection_flops(5, 7, 3)


@pytest.mark.parametrize(("q_len", "kv_len", "d_k", "d_v"), SIZES)
def test_attention_takes_the_flops_that_loops_take(q_len, kv_len, d_k, d_v):
    tally, arrays = Tally(), (normal(q_len, d_k), normal(kv_len, d_k) + 1, normal(kv_len, d_v) - 1)
    output = attend(*map(tally.numbers, arrays), every(q_len, kv_len), tally)
    np.testing.assert_allclose(values(output), reference.attention(*arrays), atol=1e-13)
    assert tally.flops == costs.attention_flops(q_len * kv_len, d_k, d_v)


@pytest.mark.parametrize(
    "mask",
    [{"is_causal": True}, {"is_causal": True, "q_offset": 6}, {"window": (2, 1), "q_offset": 3}, {"is_causal": True, "q_offset": -2}],
)
def test_masked_pairs_cost_nothing_where_loops_skip_them(mask):
    tally, arrays = Tally(), (normal(5, 3), normal(11, 3), normal(11, 2))
    offset, (left, right) = mask.get("q_offset", 0), mask.get("window", (99, 99))
    behind = np.arange(5)[:, None] + offset - np.arange(11)  # how far the key lies behind the query
    seen = (behind >= (0 if mask.get("is_causal") else -right)) & (behind <= left)
    output = attend(*map(tally.numbers, arrays), seen, tally)
    np.testing.assert_allclose(values(output), reference.attention(*arrays, **mask), atol=1e-13)
    assert tally.flops == costs.attention_flops(costs.attended_pairs(5, 11, **mask), 3, 2)


@pytest.mark.parametrize(("q_len", "kv_len", "d_k", "d_v"), SIZES)
def test_the_gradients_take_five_products(q_len, kv_len, d_k, d_v):
    tally = Tally()
    arrays = normal(q_len, d_k), normal(kv_len, d_k) + 1, normal(kv_len, d_v), normal(q_len, d_v) - 1
    query, key, value, d_output = map(tally.numbers, arrays)
    scale = 1.0 / np.sqrt(d_k)
    weights = reference.softmax(values(query @ key.T) * scale)
    d_scores = tally.numbers(reference.softmax_vjp(weights, values(d_output @ value.T)) * scale)
    gradients = d_scores @ key, d_scores.T @ query, tally.numbers(weights).T @ d_output
    for got, wanted in zip(gradients, reference.attention_backward(*arrays), strict=True):
        np.testing.assert_allclose(values(got), wanted, atol=1e-13)
    assert tally.flops == costs.attention_backward_flops(q_len * kv_len, d_k, d_v)


@pytest.mark.parametrize(
    ("q_len", "kv_len", "n_heads", "n_kv_heads"), [(3, 5, 2, 2), (3, 5, 6, 3), (2, 3, 4, 1), (0, 2, 1, 1), (2, 0, 2, 1)]
)
def test_multi_head_attention_takes_what_loops_take(q_len, kv_len, n_heads, n_kv_heads):
    d_model, d_key_value, d_k, d_v, tally = 7, 5, 3, 2, Tally()
    shapes = (d_model, n_heads * d_k), (d_key_value, n_kv_heads * d_k), (d_key_value, n_kv_heads * d_v), (n_heads * d_v, d_model)
    x, y, weights = normal(q_len, d_model), normal(kv_len, d_key_value), [normal(*shape) for shape in shapes]
    w_query, w_key, w_value, w_output = map(tally.numbers, weights)
    query, key, value = tally.numbers(x) @ w_query, tally.numbers(y) @ w_key, tally.numbers(y) @ w_value
    heads = []
    for head in range(n_heads):
        kv_head = head // (n_heads // n_kv_heads)
        places = (query, head, d_k), (key, kv_head, d_k), (value, kv_head, d_v)
        parts = (rows[:, at * width : (at + 1) * width] for rows, at, width in places)
        heads.append(attend(*parts, every(q_len, kv_len), tally))
    output = np.concatenate(heads, axis=1) @ w_output
    wanted = reference.multi_head_attention(x, y, *weights, n_heads=n_heads, n_kv_heads=n_kv_heads)
    np.testing.assert_allclose(values(output), wanted, atol=1e-12)
    sizes = {"n_heads": n_heads, "n_kv_heads": n_kv_heads, "d_k": d_k, "d_v": d_v, "d_key_value": d_key_value}
    assert tally.flops == costs.multi_head_attention_flops(q_len, kv_len, d_model, **sizes)
    assert costs.multi_head_parameters(d_model, **sizes) == sum(weight.size for weight in weights)


def test_steps_of_decoding_project_the_new_position_only_and_cost_what_the_causal_pass_costs():
    steps = [costs.multi_head_attention_flops(1, past + 1, 12, n_heads=3, projected_kv_len=1) for past in range(11)]
    assert steps[10] == 4 * costs.projection_flops(1, 12, 12) + 3 * costs.attention_flops(11, 4, 4)
    assert sum(steps) == costs.multi_head_attention_flops(11, 11, 12, n_heads=3, pairs=costs.attended_pairs(11, 11, is_causal=True))


def test_biases_are_one_for_each_column():
    sizes = {"n_heads": 6, "n_kv_heads": 2, "d_k": 5, "d_v": 3, "d_key_value": 11}
    assert costs.multi_head_parameters(7, **sizes, bias=True) - costs.multi_head_parameters(7, **sizes) == 6 * 5 + 2 * 5 + 2 * 3 + 7


@pytest.mark.parametrize("n_gates", [1, 3, 4])
@pytest.mark.parametrize(("length", "d_in", "d_hidden"), [(5, 3, 7), (1, 2, 1), (0, 3, 5)])
def test_a_recurrent_layer_takes_what_loops_take(length, d_in, d_hidden, n_gates):
    tally, state = Tally(), np.zeros(d_hidden)
    pairs = [(tally.numbers(normal(d_in, d_hidden)), tally.numbers(normal(d_hidden, d_hidden))) for _ in range(n_gates)]
    for x in tally.numbers(normal(length, d_in)):
        state = np.tanh(sum(values(x @ w) + values(tally.numbers(state) @ u) for w, u in pairs))
    assert tally.flops == costs.recurrent_flops(length, d_in, d_hidden, n_gates=n_gates)


@pytest.mark.parametrize("absorbed", [False, True])
@pytest.mark.parametrize(("q_len", "kv_len"), [(3, 5), (1, 7), (2, 0), (0, 3)])
def test_scores_through_one_matrix_or_two_take_what_loops_take(absorbed, q_len, kv_len):
    d_query, d_key, d_k, tally = 7, 5, 3, Tally()
    x, y, w_query, w_key = normal(q_len, d_query), normal(kv_len, d_key), normal(d_query, d_k), normal(d_key, d_k)
    matrix = reference.absorb_query_key(w_query, w_key)[0]
    query = tally.numbers(x) @ tally.numbers(matrix if absorbed else w_query)
    key = tally.numbers(y) if absorbed else tally.numbers(y) @ tally.numbers(w_key)
    np.testing.assert_allclose(values(query @ key.T), x @ matrix @ y.T, atol=1e-12)
    assert tally.flops == costs.query_key_flops(q_len, kv_len, d_query, d_key, d_k, absorbed=absorbed)


def latent_loops(x, weights, past, form, tally):
    """Return the output for the last tokens, those before being in the cache; positions are all 0, so that RoPE is the identity."""
    s = LATENT
    w = {field.name: tally.numbers(getattr(weights, field.name)) for field in fields(weights)}
    new = tally.numbers(x[past:])
    query_latent = new @ w["w_query_down"]
    latent, key_rope = (
        np.concatenate([tally.numbers(x[:past] @ getattr(weights, name)), new @ w[name]]) for name in ("w_latent_down", "w_key_rope")
    )
    query_rope = query_latent @ w["w_query_rope"]
    mask = np.tri(len(new), len(x), past, dtype=bool)
    output = np.zeros((len(new), s.d_model))
    for head in range(s.n_heads):
        here, here_rope, here_v = (slice(head * width, (head + 1) * width) for width in (s.d_head, s.d_rope, s.d_v))
        w_query, w_key, w_value, w_output = (
            w["w_query_up"][:, here],
            w["w_key_up"][:, here],
            w["w_value_up"][:, here_v],
            w["w_output"][here_v],
        )
        if form == "naive":
            query, key, value = query_latent @ w_query, latent @ w_key, latent @ w_value
        elif form == "factored":
            query, key, value = query_latent @ w_query @ w_key.T, latent, latent
        else:  # the products of matrices are made once, before the count begins
            query_key, value_output = (tally.numbers(values(a) @ values(b)) for a, b in ((w_query, w_key.T), (w_value, w_output)))
            query, key, value = query_latent @ query_key, latent, latent
        query, key = np.concatenate([query, query_rope[:, here_rope]], axis=1), np.concatenate([key, key_rope], axis=1)
        rows = attend(query, key, value, mask, tally, scale=1.0 / np.sqrt(s.d_head + s.d_rope))
        rows = rows @ w_value if form == "factored" else rows
        output += values(rows @ (value_output if form == "absorbed" else w_output))
    return output


@pytest.mark.parametrize("form", ["naive", "factored", "absorbed"])
@pytest.mark.parametrize(("past", "new"), [(0, 5), (6, 1), (3, 2), (0, 1)])
def test_each_form_of_latent_attention_takes_what_loops_take(form, past, new):
    tally, weights = Tally(), latent_weights(**vars(LATENT))
    x = normal(past + new, LATENT.d_model)
    output = latent_loops(x, weights, past, form, tally)
    wanted = reference.latent_attention(x, weights, n_heads=LATENT.n_heads, positions=np.zeros(past + new, int))[past:]
    np.testing.assert_allclose(output, wanted, atol=1e-11)
    pairs = costs.attended_pairs(new, past + new, is_causal=True, q_offset=past)
    assert tally.flops == costs.latent_attention_flops(LATENT, new, past + new, form=form, pairs=pairs)


LINEAR_SIZES = [(7, 3, 5), (1, 2, 3), (0, 3, 2), (6, 1, 1)]  # length, d_k, d_v


def sequences(length, d_k, d_v):
    key = normal(length, d_k) + 1
    return normal(length, d_k), key / np.linalg.norm(key, axis=-1, keepdims=True), normal(length, d_v)


def outer(left, right):
    return left[:, None] * right[None, :]


def linear_loops(query, key, value, form, chunk, tally):
    if form == "parallel":
        rows = [(key[: i + 1] @ q) @ value[: i + 1] for i, q in enumerate(query)]
        return np.array(rows, dtype=object).reshape(len(query), value.shape[1])
    state, output = tally.numbers(np.zeros((key.shape[1], value.shape[1]))), np.zeros((0, value.shape[1]), object)
    size = 1 if form == "recurrent" else chunk
    for here in (slice(start, start + size) for start in range(0, len(query), size)):
        inside = 0 if form == "recurrent" else linear_loops(query[here], key[here], value[here], "parallel", chunk, tally)
        written = state + sum(outer(k, v) for k, v in zip(key[here], value[here], strict=True))
        output = np.concatenate([output, query[here] @ (written if form == "recurrent" else state) + inside])
        state = written
    return output


@pytest.mark.parametrize(("length", "d_k", "d_v"), LINEAR_SIZES)
@pytest.mark.parametrize(("form", "chunk"), [("parallel", 64), ("recurrent", 64), ("chunked", 3), ("chunked", 1), ("chunked", 64)])
def test_linear_attention_takes_what_loops_take(length, d_k, d_v, form, chunk):
    tally, given = Tally(), sequences(length, d_k, d_v)
    output = linear_loops(*map(tally.numbers, given), form, chunk, tally)
    np.testing.assert_allclose(values(output), reference.linear_attention(*given), atol=1e-13)
    assert tally.flops == costs.linear_attention_flops(length, d_k, d_v, form=form, chunk=chunk)


def corrected(beta, target, answer):
    """beta (target - answer), uncounted: linear in the features."""
    return np.array([Counted(beta * (float(t) - float(a)), t.tally) for t, a in zip(target, answer, strict=True)], dtype=object)


def delta_loops(query, key, value, beta, form, chunk, tally):
    d_k, d_v, size = key.shape[1], value.shape[1], 1 if form == "recurrent" else chunk
    state, output = tally.numbers(np.zeros((d_k, d_v))), np.zeros((0, d_v), object)
    for start in range(0, len(query), size):
        q, k, v, b = (array[start : start + size] for array in (query, key, value, beta))
        u, w = np.zeros((0, d_v), object), np.zeros((0, d_k), object)  # what values and keys write, solved position by position
        for i in range(len(k)):
            scores = k[:i] @ k[i]
            u = np.concatenate([u, [corrected(b[i], v[i], scores @ u)]])
            w = np.concatenate([w, [corrected(b[i], k[i], scores @ w)]])
        if form == "recurrent":
            state = state + outer(k[0], corrected(b[0], v[0], k[0] @ state))
            output = np.concatenate([output, q @ state])
            continue
        written = np.array([corrected(1.0, *pair) for pair in zip(u, w @ state, strict=True)], dtype=object)
        output = np.concatenate([output, q @ state + linear_loops(q, k, written, "parallel", chunk, tally)])
        state = state + sum(outer(*pair) for pair in zip(k, written, strict=True))
    return output


@pytest.mark.parametrize(("length", "d_k", "d_v"), LINEAR_SIZES)
@pytest.mark.parametrize(("form", "chunk"), [("recurrent", 64), ("chunked", 3), ("chunked", 1), ("chunked", 64)])
def test_the_delta_rule_takes_what_loops_take(length, d_k, d_v, form, chunk):
    tally, given = Tally(), sequences(length, d_k, d_v)
    beta = np.random.default_rng(11).uniform(size=(length, 1))
    output = delta_loops(*map(tally.numbers, given), beta[:, 0], form, chunk, tally)
    np.testing.assert_allclose(values(output), reference.delta_rule_attention(*given, beta), atol=1e-13)
    assert tally.flops == costs.delta_rule_flops(length, d_k, d_v, form=form, chunk=chunk)


def test_the_normaliser_is_one_more_feature_of_the_values():
    for form in ("parallel", "recurrent", "chunked"):
        wanted = costs.linear_attention_flops(13, 3, 6, form=form, chunk=5)
        assert costs.linear_attention_flops(13, 3, 5, form=form, chunk=5, normalize=True) == wanted


def test_chunks_have_64_positions_unless_it_is_said_otherwise():
    for flops in (costs.linear_attention_flops, costs.delta_rule_flops):
        assert flops(200, 3, 5, form="chunked") == flops(200, 3, 5, form="chunked", chunk=64) != flops(200, 3, 5, form="chunked", chunk=65)

"""What gates cost, against loops that count, and what a mixed stack keeps, against the arrays of the reference."""

import numpy as np
import pytest

from attn_course import costs, reference
from tests.costs.counting import Counted, Tally, values
from tests.costs.test_flops import LINEAR_SIZES, corrected, outer, sequences


class Decays:
    """Multiplications without an addition: one FLOP each."""

    def __init__(self):
        self.flops = 0

    def __call__(self, array, factor, *, counts=True):
        self.flops += array.size * counts
        factors = np.broadcast_to(factor, array.shape)
        made = [Counted(float(number) * float(one), number.tally) for number, one in zip(array.flat, factors.flat, strict=True)]
        return np.array([*made, None], dtype=object)[:-1].reshape(array.shape)


def gated_loops(query, key, value, beta, gates, form, chunk, tally, decay):
    """The gated delta rule as the reference does it; factors linear in the features, or one for each pair, do not count."""
    d_k, d_v, size = key.shape[1], value.shape[1], 1 if form == "recurrent" else chunk
    inside = gates.shape[1] > 1
    state, output = tally.numbers(np.zeros((d_k, d_v))), np.zeros((0, d_v), object)
    for start in range(0, len(query), size):
        q, k, v, b, a = (array[start : start + size] for array in (query, key, value, beta, gates))
        since = np.cumprod(a, axis=0)

        def left(i, j, a=a):
            return np.prod(a[j + 1 : i + 1], axis=0)

        def scores(row, i, upto, k=k, left=left):
            kept = [decay(k[j], left(i, j), counts=inside and j < i) if inside else k[j] for j in range(upto)]
            found = np.array([kept_j @ row for kept_j in kept] + [None], dtype=object)[:-1]
            return found if inside else decay(found, [left(i, j)[0] for j in range(upto)], counts=False)

        if form == "recurrent":
            state = decay(state, np.broadcast_to(a[0], d_k)[:, None])
            state = state + outer(k[0], corrected(b[0], v[0], k[0] @ state))
            output = np.concatenate([output, q @ state])
            continue
        u, w = np.zeros((0, d_v), object), np.zeros((0, d_k), object)
        for i in range(len(k)):
            row = scores(k[i], i, i)
            u = np.concatenate([u, [corrected(b[i], v[i], row @ u)]])
            w = np.concatenate([w, [corrected(b[i], decay(k[i], since[i], counts=False), row @ w)]])
        written = np.array([corrected(1.0, *pair) for pair in zip(u, w @ state, strict=True)], dtype=object)
        pairs = np.array([scores(q[i], i, i + 1) @ written[: i + 1] for i in range(len(q))], dtype=object)
        output = np.concatenate([output, decay(q, since, counts=False) @ state + pairs])
        late = [decay(k[j], left(len(k) - 1, j), counts=False) for j in range(len(k))]
        state = decay(state, np.broadcast_to(since[-1], d_k)[:, None]) + sum(outer(*pair) for pair in zip(late, written, strict=True))
    return output


@pytest.mark.parametrize(("length", "d_k", "d_v"), LINEAR_SIZES)
@pytest.mark.parametrize(("form", "chunk"), [("recurrent", 64), ("chunked", 3), ("chunked", 1), ("chunked", 64)])
@pytest.mark.parametrize("per_channel", [False, True])
def test_the_gated_delta_rule_takes_what_loops_take(length, d_k, d_v, form, chunk, per_channel):
    rng, tally, decay = np.random.default_rng(11), Tally(), Decays()
    given, beta = sequences(length, d_k, d_v), rng.uniform(size=(length, 1))
    d_k_gates = max(d_k, 2) if per_channel and d_k > 1 else 1
    gates = rng.uniform(0.3, 1, size=(length, d_k_gates))
    output = gated_loops(*map(tally.numbers, given), beta[:, 0], gates, form, chunk, tally, decay)
    wanted = reference.delta_rule_attention(*given, beta, log_decay=np.log(gates))
    np.testing.assert_allclose(values(output), wanted, atol=1e-13)
    found = costs.gated_delta_rule_flops(length, d_k, d_v, per_channel=per_channel and d_k > 1, form=form, chunk=chunk)
    assert tally.flops + decay.flops == found


@pytest.mark.parametrize("length", [0, 1, 13])
def test_a_mixed_stack_keeps_states_and_the_caches_of_every_so_many_layers(length):
    sizes = {"n_heads": 6, "n_kv_heads": 2, "d_k": 3, "d_v": 5}
    rng = np.random.default_rng(7)
    query, key, value = (rng.normal(size=(6, length, width)) for width in (3, 3, 5))
    _, state = reference.delta_rule_attention(query, key, value, np.ones((length, 1)), return_state=True)
    cache = reference.KeyValueCache()
    kept = cache.append(key[:2], value[:2])
    for layers, every, attending in ((11, 4, 2), (11, 1, 11), (3, 4, 0), (0, 4, 0)):
        found = costs.hybrid_cache_bytes(length, layers, every=every, **sizes, bytes_per_number=8, bytes_per_state_number=8)
        assert found == (layers - attending) * state.nbytes + attending * sum(part.nbytes for part in kept)

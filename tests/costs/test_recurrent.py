"""Recurrent layers: FLOPs and parameters against counted loops, and what has to wait for what."""

import numpy as np
import pytest
import torch

from attn_course import costs
from tests.costs.counting import Tally, project, values


@pytest.mark.parametrize("n_gates", [1, 3, 4])
@pytest.mark.parametrize(("length", "d_in", "d_hidden"), [(5, 3, 7), (1, 2, 1), (0, 3, 5)])
def test_a_recurrent_layer_takes_what_loops_take(length, d_in, d_hidden, n_gates):
    rng, tally = np.random.default_rng(7), Tally()
    xs = tally.numbers(rng.normal(size=(length, d_in)))
    pairs = [
        (tally.numbers(rng.normal(size=(d_in, d_hidden))), tally.numbers(rng.normal(size=(d_hidden, d_hidden)))) for _ in range(n_gates)
    ]
    state = [tally.zero() for _ in range(d_hidden)]
    for x in xs:
        gates = [(project([x], w, tally)[0], project([state], u, tally)[0]) for w, u in pairs]
        state = tally.numbers(
            np.tanh([sum(a.value + b.value for a, b in zip(*gate, strict=True)) for gate in gates]).mean() * np.ones(d_hidden)
        )
    assert tally.flops == costs.recurrent_flops(length, d_in, d_hidden, n_gates=n_gates)
    assert costs.recurrent_parameters(d_in, d_hidden, n_gates=n_gates, bias=False) == sum(values(w).size + values(u).size for w, u in pairs)


@pytest.mark.parametrize(("layer", "n_gates"), [(torch.nn.RNN, 1), (torch.nn.GRU, 3), (torch.nn.LSTM, 4)])
def test_parameters_are_those_of_torch_but_for_its_second_bias(layer, n_gates):
    mine = costs.recurrent_parameters(3, 7, n_gates=n_gates)
    assert mine == sum(p.numel() for p in layer(3, 7).parameters()) - n_gates * 7


class Waiting:
    """A value that knows how many matrix products in a row led to it."""

    def __init__(self, depth=0):
        self.depth = depth

    def product(self, other):
        return Waiting(max(self.depth, other.depth) + 1)

    def plus(self, other):
        return Waiting(max(self.depth, other.depth))


@pytest.mark.parametrize("length", [1, 2, 7, 100])
def test_attention_waits_four_times_and_a_recurrent_layer_once_for_each_position(length):
    matrix = Waiting()
    xs = [Waiting() for _ in range(length)]
    projected = [x.product(matrix) for x in xs]
    state = projected[0]  # the state before is zero
    for x in projected[1:]:
        state = x.plus(state.product(matrix))
    assert state.depth == costs.sequential_products("recurrent", length)

    scores = [projected[-1].product(key) for key in projected]
    output = max((score.product(value) for score, value in zip(scores, projected, strict=True)), key=lambda part: part.depth)
    assert output.product(matrix).depth == costs.sequential_products("attention", length)


def test_nothing_waits_for_an_empty_sequence():
    assert [costs.sequential_products(layer, 0) for layer in ("attention", "recurrent")] == [0, 0]


def test_self_attention_without_projections_is_cheaper_than_recurrence_while_the_sequence_is_shorter_than_the_features():
    d = 64
    shorter = [n for n in range(1, 200) if costs.attention_flops(n * n, d, d) < costs.recurrent_flops(n, d, d)]
    assert shorter == list(range(1, d))

"""The recurrent reader computes the recurrence that its docstring names, and starts as it says."""

import math

import numpy as np
import pytest
import torch

from attn_course.modules import RecurrentReader


def generator(seed=3):
    return torch.Generator().manual_seed(seed)


def weights_of(reader):
    return {name.split(".")[-1]: part.detach().double().numpy() for name, part in reader.named_parameters()}


def logistic(x):
    return 1.0 / (1.0 + np.exp(-x))


def test_the_rnn_is_the_recurrence_written_as_a_loop():
    reader = RecurrentReader(3, 5, 2, "rnn", generator=generator())
    x, w = np.random.default_rng(1).normal(size=(7, 11, 3)), weights_of(reader)
    state = np.zeros((7, 5))
    for t in range(11):
        state = np.tanh(x[:, t] @ w["weight_ih_l0"].T + state @ w["weight_hh_l0"].T + w["bias_ih_l0"] + w["bias_hh_l0"])
    with torch.no_grad():
        answer = reader(torch.tensor(x, dtype=torch.float32))
    np.testing.assert_allclose(answer, state @ w["weight"].T + w["bias"], atol=1e-5)


def test_the_lstm_is_the_recurrence_written_as_a_loop():
    reader = RecurrentReader(3, 5, 2, "lstm", forget_bias=2.0, generator=generator())
    x, w = np.random.default_rng(1).normal(size=(7, 11, 3)), weights_of(reader)
    state, cell = np.zeros((2, 7, 5))
    for t in range(11):
        gates = x[:, t] @ w["weight_ih_l0"].T + state @ w["weight_hh_l0"].T + w["bias_ih_l0"] + w["bias_hh_l0"]
        enter, forget, new, leave = np.split(gates, 4, axis=1)
        cell = logistic(forget) * cell + logistic(enter) * np.tanh(new)
        state = logistic(leave) * np.tanh(cell)
    with torch.no_grad():
        answer = reader(torch.tensor(x, dtype=torch.float32))
    np.testing.assert_allclose(answer, state @ w["weight"].T + w["bias"], atol=1e-5)


@pytest.mark.parametrize(("kind", "gates"), [("rnn", 1), ("lstm", 4)])
def test_matrices_between_states_are_orthogonal_and_biases_zero_but_for_the_forget_gates(kind, gates):
    w = weights_of(RecurrentReader(3, 7, 2, kind, forget_bias=1.5, generator=generator()))
    for square in np.split(w["weight_hh_l0"], gates):
        np.testing.assert_allclose(square @ square.T, np.eye(7), atol=1e-6)
    biases = w["bias_ih_l0"].reshape(gates, 7) + w["bias_hh_l0"].reshape(gates, 7)
    assert biases.tolist() == [[1.5 if gate == 1 else 0.0] * 7 for gate in range(gates)]


def test_a_seed_gives_the_same_first_weights_and_global_randomness_plays_no_part():
    torch.manual_seed(1)
    first = RecurrentReader(3, 5, 2, "lstm", generator=generator()).state_dict()
    torch.manual_seed(2)
    again = RecurrentReader(3, 5, 2, "lstm", generator=generator()).state_dict()
    assert all(torch.equal(first[name], again[name]) for name in first)


def test_the_inputs_keep_their_variance():
    w = weights_of(RecurrentReader(400, 300, 2, generator=generator()))
    assert w["weight_ih_l0"].std() == pytest.approx(1 / 20, rel=0.02)


def test_the_gradient_at_the_first_input_is_the_product_of_the_factors():
    """Eq. recurrent-gradient-product for one unit, times the last and the first weight."""
    reader = RecurrentReader(1, 1, 1, generator=generator())
    x = torch.tensor(np.random.default_rng(1).normal(size=(1, 7, 1)), dtype=torch.float32, requires_grad=True)
    reader(x).backward()
    w = {name: part.item() for name, part in weights_of(reader).items()}
    states, state = [], 0.0
    for x_t in x.detach().ravel().tolist():
        state = math.tanh(w["weight_hh_l0"] * state + w["weight_ih_l0"] * x_t)
        states.append(state)
    slope = w["weight"] * w["weight_ih_l0"] * (1 - states[0] ** 2) * math.prod(w["weight_hh_l0"] * (1 - h**2) for h in states[1:])
    assert x.grad[0, 0, 0].item() == pytest.approx(slope, rel=1e-4)


def test_another_kind_is_refused():
    with pytest.raises(ValueError, match=r"kind must be one of \('rnn', 'lstm'\); got 'gru'"):
        RecurrentReader(3, 5, 2, "gru")

"""The recurrent reader computes the recurrence that its docstring names, and starts as it says."""

import numpy as np
import pytest
import torch

from attn_course.modules import RecurrentReader


def generator():
    return torch.Generator().manual_seed(3)


def weights_of(reader):
    return {name.split(".")[-1]: part.detach().double().numpy() for name, part in reader.named_parameters()}


def logistic(x):
    return 1.0 / (1.0 + np.exp(-x))


@pytest.mark.parametrize(("kind", "options"), [("rnn", {}), ("lstm", {"forget_bias": 2.0})])
def test_a_reader_is_the_recurrence_written_as_a_loop(kind, options):
    reader = RecurrentReader(3, 5, 2, kind, **options, generator=generator())
    x, w = np.random.default_rng(1).normal(size=(7, 11, 3)), weights_of(reader)
    state, cell = np.zeros((2, 7, 5))
    for t in range(11):
        gates = x[:, t] @ w["weight_ih_l0"].T + state @ w["weight_hh_l0"].T + w["bias_ih_l0"] + w["bias_hh_l0"]
        if kind == "rnn":
            state = np.tanh(gates)
            continue
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

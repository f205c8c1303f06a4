"""A task whose answer is a torch module: constructed, filled, called, and its gradients judged, in the notebook as in a class."""

import numpy as np
import pytest
import torch

from attn_course import numbers
from attn_course.classroom.grader import Grader
from attn_course.tasks import Case, CheckFailed, Task, Wrong, check, registry
from attn_course.tasks.module_call import ModuleCall, call_module
from tests.classroom import toy
from tests.classroom.toy import NUMBERS
from tests.tasks.toys import COMMON


def scaled_linear(scale=1.0, bias_sign=1.0):
    """A class of modules: x -> scale * (x w) + bias."""

    class Scaled(torch.nn.Module):
        def __init__(self, d_in, d_out):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(d_in, d_out))
            self.bias = torch.nn.Parameter(torch.zeros(d_out))
            self.register_buffer("factor", torch.tensor(scale))

        def forward(self, x):
            return self.factor * (x @ self.weight) + bias_sign * self.bias

    return Scaled


class Detached(scaled_linear(2.0)):
    def forward(self, x):
        return super().forward(x) + 0.0 * self.bias - (self.bias - self.bias.detach())  # the right numbers, a wrong gradient


def _cases(rng):
    def case(name, rows):
        state = {"weight": rng.normal(size=(5, 3)), "bias": rng.normal(size=3)}
        return Case(name, d_in=5, d_out=3, state=state, x=rng.normal(size=(rows, 5)), d_output=rng.normal(size=(rows, 3)))

    return [case("two rows", 2), case("seven rows", 7)]


TASK = Task(
    id="twice",
    title="Twice a linear layer",
    entry="Twice",
    kind="write",
    cases=_cases,
    answer=lambda: scaled_linear(2.0),
    module=ModuleCall(construct=("d_in", "d_out"), inputs=("x",), d_output="d_output"),
    wrong=[
        Wrong("not doubled", lambda: scaled_linear(1.0), "double it"),
        Wrong("bias subtracted", lambda: scaled_linear(2.0, -1.0), "add the bias"),
        Wrong("bias without gradient", lambda: Detached, "do not detach"),
    ],
    **COMMON,
)
RIGHT = """
import torch
class Twice(torch.nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(d_in, d_out))
        self.bias = torch.nn.Parameter(torch.zeros(d_out))
    def forward(self, x):
        return torch.einsum("ni,io->no", x, 2 * self.weight) + self.bias
"""


@pytest.fixture(autouse=True)
def _only_this_task(monkeypatch):
    monkeypatch.setattr(numbers, "tables", lambda: NUMBERS)
    monkeypatch.setattr(registry, "lessons", lambda: ["toy"])
    for name in ("declared_tasks", "_lesson_tasks"):
        monkeypatch.setattr(registry, name, lambda lesson: [TASK])


def defined(source):
    names = {"__name__": "__main__"}
    exec(source, names)
    return names["Twice"]


def test_a_right_module_passes(capsys):
    check("twice", defined(RIGHT))
    assert capsys.readouterr().out == "ok: task 97.1, twice a linear layer: 2 cases, 3 points\n"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("2 * self.weight", "self.weight"), "this is the mistake “not doubled”"),
        (("self.weight) + ", "self.weight) - "), "this is the mistake “bias subtracted”"),
        (("+ self.bias", "+ self.bias.detach()"), "The first wrong number, element [0] of the gradient of bias, is 0"),
        (("+ self.bias", "+ 2 * self.bias - self.bias.detach()"), "The first wrong number, element [0] of the gradient of bias, is"),
        (("self.bias = ", "self.shift = "), "it lacks bias and has also shift"),
        (("self.weight = ", "self.extra = torch.nn.Parameter(torch.zeros(1)); self.weight = "), "it has also extra"),
        (("zeros(d_out)", "zeros(1)"), "the parameter bias of Twice must have shape (3,); got (1,)"),
        (("+ self.bias", "[0] + self.bias"), "Twice must return an output of shape (2, 3); got (3,)"),
        (("return ", "return self.bias.detach().expand(2, 3)\n        "), "returns a result without gradients"),
        (("        return", "        raise NotImplementedError()\n        return"), "has no answer yet"),
        (("(torch.nn.Module)", ""), "Twice"),
    ],
)
def test_a_wrong_module_says_why(change, message):
    with pytest.raises(CheckFailed) as failed:
        check("twice", defined(RIGHT.replace(*change)))
    assert message in str(failed.value)


def test_a_function_is_no_module():
    for answer, got in ((lambda x: x, "function"), (3.0, "float 3.0")):
        with pytest.raises(CheckFailed, match=rf"must be a class derived from torch\.nn\.Module; got {got}"):
            check("twice", answer)


def test_a_class_grades_modules_alike(tmp_path):
    toy.write(tmp_path / "ex_97_toy.ipynb", [toy.cell("import numpy as np", "setup")])
    with Grader(seed=3, exercises=tmp_path) as grader:
        for source, points in ((RIGHT, 3), (RIGHT.replace("2 * ", ""), 0)):
            path = toy.write(tmp_path / "97_mine.ipynb", [toy.cell(source, "twice")])
            (verdict,) = grader.grade(path, student="ada").verdicts
            assert verdict.points == points, verdict
    assert verdict.mistake == "not doubled"


def test_a_state_of_float32_is_computed_in_float32():
    seen = []

    class Watched(scaled_linear(2.0)):
        def forward(self, x):
            seen.append((self.weight.dtype, x.dtype))
            return super().forward(x)

    def narrow(inputs):
        return {name: value.astype(np.float32) if isinstance(value, np.ndarray) else value for name, value in inputs.items()}

    case = narrow(_cases(np.random.default_rng(0))[0].inputs)
    case["state"] = narrow(case["state"])
    arrays = call_module(Watched, case, "Twice", TASK.module)
    assert seen == [(torch.float32, torch.float32)]
    assert {array.dtype for array in arrays} == {np.dtype(np.float32)}
    names = TASK.module.names(case, len(arrays))
    assert names == ["the output", "the gradient of x", "the gradient of weight", "the gradient of bias"]

"""Lines of a derivation that add nothing, and those that do, by what simplified trees say of them."""

import pytest

from attn_course.tasks import get_task
from attn_course.tasks.core import Task
from attn_course.tasks.latex import looks

IDLE = r"""
    \frac{2}{2} (F)
    1^2 \cdot (F)
    0.5 \cdot 2 (F)
    e^0 (F)
    (F) e^{1 - 1}
    \frac{2 (F)}{2}
    \frac{F + F}{2}
    \frac{1}{2} (F) + \frac{1}{2} (F)
    3 (F) - 2 (F)
    F + 0 (F)
    (F) / 1
    -(-(F))
    \frac{C}{C} (F)
    \frac{C (F)}{C}
    C \cdot \frac{F}{C}
    \frac{C^2 (F)}{C^2}
    C^0 (F)
    e^{C - C} (F)
"""
OF_NUMBERS = r"""
    (F)^1
    ((F)^{-1})^{-1}
    \frac{1}{1 / (F)}
    F + 0
    F + C - C
    F + 0 C
"""
OF_POSITIVE = r"""
    |F|
    \sum_{m=1}^{1} (F)
    \frac{(F)^2}{F}
    e^{\ln(F)}
    \ln e^{F}
    \exp(\ln(F))
"""
DERIVATIONS = {
    "shift-invariance-of-softmax": ("c", IDLE + OF_NUMBERS + OF_POSITIVE),
    "centre-the-values": (r"\bar{k}", IDLE + OF_NUMBERS),
    "masked-softmax": ("n", IDLE + OF_NUMBERS),
    "map-read-backwards": ("T_k", IDLE + OF_NUMBERS),
    "merge-of-two-blocks": ("L", IDLE),
    "delta-rule-multiplied-out": (r"\beta", IDLE),
}
WITHIN = {  # a jump, and a line that differs from one of its ends within
    "shift-invariance-of-softmax": r"""
        \frac{2 e^{z_i}}{2 \sum_j e^{z_j}}
        \frac{c e^{z_i}}{c \sum_j e^{z_j}}
        \frac{e^{z_i}}{\sum_j (e^{z_j})^1}
        \frac{e^{2 (z_i + c) / 2}}{\sum_j e^{z_j + c}}
        \frac{e^{z_i}}{\sum_j e^{\ln e^{z_j}}}
        \frac{e^{z_i} e^0}{\sum_j e^{z_j} e^0}
        \frac{1}{\sum_j e^{z_j}} e^{z_i}
        e^{z_i} (\sum_j e^{z_j})^{-1}
        \frac{\frac{1}{n} \sum_{k=1}^{n} e^{z_i}}{\sum_j e^{z_j}}
    """,
    "masked-softmax": r"""
        \frac{[j \in A] [j \in A] e^{s_j}}{\sum_{l \in A} e^{s_l}}
        \frac{[j \in A]^2 e^{s_j}}{\sum_{l \in A} e^{s_l}}
        \frac{[j \in A] e^{s_j}}{\sum_{l \in A} [l \in A] e^{s_l}}
        [j \in A] \frac{[j \in A] e^{s_j}}{\sum_{l \in A} e^{s_l}}
        \frac{(1 - [j \notin A]) e^{s_j}}{\sum_{l \in A} e^{s_l}}
        [j \in A] \frac{e^{s_j + M_j}}{\sum_{l=1}^{n} e^{s_l + M_l}}
    """,
    "centre-the-values": r"""
        \sum_j p_j (z - v_j) (\bar{k} - k_j)
        \sum_j p_j (v_j - z)^1 (k_j - \bar{k})
    """,
}
NEW = {  # other roads than the task's own answer, one step a line, between its first line and its last
    "shift-invariance-of-softmax": r"""
        \frac{e^c e^{z_i}}{e^c \sum_j e^{z_j}}
        \frac{e^{-c} e^{z_i + c}}{e^{-c} \sum_j e^{z_j + c}}
        \frac{1}{\sum_j e^{z_j - z_i}}
        e^{z_i - \ln \sum_j e^{z_j}}
    """,
    "map-read-backwards": r"""
        \frac{e^{S_{ij}} / \sum_l e^{S_{il}}}{\sigma(S^\top)_{ji}}
        \frac{e^{S_{ij}} / \sum_l e^{S_{il}}}{e^{S_{ij}} / \sum_l e^{S_{lj}}}
        \frac{e^{S_{ij}}}{\sum_l e^{S_{il}}} \cdot \frac{\sum_l e^{S_{lj}}}{e^{S_{ij}}}
        \frac{1 / \sum_l e^{S_{il}}}{1 / \sum_l e^{S_{lj}}}
    """,
    "masked-softmax": r"""
        \frac{[j \in A] e^{s_j}}{\sum_l [l \in A] e^{s_l}}
        \frac{[j \in A] e^{s_j}}{\sum_l e^{s_l + M_l}}
        \frac{e^{s_j + M_j}}{\sum_{l \in A} e^{s_l + M_l} + \sum_{l \notin A} e^{s_l + M_l}}
    """,
    "centre-the-values": r"""
        \sum_j p_j v_j (k_j - \bar{k})
        \sum_j p_j v_j (k_j - \bar{k}) - z \sum_j p_j (k_j - \bar{k})
    """,
    "delta-rule-multiplied-out": r"""
        S_{t-1} + \beta k v^\top - \beta k (S_{t-1}^\top k)^\top
        I S_{t-1} - \beta k k^\top S_{t-1} + \beta k v^\top
    """,
}


def forms(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def steps(task: Task, lines: list[str]) -> int:
    """How many steps to something new are counted; `test_latex` has what the judge makes of them."""
    return sum(looks(task.question, [task.question.read(line) for line in lines])["changed"])


@pytest.mark.parametrize("name", DERIVATIONS)
def test_a_jump_is_one_step_whatever_is_put_around_its_ends(name):
    task, (symbol, idle) = get_task(name), DERIVATIONS[name]
    first, last = task.answer[0], task.answer[-1]
    lines = [form.replace("F", end).replace("C", symbol) for form in forms(idle) for end in (first, last)]
    lines += forms(WITHIN.get(name, ""))
    counted = {line: steps(task, [first, line, last]) for line in lines}
    assert {line: count for line, count in counted.items() if count != 1} == {}


@pytest.mark.parametrize("name", NEW)
def test_a_line_that_shows_something_is_a_step_of_its_own(name):
    task = get_task(name)
    counted = {line: steps(task, [task.answer[0], line, task.answer[-1]]) for line in forms(NEW[name])}
    assert {line: count for line, count in counted.items() if count != 2} == {}


def test_an_indicator_said_twice_within_a_sum_is_said_once():
    task = get_task("masked-softmax")
    first, _, summed, last = task.answer
    twice = summed.replace(r"[l \in A]", r"[l \in A]^2")
    assert steps(task, [first, summed, twice, last]) == steps(task, [first, summed, last]) == 2

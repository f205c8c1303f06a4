"""What tasks forbid: said on their cards, nowhere else, and looked for by one list."""

import re

import pytest

from attn_course.tasks import all_tasks, assess, get_task
from attn_course.tasks import forbidden as room
from attn_course.tasks.forbidden import ATTENTION, CALCULUS, NO_THREADS, Forbidden

CONCEPTS = [each for each in vars(room).values() if isinstance(each, Forbidden)]


def test_each_concept_is_forbidden_somewhere_and_says_what_it_is():
    used = {each for task in all_tasks() for each in task.forbidden}
    assert [each.words for each in CONCEPTS if each not in used] == []
    assert len({each.words for each in CONCEPTS}) == len(CONCEPTS)
    assert all(each.words and each.rules for each in CONCEPTS)


def test_a_question_says_all_that_a_task_forbids():
    for task in all_tasks():
        said = re.search(r"Not allowed: (.+)\.</small>", task.limits)
        assert (said[1].split("; ") if said else []) == [part for each in task.forbidden for part in each.words.split("; ")]
        assert set(task.rules) == {rule for each in task.forbidden for rule in each.rules}


def test_what_follows_from_a_task_is_forbidden_with_it():
    derive = [task for task in all_tasks() if task.kind == "derive"]
    assert derive
    assert all(task.forbidden == (CALCULUS,) for task in derive)
    watched = [task for task in all_tasks() if ATTENTION in task.forbid]
    assert watched
    assert all(task.forbidden[-1] is NO_THREADS for task in watched)
    assert get_task("split-heads").forbidden == ()


KERNEL = """
import torch, triton
import triton.language as tl
@triton.jit
def row_lse(scores_ptr, lse_ptr, n_columns, BLOCK: tl.constexpr):
    tl.store(lse_ptr + tl.program_id(0), 0.0)
"""
BY_HAND = "sum(2.718281828459045 ** (v - max(row)) for v in row)"
UNLAUNCHED = f"""{KERNEL}
import math
def my_row_lse(scores):
    return torch.tensor([max(row) + math.log({BY_HAND}) for row in scores.tolist()], dtype=torch.float64)
"""
WARMED_UP = UNLAUNCHED.replace("    return", "    row_lse.warmup(torch.float32, torch.float32, 3, BLOCK=16, grid=(1,))\n    return")


@pytest.mark.parametrize("source", [UNLAUNCHED, WARMED_UP])
def test_right_numbers_without_the_launch_of_a_kernel_do_not_pass(define, source, monkeypatch):
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    verdict = assess(get_task("row-lse-kernel"), define(source, "my_row_lse"))
    assert not verdict.passed
    assert "my_row_lse launches no kernel: what it returns must be written by one" in verdict.message


LEANS_ON_ZEROS = KERNEL.replace(
    "tl.store(lse_ptr + tl.program_id(0), 0.0)",
    "i = tl.arange(0, 32)\n    tl.store(lse_ptr + i, tl.load(scores_ptr + i, mask=i < n_columns), mask=i < 32)",
)
LAUNCHED = """
def my_row_lse(scores):
    out = torch.zeros(32)
    row_lse[(1,)](torch.arange(32.0), out, 5, BLOCK=16)
    read.append(out[4:].tolist())
    return out
my_row_lse(None)
"""


def test_what_a_mask_leaves_out_is_no_zero_while_an_answer_is_checked(define, monkeypatch):
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    answer = define(f"read = []\n{LEANS_ON_ZEROS}{LAUNCHED}", "my_row_lse")
    assess(get_task("row-lse-kernel"), answer)
    answer(None)
    (before, checked, *_, after) = answer.__globals__["read"]
    assert before == after == [4.0] + [0.0] * 27
    assert checked == [4.0] + [float("inf")] * 27


def test_a_slip_in_a_kernel_is_told_with_its_line(define, monkeypatch):
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    stores = KERNEL.replace("lse_ptr + tl.program_id(0), 0.0", "lse_ptr, tl.arange(0, 16)")
    source = f"{stores}\ndef my_row_lse(scores):\n    row_lse[(1,)](torch.ones(3), torch.ones(3), 3, BLOCK=16)\n"
    said = assess(get_task("row-lse-kernel"), define(source, "my_row_lse")).message
    assert said.startswith("my_row_lse raised ValueError")
    assert "of row_lse: `tl.store(lse_ptr, tl.arange(0, 16))`" in said

"""Words for a wrong result: where it is off, by what pattern, in digits that show it."""

import itertools
import re
from collections.abc import Sequence

import numpy as np

from attn_course.tasks.compare import Miss, compare
from attn_course.tasks.core import Case, Task
from attn_course.tasks.latex import Line
from attn_course.tasks.likeness import number
from attn_course.tasks.truths import NAN_FROM

SECRET = ("predict", "figure")  # kinds whose right number stays unsaid: it is the whole answer
_PAIR = re.compile(  # two numbers, as `shown` tells them
    r"(?P<before>(?:.*\. )?)(?:The line before is (?P<line>\S+), and this one (?P<this>\S+?)"
    r"|(?:(?P<place>At .*?) it|The first wrong number, (?P<item>.*?),|It|The number) is (?P<got>\S+) and should be (?P<wanted>\S+?))"
    r"(?P<where>(?:,? (?:at|for) .*?)?)(?P<error>(?:; the largest error is \S+)?)\.(?P<after>(?: .*)?)",
    re.DOTALL,
)


def about_formula(task: Task, got: Sequence[np.ndarray], wanted: Sequence[np.ndarray]) -> str:
    """Return a remark on a formula that has the right shape: whether it is right with two of its indices exchanged."""
    letters = task.question.letters
    if [array.shape for array in got] != [array.shape for array in wanted]:
        return ""
    for one, other in itertools.combinations(range(len(letters)), 2):
        if all(compare([ours.swapaxes(one, other)], [theirs], task.tolerance) is None for ours, theirs in zip(got, wanted, strict=True)):
            return f" It would be right with the indices {letters[one]} and {letters[other]} exchanged."
    return " Its indices and its shape are right."


def shown(task: Task, case: Case, miss: Miss) -> str:
    """Return where and by how much a result is off; never the right number where finding it is the task."""
    item = "" if miss.item is None else f"item {miss.item} of the tuple"
    if task.wants_latex and not miss.reason:
        at = Line(task.question, task.question.frame, case.inputs).positions(miss.index)
        got, wanted = told_apart(miss.got, miss.wanted)
        numbers = f"The line before is {wanted}, and this one {got}" if task.question.goal else f"It is {got} and should be {wanted}"
        look = f" That is no number: look for {NAN_FROM}." if task.question.goal and np.isnan(miss.got) else ""
        return f" {numbers}{f' at {at}' if at else ''}, for {case.name}.{look}"
    if miss.reason:
        return f" Shape or form: {miss.reason}."
    if task.kind in SECRET:
        place = f" Entry {miss.index[0]} is the first that is off." if miss.index else ""
        return f"{place} You gave {number(miss.got)}."
    got, wanted = told_apart(miss.got, miss.wanted)
    numbers = f"is {got} and should be {wanted}"
    numbers += f"; the largest error is {number(miss.largest_error, 3)}" if miss.largest_error else ""
    if task.kind == "derive":
        points = np.broadcast_arrays(*(case.inputs[name] for name in task.symbols))
        point = ", ".join(f"{name} = {number(values[miss.index], 4)}" for name, values in zip(task.symbols, points, strict=True))
        return f" At {point} it {numbers}."
    places = [f"element {list(miss.index)}"] if miss.index else []
    places += [item] if item else []
    return f" The first wrong number, {' of '.join(places)}, {numbers}." if places else f" The number {numbers}."


def told_apart(got: float, wanted: float) -> tuple[str, str]:
    """Return two numbers in six digits, or in as many as it takes to see that they differ."""
    for digits in range(6, 18):
        pair = number(got, digits), number(wanted, digits)
        if pair[0] != pair[1]:
            break
    return pair


def compared(message: str) -> tuple[str, list[tuple[str, str]], str, str]:
    """Return what a message says before two numbers, these with their names, where they are, and the rest; their points are aligned.

    >>> compared("this is a mistake. It is -0.5 and should be 10.25 at k = 1, for n = 3. Look again.")
    ('this is a mistake.', [('Got', '−0.5'), ('Should be', '10.25')], 'at k = 1, for n = 3', 'Look again.')
    """
    found = _PAIR.fullmatch(message)
    if not found:
        return message, [], "", ""
    names = {"got": "Got", "wanted": "Should be"} if found["got"] else {"line": "The line before", "this": "This line"}
    told = {name: found[group] for group, name in names.items()}
    whole = [len(each.partition(".")[0]) if each.strip("-")[0].isdigit() else 1 for each in told.values()]
    numbers = [" " * (max(whole) - own) + re.sub(r"^-", "−", each) for own, each in zip(whole, told.values(), strict=True)]
    where = (found["place"] or (found["item"] and f"first at {found['item']}") or found["where"].lstrip(", ")) + found["error"]
    return found["before"].rstrip(), list(zip(told, numbers, strict=True)), where.lstrip("; "), found["after"].lstrip()

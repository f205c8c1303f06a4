"""Rules that every task obeys. Each gate returns what is wrong, in words, or nothing."""

import copy
import inspect
import itertools
import pickle
import re
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from attn_course import numbers
from attn_course.changes import changes_text
from attn_course.formulas.retyped import is_written_down, retyped
from attn_course.tasks.again import first_name
from attn_course.tasks.cards import plain
from attn_course.tasks.core import CHECK_SEED, AtSizes, Case, Task, Verdict
from attn_course.tasks.judge import expected, judge
from attn_course.tasks.latex import looks
from attn_course.tasks.notebook import assess
from attn_course.tasks.promises import marks, unmarked
from attn_course.tasks.run import Result
from attn_course.tasks.wording import SECRET

SEEDS = (CHECK_SEED, 1, 20, 300)  # notebooks always draw the same cases; a class draws its own
MIN_RIGHT_ANSWERS = 2
TOLD = ("this is the mistake “", "this may be the mistake “")  # how a verdict names a known wrong answer
FILLS = (-30.0, -60.0, -1e4, -1e9)  # in the place of minus infinity
COUNTS_FOR_NOTHING = 750.0  # a score so far below all others has the weight 0 in float64
MASKS = {"mask", "lengths", "source_lengths", "window", "padding", "lses", "m_a"}  # inputs that can hide all that a row has
EMPTY = re.compile(
    r"zeros only|all zeros|all zero\b|without (?:any |visible )*(?:key|word)s?|all hidden|may be 0: then|no key on one side|no visible key|"
    r"at least one"
)


class Bench:
    """A task with its cases of one seed; what its own answer and its known mistakes give there is computed once."""

    def __init__(self, task: Task, seed: int = CHECK_SEED) -> None:
        self.task, self.seed = task, seed
        self.cases = task.draw(np.random.default_rng(seed))
        _ = task.n_cases, task.wants_latex and task.question  # what is known of a task its copies know, too
        self._drawn = copy.copy(task)  # which need not be drawn for each answer anew
        vars(self._drawn)["draw"] = lambda _: copy.deepcopy(self.cases)  # an answer may write to its inputs
        self._given: dict[tuple[int, str], tuple[Any, list[Result]]] = {}

    def expect(self, task: Task, function: Any, cases: Sequence[Case], nudge: str = "") -> list[Result]:
        """Run a trusted function of the task, as `judge` asks for it."""
        key = id(function), nudge
        if key not in self._given:
            self._given[key] = function, expected(task, function, cases, nudge)  # the function is kept, and so its id
        return self._given[key][1]

    def verdict(self, function: Any, *, narrow: bool = False) -> Verdict:
        """Judge a trusted function by its results alone, as in a class; `narrow`: as if it computed in float32."""
        results = self.expect(self.task, function, self.cases)
        if narrow:
            results = _changed(results, lambda array: array.astype(np.float32))
        return judge(self.task, self.cases, results, expect=self.expect)

    def assess(self, answer: Any, cells: Sequence[str] = (), names: Mapping[str, Any] | None = None) -> Verdict:
        """Assess an answer as a notebook does."""
        return assess(self._drawn, answer, cells, names, seed=self.seed, expect=self.expect)


def bench_of(task: Task, seed: int = CHECK_SEED) -> Bench:
    """Return the task's bench of a seed; those of a lesson are kept, for one gate after the other asks for them."""
    found = next((each for each in _BENCHES if each.task is task and each.seed == seed), None)
    if found is None:
        _BENCHES.append(found := Bench(task, seed))
    return found


_BENCHES: deque[Bench] = deque(maxlen=128)


def text_problems(task: Task, labels: Sequence[str]) -> list[str]:
    """Its equation exists, every role in its texts names something, and none stands where none is read: in keys and titles."""
    found = [numbers.unknown("eq", task.equation, labels)] if task.equation and task.equation not in labels else []
    texts = [*task.hints, *(wrong.hint for wrong in task.wrong), *map(inspect.getsource, task.given)]
    for text in [*texts, inspect.getsource(task.broken) if task.broken else ""]:
        try:
            numbers.cite(text)
        except numbers.UnknownName as error:
            found.append(str(error))
    found += [
        f"wanted no number of one student in what all read, got {number} in {text!r}" for text in texts for number in task.numbers_in(text)
    ]
    kept = [task.title, task.trains, task.entry, *(wrong.name for wrong in task.wrong)]
    kept += [case.name for case in task.cases(np.random.default_rng(2))]
    return found + [
        f"wanted no role in a title or in the name of a mistake or a case, got {text!r}" for text in kept if numbers.ROLE.search(text)
    ]


def case_problems(task: Task) -> list[str]:
    """A seed always draws the same cases, their names differ, and so do the axes of an array, but in a case that is called square."""
    found = []
    for seed in SEEDS:
        again = task.cases(np.random.default_rng(seed))
        once = [case for case in bench_of(task, seed).cases if first_name(case.name) == case.name]  # `draw` adds others
        if [(case.name, pickle.dumps(case.inputs)) for case in once] != [(case.name, pickle.dumps(case.inputs)) for case in again]:
            found.append("wanted cases that the seed alone decides, got others the second time")
        if len({case.name for case in once}) < len(once):
            found.append(f"wanted cases whose names all differ, got {', '.join(case.name for case in once)}")
        if task.wants_latex:
            found += _given_problems(task, once)
            continue
        shapes = {case.name: value.shape for case in once for value in case.inputs.values() if isinstance(value, np.ndarray)}
        alike = [f"{shape} in the case “{name}”" for name, shape in shapes.items() if len(set(shape)) < len(shape) and "square" not in name]
        found += [f"wanted arrays whose axes all differ in length, got {each}" for each in alike]
    return list(dict.fromkeys(found))


def _given_problems(task: Task, cases: Sequence[Case]) -> list[str]:
    """What LaTeX is evaluated on is arrays, can be told apart, and is all used."""
    try:
        task.blank(cases)
    except TypeError as error:
        return [str(error)]
    found = []
    strange = {name for case in cases for name in {*case.inputs} ^ {*task.symbols, *task.question.targets}}
    if strange or (task.kind == "derivation" and task.question.targets):
        found.append(
            f"wanted each case to give {', '.join(task.symbols)} and what stands on the left side; got {', '.join(cases[0].inputs)}"
        )
    if task.kind == "derivation" and looks(task.question, [task.question.frame])["ends"]:
        found.append("the first line of the answer is its last one, but for its spelling")
    return found


def retyping_problems(task: Task) -> list[str]:
    """What a formula is to equal is made in another way than by the operators of an answer, and asking again is no answer."""
    if task.kind != "formula":
        return []
    question = task.question
    found = []
    if not {node.value for node in question.frame.walk()} & {*question.targets}:
        found.append(f"wanted a left side in givens of its own; what stands in {task.left} are symbols: to write it again is an answer")
    if not isinstance(task.cases, AtSizes):
        return [*found, "wanted cases=at_sizes(...), so that the function that makes the givens can be read"]
    if not is_written_down(task.cases.make):
        return [*found, "wanted cases=at_sizes(...) of a function that writes its givens down, to be read there"]
    retold = retyped(task.cases.make, question.targets)
    return found + [
        f"the given {name} is only operators on the other givens: take another way, or the answer judges itself" for name in retold
    ]


def share_problems(tasks: Sequence[Task]) -> list[str]:
    """Of the wrong answers of a lesson at most one in ten is written out, kernels apart."""
    known = [wrong for task in tasks if task.sheet and not task.sheet.is_verbatim for wrong in task.wrong]
    whole = [wrong.name for wrong in known if not changes_text(wrong.change)]
    if len(whole) * 10 <= len(known):
        return []
    return [f"wanted at most one in ten of {len(known)} known mistakes without a piece of text that it changes, got {', '.join(whole)}"]


def digit_problems(task: Task) -> list[str]:
    """The right numbers pass when they are rounded to the digits that the text promises, whatever a student's numbers."""
    if task.digits is None:
        return []
    for each in task.each_variant():
        rounded = [float(f"{number:.{task.digits - 1}e}") for number in np.ravel(each.answer(**each.numbers))]
        if not (verdict := Bench(each).assess(rounded[0] if len(rounded) == 1 else tuple(rounded))).passed:
            return [f"its answer is refused in {task.digits} digits, with {dict(each.numbers)}: {verdict.message}"]
    return []


def wrong_answer_problems(task: Task) -> list[str]:
    """Every known wrong answer fails under its own name, whatever a student's numbers, in float32 too, and a function to repair fails."""
    for each in task.each_variant():
        if found := _wrong_answer_problems(each):
            return [f"with {dict(each.numbers)}: {said}" for said in found] if each.numbers else found
    return []


def _wrong_answer_problems(task: Task) -> list[str]:
    found = []
    benches = [bench_of(task, seed) for seed in (SEEDS[:1] if task.kind in SECRET else SEEDS)]
    if task.wants_latex and (refused := next((said for bench in benches if not (said := bench.assess(task.answer)).passed), None)):
        found.append(f"its own answer is refused: {refused.message}")
    for wrong in task.wrong:
        tries = [_mistaken(bench.verdict(wrong.function), wrong.name, TOLD) for bench in benches]
        if task.wants_function:
            tries.append(_mistaken(benches[0].verdict(wrong.function, narrow=True), wrong.name))
        found += [f"the known wrong answer “{wrong.name}” {said}" for said in tries if said][:1]
    if task.broken is not None and any(bench.verdict(task.broken).passed for bench in benches):
        found.append("the function to repair passes: it is right as it stands")
    return found + _leaks(benches[0])


def _mistaken(verdict: Verdict, name: str, words: tuple[str, ...] = ("",)) -> str:
    """What is wrong if the verdict on a known wrong answer is not its own name, or says it with none of these words."""
    if verdict.passed:
        return "passes: it equals the right one in every case"
    return (
        ""
        if verdict.mistake == name and any(word in verdict.message for word in words)
        else f"is not told by its name, but: {verdict.message}"
    )


def _leaks(bench: Bench) -> list[str]:
    """No message tells a number that is the learner's to find."""
    task = bench.task
    if task.kind not in SECRET:
        return []
    rights = {f"{number:.3g}" for number in np.ravel(task.answer(**task.numbers))}
    found = []
    for wrong in task.wrong:
        message = bench.verdict(wrong.function).message
        given = {f"{number:.3g}" for number in np.ravel(wrong.function(**task.numbers))}
        said = {f"{float(number):.3g}" for number in re.findall(r"-?\d+\.?\d*(?:e[+-]?\d+)?", message.removeprefix(task.entry))}
        found += [f"the message about “{wrong.name}” tells the right number {number}" for number in sorted((said - given) & rights)]
    return found


def sensitivity_problems(task: Task) -> list[str]:
    """Its own answer passes in float32 too; a constant, another shape, a result that is a little off, and one that is remembered fail."""
    if not task.wants_function:
        return []
    bench = bench_of(task)
    right = bench.expect(task, task.answer, bench.cases)
    found = [] if bench.verdict(task.answer, narrow=True).passed else ["its own answer fails in float32: mind the tolerance"]
    first, again = bench.cases[0], bench.cases[min(1, len(bench.cases) - 1)]
    if "array" in repr(first.inputs) and (again is first or first_name(again.name) != first.name):
        found.append("wanted a first case with other numbers in each draw, so that an answer which remembers by shape fails; got the same")
    changes: dict[str, Callable[..., Any]] = {
        f"the constant {constant:g}": partial(np.full_like, fill_value=constant, dtype=np.float32)  # more is allowed than in float64
        for constant in (0.0, 1.0, 1e6)
    }
    changes |= {f"a result that is off by {error:g} of itself": partial(np.multiply, 1.0 + error) for error in (1e-6, 1e-2)}
    changes["a float32 result that is off by 0.0001 of itself"] = lambda array: np.float32(array * 1.0001)
    if any(array.ndim for result in right for array in result.arrays or ()):
        changes["its own answer without axes of length 1"] = np.squeeze
    return found + [
        f"{what} passes" for what, change in changes.items()
        if judge(task, bench.cases, _changed(right, change), expect=bench.expect).passed
    ]  # fmt: skip


def promise_problems(task: Task, text: str) -> list[str]:
    """What a question leaves open, a mark behind the words says which case shows; each mark names one, or holds in every case.

    `text`: the question and the head of the function, as the exercise shows them.
    """
    if not task.wants_function:
        return []
    asks = task.sheet.asks if task.sheet else text
    found = [f"the text says “{words}”: wanted a mark behind it, {{case}}`name of the case that shows it`" for words in unmarked(asks)]
    found = [said for said in found if not EMPTY.search(said)]
    meant = [case for case in bench_of(task).cases if first_name(case.name) == case.name]
    strange = {*marks(asks, "case")} - {"any", *(case.name for case in meant)}
    found += [f"the text says that “{name}” shows it: wanted the name of a case" for name in sorted(strange)]
    for claim, bench in itertools.product(marks(asks, "every"), (bench_of(task, seed) for seed in SEEDS)):
        failing = [case.name for case in bench.cases if not eval(claim, {"np": np}, dict(case.inputs))]  # the author's own words
        found += [f"the text says that in every case {claim}: it is not so in “{name}”" for name in failing]
    wanted = 2 if "one leading" in text else 3
    if re.search(r"\((?:\.\.\.|\\ldots), ", text) and len({np.ndim(next(iter(case.inputs.values()))) for case in meant}) < wanted:
        found.append(f"the text shows leading axes: wanted cases with {'none and one' if wanted < 3 else 'none, one and two'} of them")
    return list(dict.fromkeys(found))


def empty_row_problems(task: Task, text: str) -> list[str]:
    """Rows of which all is hidden are named in the text, are drawn, alone and among others, and fail if they hold anything else.

    `text`: the question and the head of the function, as the exercise shows them.
    """
    if not task.wants_function:
        return []
    said, bench = EMPTY.search(" ".join(text.split())), bench_of(task)
    if not said:
        masks = " and ".join(sorted(MASKS & {*bench.cases[0].inputs}))
        return [f"wanted the text to say what becomes of a row of which {masks} may hide all, or that there is none"] if masks else []
    right = bench.expect(task, task.answer, bench.cases)
    shares = [max((_empty(array).mean() for array in result.arrays or () if array.ndim), default=0.0) for result in right]
    wanted = {"among others": [0 < share < 1 for share in shares]}
    if said[0] != "at least one":
        wanted["in a case of nothing else"] = [share == 1 for share in shares]
    found = []
    for where, these in wanted.items():
        if not any(these):
            found.append(f"the text says “{said[0]}”: wanted rows of which all is hidden {where}, got none")
            continue
        for other in (np.nan, 0.0, 1.0):
            changed = _changed(right, partial(_refilled, value=other))
            tried = [new if here else old for here, new, old in zip(these, changed, right, strict=True)]
            if _differ(tried, right) and judge(task, bench.cases, tried, expect=bench.expect).passed:
                found.append(f"{other:g} in rows of which all is hidden {where} passes")
    return found


def fill_problems(task: Task, cells: Sequence[str], names: Mapping[str, Any], text: str) -> list[str]:
    """A finite number in the place of minus infinity fails, also in float32, unless by the text no score can be so low.

    `cells`, `names`: the code of the solution, less its checks, and the names that it defines.
    `text`: the question, as the exercise shows it.
    """
    (code, *_) = [cell for cell in cells if f"def {task.entry}(" in cell] or [""]
    spelt = ("-np.inf", 'float("-inf")')
    if not any(each in code for each in spelt):
        return []
    found, bench = [], bench_of(task)
    (lowest, *_) = [*map(float, marks(task.sheet.asks if task.sheet else text, "lowest")), -np.inf]
    for fill in FILLS:
        if fill <= lowest - COUNTS_FOR_NOTHING:
            continue
        own = dict(names)
        filled = code.replace("np.isneginf(", "np.equal(-np.inf, ")
        for each in spelt:
            filled = filled.replace(each, f"{fill:g}")
        exec(filled, own)  # our own solution
        found += [
            f"its solution passes with {fill:g} in the place of -np.inf{said}: draw a case in which that is not low enough"
            for narrow, said in ((False, ""), (True, ", in float32")) if bench.verdict(own[task.entry], narrow=narrow).passed
        ]  # fmt: skip
    return found


def _empty(array: np.ndarray) -> np.ndarray:
    """Which rows of a right result hold 0 or minus infinity alone."""
    rows = array if array.ndim > 1 else array[:, None]
    return np.asarray((rows == 0).all(axis=-1) | np.isneginf(rows).all(axis=-1))


def _refilled(array: np.ndarray, value: float) -> np.ndarray:
    """The result with another value in its empty rows."""
    if not array.ndim:
        return array
    rows = _empty(array)
    return np.where(rows[..., None] if array.ndim > 1 else rows, value, array)


def _differ(results: Sequence[Result], others: Sequence[Result]) -> bool:
    pairs = [pair for one, other in zip(results, others, strict=True) for pair in zip(one.arrays or (), other.arrays or (), strict=True)]
    return not all(np.array_equal(one, other) for one, other in pairs)


def _changed(results: Sequence[Result], change: Callable[..., Any]) -> list[Result]:
    """Results with each of their arrays changed; a problem stays one."""
    with np.errstate(over="ignore"):  # float32 has less room
        return [replace(result, arrays=tuple(map(change, result.arrays))) if result.arrays else result for result in results]


def right_answer_problems(task: Task, functions: Sequence[Any]) -> list[str]:
    """Right answers that are written in other ways pass: two or more; of a function also in torch and in float32."""
    if len(functions) < MIN_RIGHT_ANSWERS:
        return [f"wanted {MIN_RIGHT_ANSWERS} or more differently written right answers, got {len(functions)}"]
    found = []
    benches = [bench_of(task, seed) for seed in SEEDS]
    for function in functions:
        answer = task.handed_in(function)
        refused = next((verdict for bench in benches if not (verdict := bench.assess(answer)).passed), None)
        if refused is not None:
            found.append(f"the right answer {getattr(function, '__name__', function)} is refused: {plain(refused)}".replace("\n", " "))
    if not task.wants_function:
        return found
    bodies = {inspect.getsource(function).partition(":\n")[2] for function in functions}
    if len(bodies) < len(functions):
        found.append("wanted right answers that are written differently, got one twice")
    inputs = task.cases(np.random.default_rng(0))[0].inputs.values()
    with np.errstate(all="ignore"):
        results = [function(*inputs) for function in functions]
    first = [result[-1] if isinstance(result, tuple) else result for result in results]
    forms = {"ndarray" if isinstance(item, np.ndarray | float) else type(item).__name__ for item in first}
    forms |= {str(getattr(item, "dtype", "float64")).removeprefix("torch.") for item in first}
    if missing := sorted({"Tensor", "ndarray", "float32", "float64"} - forms):
        found.append(f"wanted right answers in NumPy and in torch, in float32 and in float64; none gives {' or '.join(missing)}")
    return found


def solution_problems(task: Task, cells: Sequence[str], names: Mapping[str, Any], text: str) -> list[str]:
    """The answer of the solution passes, on the notebook's cases and on fresh ones, and these show what the text promises.

    `cells`: the code of the solution, less its checks. `names`: the names that this code defines. `text`: the question and the
    head of the function, as the exercise shows them.
    """
    if task.entry not in names:
        return [f"the solution defines no {task.entry}"]
    verdicts = [bench_of(task, seed).assess(names[task.entry], cells, names) for seed in SEEDS]
    refused = [f"the solution is refused: {plain(verdict)}".replace("\n", " ") for verdict in verdicts if not verdict.passed]
    return refused[:1] or [*promise_problems(task, text), *empty_row_problems(task, text), *fill_problems(task, cells, names, text)]


def name_problems(tasks: Sequence[Task]) -> list[tuple[str, str]]:
    """The numbers of a task have names that no other task of its lesson gives: a learner runs given cells in any order.

    Returns for each the id of a task, and what is wrong.
    """
    given = {task.id: set(task.symbols if task.kind == "derive" else task.numbers if task.question_source else ()) for task in tasks}
    return [
        (task.id, f"wanted a name of its own for each of its numbers, got {name}, which {other} gives too")
        for task in tasks
        if task.question_source
        for other in given
        if other != task.id
        for name in sorted(given[task.id] & given[other])
    ]


def variant_problems(task: Task, cell: str, names: Mapping[str, Any]) -> list[str]:
    """The answer of the solution passes with the numbers of every student.

    `cell`: the cell of the solution that answers it. `names`: the names that the solution defines.
    """
    for each in task.each_variant() if task.question_source else ():
        own = {**names, **each.numbers}
        exec(cell, own)  # our own solution
        if not (verdict := Bench(each).assess(own[task.entry], [cell], own)).passed:
            return [f"the solution is refused with {dict(each.numbers)}: {plain(verdict)}".replace("\n", " ")]
    return []

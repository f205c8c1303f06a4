"""What a graded task is: its question, its cases, its right answer, and the mistakes it knows by name."""

import hashlib
import inspect
import itertools
import keyword
import re
import textwrap
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from attn_course import numbers
from attn_course.formulas import size_sets
from attn_course.tasks.again import followers
from attn_course.tasks.forbidden import Forbidden, all_forbidden
from attn_course.tasks.latex import Question, packed, unpacked
from attn_course.tasks.promises import shown
from attn_course.tasks.run import Call

KINDS = {  # and how a card names them
    "write": "write a function",
    "derive": "derive",
    "predict": "predict",
    "repair": "repair a function",
    "figure": "read a figure",
    "formula": "write a formula",
    "derivation": "derive line by line",
}
RESERVED = ("-text", "-given", "-check", "-why")  # endings of the ids of cells that belong to a task
CHECK_SEED = 20_170_612  # notebook checks always draw the same cases; class runs pass their own seed


class Case:
    """One set of inputs, passed to the answer by position in the order given.

    `name`: what is special about this case, in words; failing checks print it.
    `**inputs`: ndarrays, lists or dicts of ndarrays, or plain numbers.
    """

    def __init__(self, name: str, **inputs: Any) -> None:
        self.name = name
        self.inputs = inputs


@dataclass(frozen=True)
class Wrong:
    """A known wrong answer: what the mistake is called, the mistake itself, and the hint it deserves.

    `function`: of the same form as the task's answer; of a derivation one wrong line.
    `change`: how it was made of the right answer, as `tasks.changed` reads it; "" if it was written out.
    """

    name: str
    function: Any
    hint: str
    change: str = ""


def _one_case(rng: np.random.Generator) -> list[Case]:
    """The cases of a question whose answer is one value."""
    return [Case("the answer")]


@dataclass(frozen=True)
class AtSizes:
    """Cases of a formula or derivation task: its givens, made anew at each of several sets of sizes.

    `make`: takes a `numpy.random.Generator` and the sizes by name, returns the givens.
    """

    sizes: Mapping[str, Mapping[str, float]]
    make: Callable[..., Mapping[str, Any]]

    def __call__(self, rng: np.random.Generator) -> list[Case]:
        """Draw the cases."""
        return [Case(name, **self.make(rng, **sizes)) for name, sizes in self.sizes.items()]


def at_sizes(letters: str, make: Callable[..., Mapping[str, Any]], relations: Sequence[str] = ()) -> AtSizes:
    """Return the cases of a formula or derivation task: its givens at three sets of different primes, and where all sizes are equal.

    `letters`, `relations`: the sizes and what binds them, as for `formulas.size_sets`.
    `make`: takes a `numpy.random.Generator` and the sizes by name, returns the givens.
    """
    sets = size_sets(letters, relations)
    named = [", ".join(f"{letter} = {size}" for letter, size in sizes.items()) for sizes in sets]
    named[-1] = f"sizes that coincide ({named[-1]})" if len(sets[-1]) > 1 else named[-1]
    return AtSizes(dict(zip(named, sets, strict=True)), make)  # a single size may come a second time


def every(**values: Sequence[Any]) -> list[dict[str, Any]]:
    """Return the variants of a task that take each combination of these values; the first of each are those of the solution."""
    return [dict(zip(values, chosen, strict=True)) for chosen in itertools.product(*values.values())]


@dataclass(frozen=True)
class Note:
    """A cell of the exercises that belongs to no task, or to one by its place: a text, or code.

    `id`: the id of the cell. `text`: what it holds; roles in it become numbers.
    """

    id: str
    text: str
    is_code: bool = False


@dataclass(frozen=True)
class Sheet:
    """What the notebooks show of a task that is written around its solution.

    `asks`: the question, Markdown with roles and with the marks of `tasks.promises`. `solution`: the answer cell, its answer between
    markers. `why`: Markdown, for solutions alone. `figure`: the call that draws what is to be read, such as "figures.head_maps".
    `then`: a cell behind the question. `file`: where it is written. `is_verbatim`: whether the answer cell stands there as it is, not
    as a function that can be called.
    """

    asks: str
    solution: str
    why: str
    figure: str
    then: Note | None
    file: str
    is_verbatim: bool = False

    @property
    def question(self) -> str:
        """The question as it is shown."""
        return shown(self.asks)


@dataclass(frozen=True, kw_only=True)
class Task:
    """One graded exercise.

    `id`: at most four lower-case words joined by hyphens, such as "stable-softmax". It never changes; the number does.
    `title`, `trains`: what it is called, and the skill it trains.
    `entry`: the name the learner defines: a function (write, repair) or a value (derive, predict, figure).
    `kind`: what the learner does.
    `equation`: label of the equation it trains.
    `points`, `difficulty`, `minutes`: marks; 1 (easy) to 5 (hard); expected working time.
    `cases`: takes a `numpy.random.Generator`, returns a list of `Case`. One empty case for a single value. What is judged is `draw`.
    `answer`: the right answer: inputs of a case -> array or tuple of arrays. For a derive task: SymPy symbols ->
    expression. Of a formula task LaTeX; of a derivation its lines, of which the first and the last
    are where it must begin and end.
    `wrong`: at least three known mistakes, of the same form as `answer`.
    `hints`: three, from a nudge to almost the line.
    `given`: helper functions whose source the exercise shows.
    `forbid`: what would answer the task and is not allowed; the card says it. In every derive task SymPy's calculus is forbidden too.
    `tolerance`: largest error relative to the largest entry, for float64 results; the default is 1e-9.
    `digits`: predict and figure tasks: how many correct digits of each number are enough, in the place of a tolerance.
    `exact_zeros`: an entry that is 0 must be so to the last bit, for a mask made it so.
    `symbols`, `functions`: derive tasks: the opaque symbols handed out, and the SymPy functions the answer may apply. Formula and
    derivation tasks: the givens and the functions that may stand in the LaTeX; the givens of each case (`at_sizes`) are arrays of
    numbers, as a class run sends them to another process.
    `left`: formula tasks: LaTeX of what the formula is to equal, in givens of their own that are made independently.
    `least_steps`: derivation tasks: how many steps to something new it takes at least.
    `broken`: repair tasks: the function that the exercise shows, named `entry`.
    `figure_data`: figure tasks: returns what the figure to be read is drawn from.
    `variants`: predict and figure tasks: the sets of numbers that students may get, by the names that the text gives them. The answer,
    the known mistakes and the figure take them by name; the first set is that of solutions, lessons and tests.
    `partial`: each array of the answer that is right in every case counts for its share of the points, rounded down; the task is
    passed, as all tasks, only if all are right. Its text says so.
    `your_turn`: asked in a cell of the lesson, not in the exercises: it counts for no marks, and its check waits while the answer is `...`.
    `retired`: asked in earlier exercises: solutions keep it, saved work with it is judged, and a class run grades it if its id is named.
    `sheet`: what its notebooks show, if it is written around its solution.
    """

    id: str
    title: str
    entry: str
    kind: str
    equation: str | None
    points: int
    difficulty: int
    minutes: int
    answer: Any
    wrong: Sequence[Wrong]
    hints: Sequence[str]
    trains: str
    cases: Callable[[np.random.Generator], list[Case]] = _one_case
    given: Sequence[Callable[..., Any]] = ()
    forbid: tuple[Forbidden, ...] = ()
    tolerance: float | None = None
    digits: int | None = None
    exact_zeros: bool = False
    symbols: Sequence[str] = ()
    functions: Sequence[str] = ()
    left: str = ""
    least_steps: int = 1
    broken: Callable[..., Any] | None = None
    figure_data: Callable[..., dict[str, Any]] | None = None
    variants: Sequence[Mapping[str, Any]] = ({},)
    partial: bool = False
    your_turn: bool = False
    retired: bool = False
    sheet: Sheet | None = None

    def __post_init__(self) -> None:
        for wanted, holds in (
            ("an id such as 'stable-softmax'", numbers.NAME.fullmatch(self.id) and not self.id.endswith(RESERVED)),
            (f"a kind out of {tuple(KINDS)}", self.kind in KINDS),
            ("an entry that is a Python name", self.entry.isidentifier() and not keyword.iskeyword(self.entry)),
            ("positive points and minutes", self.points > 0 and self.minutes > 0),
            ("a difficulty from 1 to 5", 1 <= self.difficulty <= 5),
            ("three or more known wrong answers", len(self.wrong) >= 3),
            ("known wrong answers whose names all differ", len({w.name for w in self.wrong}) == len(self.wrong)),
            ("known wrong answers whose hints all differ", len({w.hint for w in self.wrong}) == len(self.wrong)),
            ("three hints", len(self.hints) == 3),
            (
                "symbols if, and only if, it is a derive task or wants LaTeX",
                bool(self.symbols) == (self.kind == "derive" or self.wants_latex),
            ),
            ("a left side if, and only if, it is a formula task", bool(self.left) == (self.kind == "formula")),
            ("an answer in LaTeX", not self.wants_latex or not callable(self.answer)),
            ("lines from the start to the goal in its answer", self.kind != "derivation" or len(self.answer) > self.least_steps > 0),
            (
                "digits only if it is a predict or a figure task, and no tolerance beside them",
                self.digits is None or (self.kind in ("predict", "figure") and self.tolerance is None),
            ),
            ("no helper functions", not (self.wants_latex and self.given)),
            ("figure data if, and only if, it is a figure task", (self.figure_data is not None) == (self.kind == "figure")),
            ("variants of the same names", len({tuple(each) for each in self.variants}) == 1),
            ("variants only if it is a predict or a figure task", self.kind in ("predict", "figure") or not any(self.variants)),
            ("a function to be written or repaired, if parts of it count", self.wants_function or not self.partial),
            ("a broken function if, and only if, it is a repair task", (self.broken is not None) == (self.kind == "repair")),
        ):
            if not holds:
                raise ValueError(f"task {self.id!r} needs {wanted}")

    @property
    def in_exercises(self) -> bool:
        """Whether the exercises of its lesson ask it."""
        return not (self.your_turn or self.retired)

    @property
    def number(self) -> str:
        """Its number for people, "2.1"."""
        return numbers.task_number(self.id)

    @property
    def lesson(self) -> str:
        """The slug of its lesson; "" if none asks it."""
        return numbers.lesson_of("tasks", self.id) or ""

    @property
    def forbidden(self) -> tuple[Forbidden, ...]:
        """What it forbids in all: `forbid`, and what follows from that and from its kind."""
        return all_forbidden(self.forbid, derive=self.kind == "derive")

    @cached_property
    def rules(self) -> list[str]:
        """The rules of all that it forbids, as `tasks.forbidden` describes them; both engines go by these."""
        return list(dict.fromkeys(rule for each in self.forbidden for rule in each.rules))

    @cached_property
    def call(self) -> Call:
        """How its answer is put to a case."""
        return Call(self.entry, self.kind, self.symbols, self.functions, self.rules)

    @property
    def wants_function(self) -> bool:
        """Whether the learner defines a function, not a value."""
        return self.call.wants_function

    @property
    def wants_latex(self) -> bool:
        """Whether the learner writes LaTeX: a formula, or the lines of a derivation."""
        return self.kind in ("formula", "derivation")

    def handed_in(self, function: Callable[..., Any]) -> Any:
        """Return what a learner hands in, made from an answer or a mistake of the task: itself, an expression or a value."""
        if self.kind == "derive":
            import sympy

            return function(*(sympy.Symbol(name, real=True) for name in self.symbols))
        if self.wants_latex or self.wants_function:
            return function
        return function(**self.numbers) if inspect.signature(function).parameters else function()

    @property
    def numbers(self) -> Mapping[str, Any]:
        """The numbers of this variant, by name; empty if everybody has the same."""
        return self.variants[0]

    def variant(self, key: str) -> "Task":
        """Return the task with the numbers of a student, and no other variants.

        `key`: the student's id. "" keeps the numbers of the solution, which no student gets where there are others.
        """
        if not key or len(self.variants) == 1:
            return self
        name = unicodedata.normalize("NFC", f"{self.id} {key}")  # some systems write a letter and its dots apart
        drawn = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")
        return replace(self, variants=[self.variants[1 + drawn % (len(self.variants) - 1)]])

    def each_variant(self) -> "Iterator[Task]":
        """The task with each of its sets of numbers, that of the solution first."""
        return (replace(self, variants=[numbers]) for numbers in self.variants)

    def numbers_in(self, text: str) -> list[str]:
        """List the numbers of a predict task's variant that a text says; small whole ones may be anything's."""
        values = [number for value in self.numbers.values() for number in np.ravel(value)] if self.kind == "predict" else []
        own = dict.fromkeys(f"{number:g}" for number in values if number >= 10 or number % 1)
        return [number for number in own if re.search(rf"(?<![\w.]){re.escape(number)}(?!\w|\.\d)", text)]

    @cached_property
    def question(self) -> Question:
        """By what LaTeX is read and evaluated."""
        start, goal = (self.left, "") if self.kind == "formula" else (self.answer[0], self.answer[-1])
        first = self.cases(np.random.default_rng(CHECK_SEED))[0]
        targets = tuple(name for name in first.inputs if name not in self.symbols)
        return Question(self.entry, tuple(self.symbols), tuple(self.functions), start, targets, goal)

    def sent(self, cases: Sequence[Case]) -> list[dict[str, Any]]:
        """Return the givens of cases, packed, as an answer in LaTeX may see them: of what it is to equal only the form."""
        return [{name: packed(name, given, blank=name not in self.symbols) for name, given in case.inputs.items()} for case in cases]

    def blank(self, cases: Sequence[Case]) -> list[dict[str, Any]]:
        """Return the same givens unpacked."""
        return [{name: unpacked(given) for name, given in case.items()} for case in self.sent(cases)]

    def draw(self, rng: np.random.Generator) -> list[Case]:
        """Draw the cases; for a function, each is followed by one of the same shapes with everything else another, see `again`."""
        cases = self.cases(rng)
        if not self.wants_function:
            return cases
        twins = zip(cases, followers(self, cases, rng), strict=True)
        return [one for case, calls in twins for one in (case, *(Case(case.name + what, **inputs) for what, inputs in calls.items()))]

    @cached_property
    def n_cases(self) -> int:
        """How many cases its text speaks of; `draw` adds those that are called again."""
        return len(self.cases(np.random.default_rng(CHECK_SEED)))

    @property
    def worth(self) -> str:
        """What it is worth, in words."""
        return "your turn in the lesson" if self.your_turn else numbers.counted(self.points, "point")

    @cached_property
    def ok_line(self) -> str:
        """The one line of a passed check."""
        acronym = self.title[1:2].isupper()  # VJP stays VJP
        title = self.title if acronym else self.title[0].lower() + self.title[1:]
        return f"ok: task {self.number}, {title}: {numbers.counted(self.n_cases, 'case')}, {self.worth}"

    @property
    def card(self) -> str:
        """Heading and facts, as Markdown, that stand above the question; a line breaks between facts, or where what is trained is long."""
        stars = "★" * self.difficulty + "☆" * (5 - self.difficulty)
        short = [KINDS[self.kind], stars, f"{self.minutes} minutes", self.worth, numbers.eq(self.equation) if self.equation else ""]
        *facts, equation = (fact.replace(" ", "\N{NO-BREAK SPACE}") for fact in short)
        facts += filter(None, [f"trains {self.trains}", equation])
        return f"## Task {self.number}: {self.title}\n\n*{' · '.join(facts)}*"

    @property
    def limits(self) -> str:
        """What may not or may stand in an answer, in LaTeX as it is typed, as Markdown that stands below the question."""
        said = list[str]()
        if not_allowed := "; ".join(each.words for each in self.forbidden):
            said.append(f"Not allowed: {not_allowed}.")
        if self.wants_latex:
            typed = [", ".join(f"`{name}`" for name in names) for names in (self.symbols, self.functions)]
            said.append(f"In `{self.entry}` may stand: {', '.join(filter(None, typed))}, numbers, and sums with indices of their own.")
        return "\n\n".join(f"<small>{each}</small>" for each in said)

    @property
    def hints_markdown(self) -> str:
        """The hints, each folded."""
        return "\n".join(
            f"<details><summary>Hint {n}</summary>\n\n{numbers.cite(hint)}\n\n</details>" for n, hint in enumerate(self.hints, 1)
        )

    @property
    def given_source(self) -> str:
        """Text of the given cell: opaque symbols of a derive task, or helper functions; empty if there are none."""
        parts = [textwrap.dedent(inspect.getsource(function)).rstrip() for function in self.given]
        if self.kind == "derive":
            imports = f"from sympy import {', '.join(sorted(['symbols', *self.functions]))}"
            parts.insert(0, f'{imports}\n\n{", ".join(self.symbols)} = symbols("{" ".join(self.symbols)}", real=True)')
        return numbers.cite("\n\n\n".join(parts))

    @property
    def question_source(self) -> str:
        """Text of the cell that prints a student's numbers and names them; empty if everybody has the same, or they are in a figure."""
        if self.kind != "predict" or not self.numbers:
            return ""
        names = ", ".join(self.numbers)
        return f'from attn_course import question\n\n{names}{"," if len(self.numbers) == 1 else ""} = question("{self.id}")'

    @property
    def check_source(self) -> str:
        """Text of the cell that judges it."""
        return f'check("{self.id}", {self.entry})'

    @property
    def handed_out(self) -> str:
        """Text that the answer cell begins with: a function to repair under its own name, a derivation's ends; empty if the name alone."""
        if self.kind == "derivation":
            return f'{self.entry} = [\n    r"{self.answer[0]}",\n    ...,  # your lines\n    r"{self.answer[-1]}",\n]'
        if self.broken is None:
            return ""
        source = textwrap.dedent(inspect.getsource(self.broken)).rstrip()
        return re.sub(rf"\b(def|class) {self.broken.__name__}\(", rf"\1 {self.entry}(", numbers.cite(source), count=1)


@dataclass(frozen=True)
class Verdict:
    """What the judge found: passed or not, the points, and the reason in words.

    `latex`: whether what the message quotes is LaTeX. `formula`: LaTeX of an answer in LaTeX as it was understood, of a derivation
    the step that does not hold; `lead` are words before it. `counts`: whether it was an attempt; what cannot be read is none.
    """

    task: str
    title: str
    passed: bool
    points: float
    max_points: float
    message: str
    mistake: str | None = None
    hint: str | None = None
    equation: str | None = None
    latex: bool = False
    formula: str | None = None
    lead: str = "It was read as"
    counts: bool = True

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return asdict(self)

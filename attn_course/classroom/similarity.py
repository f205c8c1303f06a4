"""Find pairs of submissions whose code is alike once names, layout and comments are taken away.

Each cell's syntax tree, without lines that do nothing, becomes a row of tokens: node types, operators, attributes, constants, and how
long ago each of a learner's own names was used. Stretches of SPAN tokens are compared, the idea behind MOSS (Schleimer, Wilkerson and
Aiken, "Winnowing", SIGMOD 2003), here without sampling: a class is small. What everybody was given says nothing about a pair and is
left out.

What many share says little if it is short: a formula dictates a line or two, and half of a class writes the same ones. It says
much if it is long, however many share it, since each further line could have been written, ordered or cut in another way. So
what more than a quarter of the class shares counts for a pair in two cases only: it is part of one unbroken stretch of LONG
tokens, or the shorter notebook, which must be about as long, agrees with the other in WHOLE of its code. The rest is left out
and told: "no pair stands out" must not be read as "nothing was shared". Alike is a reason to look, never a proof.
"""

import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from attn_course.classroom.similarity_rows import SPAN, Row, rows_of

COMMON = 0.25  # of the class: what more share is common; two students never are many
LONG = 4 * SPAN  # tokens; nearly twice a softmax with its shift
WHOLE = 0.8  # of the shorter notebook's own code
_LINE_END = re.compile("\r\n?|\n")  # as Python counts lines
_GAP = 4  # lines, the docstring of a short function for one, that do not part a passage


@dataclass(frozen=True)
class Passage:
    """Lines of one submission that the other has too.

    `cell`: place of the cell in the list that was given, from 0. `first`, `last`: lines in this cell, from 1. `text`: these
    lines.
    """

    cell: int
    first: int
    last: int
    text: str


@dataclass(frozen=True)
class Pair:
    """Two submissions that are alike.

    `students`: in alphabetical order. `share`: part of the shorter one's own code that the other has, in [0, 1]; what was given,
    and what is common and short, is no part of either. `rows`: how many rows of tokens they share. `lines`: on how many lines
    these stand, in the notebook where they are fewer. `passages`: what they share, as it stands in each.
    """

    students: tuple[str, str]
    share: float
    rows: int
    lines: int
    passages: tuple[tuple[Passage, ...], tuple[Passage, ...]]


@dataclass(frozen=True)
class Common:
    """Code that did not count because many share it: mostly short, else of notebooks that differ in most else.

    `name`: what it defines, such as "my_softmax"; empty for other statements. `students`: who share it. `text`: it, as the first
    of them wrote it. `lines`: on how many lines it stands there.
    """

    name: str
    students: tuple[str, ...]
    text: str
    lines: int


@dataclass(frozen=True)
class Comparison:
    """What comparing a class brought.

    `pairs`: the most alike first. `left_out`: what did not count because many share it, and is no part of any pair; the largest
    group first. `unread`: by student, how many cells are no Python and were not compared; only of those who have any.
    """

    pairs: tuple[Pair, ...]
    left_out: tuple[Common, ...]
    unread: Mapping[str, int]


def compare(
    submissions: Mapping[str, Sequence[str]], *, shown: Sequence[str] = (), threshold: float = 0.6, least_rows: int = 12
) -> Comparison:
    """Compare every submission with every other.

    `submissions`: each student's code cells; a cell that is no Python is passed over. `shown`: cells that everybody was given.
    `threshold`: smallest share to report, in (0, 1]. `least_rows`: smallest number of shared rows to report. Returns the pairs
    that are alike, and what was left out because many share it. Raises ValueError if the threshold is not in (0, 1].
    """
    if not 0 < threshold <= 1:
        raise ValueError(f"threshold must lie in (0, 1]; got {threshold:g}")
    given = set(rows_of(shown)[0])
    number: defaultdict[tuple[str, ...], int] = defaultdict(itertools.count().__next__)  # numbers are compared faster than tokens
    rows: dict[str, dict[int, Row]] = {}
    unread: dict[str, int] = {}
    for student, cells in submissions.items():
        own, missed = rows_of(cells)
        rows[student] = {number[row]: at for row, at in own.items() if row not in given}
        unread |= {student: missed} if missed else {}
    students_with = Counter(row for found in rows.values() for row in found)
    many = max(2, int(COMMON * len(submissions)))
    common = {row for row, count in students_with.items() if count > many}
    n_rare = {student: len(found.keys() - common) for student, found in rows.items()}
    pairs, counted = [], set()
    for left, right in itertools.combinations(sorted(rows), 2):
        shared = _counting(rows[left], rows[right], common)
        n_long = len(shared & common)
        share = len(shared) / max(1, n_long + min(n_rare[left], n_rare[right]))
        if len(shared) >= least_rows and share >= threshold:
            at = [[rows[student][row] for row in shared] for student in (left, right)]
            passages = (_passages(submissions[left], at[0]), _passages(submissions[right], at[1]))
            lines = min(_n_lines(side) for side in at)
            pairs.append(Pair((left, right), share, len(shared), lines, passages))
            counted |= shared
    pairs.sort(key=lambda pair: (-pair.share, -pair.rows, pair.students))
    return Comparison(tuple(pairs), _left_out(submissions, rows, common - counted), unread)


def groups(pairs: Sequence[Pair]) -> list[tuple[tuple[str, ...], list[Pair]]]:
    """Put pairs together whose students hang together, so that ten copies of one notebook are one finding and not 45.

    `pairs`: the most alike first. Each has its students in alphabetical order, and its pairs in the order given. Pairs that share
    less than WHOLE stay alone.
    """
    members: dict[str, set[str]] = {}
    for pair in pairs:
        if pair.share >= WHOLE:
            together = set().union(*(members.get(student, {student}) for student in pair.students))
            members.update(dict.fromkeys(together, together))
    found: dict[tuple[str, ...], list[Pair]] = {}
    for pair in pairs:
        together = members.get(pair.students[0], set()) if pair.share >= WHOLE else set(pair.students)
        found.setdefault(tuple(sorted(together)), []).append(pair)
    return list(found.items())


def _n_lines(rows: Sequence[Row]) -> int:
    return len({(row.cell, line) for row in rows for line in row.lines})


def _counting(left: Mapping[int, Row], right: Mapping[int, Row], common: set[int]) -> set[int]:
    """The rows that both have and that say something about them: see the module's docstring."""
    shared = left.keys() & right.keys()
    long = LONG - SPAN + 1  # rows of a stretch of LONG tokens
    if len(shared) >= long and len(shared) >= WHOLE * min(len(left), len(right)):
        return shared
    counting = shared - common
    if len(shared) >= long:
        stretch: list[int] = []
        for row in (*sorted(shared, key=lambda row: left[row].place), None):
            if stretch and (row is None or any(side[row].place != side[stretch[-1]].place + 1 for side in (left, right))):
                counting.update(stretch if len(stretch) >= long else ())
                stretch = []
            if row is not None:
                stretch.append(row)
    return counting


def _left_out(submissions: Mapping[str, Sequence[str]], rows: Mapping[str, Mapping[int, Row]], left_out: set[int]) -> tuple[Common, ...]:
    """Common rows put together by the statement in which the first student who has them wrote them."""
    seen: set[int] = set()
    found = []
    for student in sorted(rows):
        by_name: dict[str, list[int]] = {}
        for row in rows[student].keys() & (left_out - seen):
            by_name.setdefault(rows[student][row].name, []).append(row)
        for name, own in by_name.items():
            sharing = tuple(sorted(other for other in rows if any(row in rows[other] for row in own)))
            at = [rows[student][row] for row in own]
            text = "\n".join(passage.text for passage in _passages(submissions[student], at))
            found.append(Common(name, sharing, text, _n_lines(at)))
            seen.update(own)
    return tuple(sorted(found, key=lambda common: (-len(common.students), common.name, common.text)))


def _passages(cells: Sequence[str], rows: Sequence[Row]) -> tuple[Passage, ...]:
    """Stretches of lines that the rows cover, but for short gaps, in the order of the notebook."""
    found: list[Passage] = []
    for cell, line in sorted({(row.cell, line) for row in rows for line in row.lines}):
        joins = bool(found) and found[-1].cell == cell and line - found[-1].last <= _GAP
        first = found.pop().first if joins else line
        found.append(Passage(cell, first, line, "\n".join(_LINE_END.split(cells[cell])[first - 1 : line])))
    return tuple(found)

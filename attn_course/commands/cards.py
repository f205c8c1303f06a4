"""`attn-course cards`: what to know by heart, for spaced repetition in Anki."""

import hashlib
import html
import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from attn_course.commands.chapters import exercise_lessons, read_chapter
from attn_course.commands.course import course_to_read, shown
from attn_course.commands.terminal import BadInput, option, say
from attn_course.numbers import cite, counted, eq, lesson_number, lesson_of, names, task_number, title

if TYPE_CHECKING:
    from attn_course.equations.core import Equation
    from attn_course.tasks import Task

_FORMULA = re.compile(r"\$\$(.+?)\$\$|\$(.+?)\$", re.DOTALL)
_RUN_THE_CELL = re.compile(r"\A(?:Run the cell below[.:]? ?(?:It shows)?|The cell below shows)")
_MODEL, _DECK = 1_607_392_319, 2_059_400_110  # any numbers, as long as they stay the same: by them Anki knows what it has
_LOOK = (
    ".card { font: 20px/1.5 sans-serif; text-align: center; } img { max-width: 100%; } ul, ol { display: inline-block; text-align: left; }"
)


class Card(NamedTuple):
    """One card: `key` stays the same for ever, the rest is HTML with formulas as Anki sets them. `picture`: name and bytes."""

    key: str
    front: str
    back: str
    picture: tuple[str, bytes] | None = None


def cards(
    lessons: Annotated[
        list[str] | None, typer.Argument(metavar="[LESSON...]", help="Lessons; all if left out.", show_default=False)
    ] = None,
    out: Annotated[Path, option("--out", "FILE", "The file to write; its name ends in .apkg.")] = Path("attention.apkg"),
) -> None:
    """Write cards for spaced repetition, as a file that Anki imports.

    Of each equation: the formula by its name; what follows from the equations that it rests on; and which of several forms holds, the
    others being mistakes that people make. Of each task that asks to read a figure: the figure and its question. There is a deck for
    each lesson. Importing a newer file changes cards and keeps what Anki knows about you.

    Examples:

        attn-course cards --out attention.apkg
        attn-course cards softmax attention --out two.apkg
    """
    if out.suffix != ".apkg":
        raise BadInput(f"--out: wanted a name that ends in .apkg; got {out}")
    root = course_to_read()
    there = exercise_lessons(root)
    chosen = [read_chapter(lesson, there, "cards") for lesson in lessons] if lessons else there
    import genanki

    look = {"qfmt": "{{Front}}", "afmt": "{{FrontSide}}<hr>{{Back}}", "name": "Card"}
    model = genanki.Model(_MODEL, "attn_course", fields=[{"name": "Front"}, {"name": "Back"}], templates=[look], css=_LOOK)
    decks, written = [], 0
    pictures: dict[str, bytes] = {}
    for lesson in chosen:
        deck = genanki.Deck(_DECK + _stable(lesson) % 10**8, f"Own attention::{lesson_number(lesson).zfill(2)} {title(lesson)}")
        for card in of_lesson(root, lesson):
            deck.add_note(genanki.Note(model, [card.front, card.back], guid=genanki.guid_for(card.key), tags=[lesson]))
            pictures |= [card.picture] if card.picture else []
            written += 1
        decks.append(deck)
    _write(genanki.Package(decks), pictures, out)
    say(f"{counted(written, 'card')} in {shown(out)}; in Anki: File, Import")


def of_lesson(root: Path, lesson: str) -> Iterator[Card]:
    """Yield the cards of a lesson; `root`: where solutions/ may hold the figures to read."""
    from attn_course.equations.core import REGISTRY
    from attn_course.tasks import all_tasks

    for label in names("labels", lesson):
        yield from of_equation(REGISTRY.get_equation(label))
    drawn = _figures(root, lesson)
    for task in all_tasks(lesson):
        if task.kind == "figure" and task.id in drawn:
            yield _of_figure(task, drawn[task.id])


def of_equation(equation: "Equation") -> Iterator[Card]:
    """Yield the cards of an equation: its formula, the step that leads to it, its mistakes."""
    from attn_course.equations.core import REGISTRY

    called = f"<b>{html.escape(equation.name)}</b>, {eq(equation.label)}"
    told = f"{_set(equation.latex)}<p>{_plain(equation.why)}</p>"
    assumed = f"<p>Assumed: {_plain('; '.join(equation.assumes))}.</p>" if equation.assumes else ""
    yield Card(f"formula {equation.label}", f"{called}: what is the formula?{assumed}", told)
    if before := [label for label in equation.uses if lesson_of("labels", label)]:
        rests = "".join(f"<p>{html.escape(REGISTRY.get_equation(one).name)}:</p>{_set(REGISTRY.get_equation(one).latex)}" for one in before)
        yield Card(f"step {equation.label}", f"{rests}What follows for {called}?{assumed}", told)
    if equation.wrongs:
        forms = [(equation.latex, "this one holds"), *((wrong.latex, wrong.name) for wrong in equation.wrongs[:3])]
        random.Random(_stable(equation.label)).shuffle(forms)
        asked = "".join(f"<li>{_set(latex)}</li>" for latex, _ in forms)
        answers = "".join(f"<li>{_plain(words)}</li>" for _, words in forms)
        yield Card(f"wrong {equation.label}", f"{called}: which one holds?{assumed}<ol>{asked}</ol>", f"<ol>{answers}</ol>{told}")


def _of_figure(task: "Task", picture: bytes) -> Card:
    assert task.sheet is not None, task.id
    name = f"attn-{task.id}.svg"
    asked = _RUN_THE_CELL.sub("The figure shows", cite(task.sheet.question))
    answers = ", ".join(f"{value:.4g}" for value in task.answer(**task.numbers))
    number = f"<b>{html.escape(task.title)}</b>, task {task_number(task.id)}"
    front = f'{number}<p><img src="{name}"></p>{_markdown(asked)}'
    return Card(f"figure {task.id}", front, f"<p>{answers}</p>{_markdown(cite(task.sheet.why))}", (name, picture))


def _figures(root: Path, lesson: str) -> dict[str, bytes]:
    """The figures of a lesson's solutions, by task."""
    found: dict[str, bytes] = {}
    for path in (root / "solutions").glob(f"[0-9]*_{lesson}.ipynb"):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            for output in cell.get("outputs", []):
                if "image/svg+xml" in output.get("data", {}):
                    found[cell["id"].removesuffix("-figure")] = "".join(output["data"]["image/svg+xml"]).encode()
    return found


def _set(latex: str) -> str:
    return rf"<div>\[{html.escape(latex, quote=False)}\]</div>"


def _plain(text: str) -> str:
    """Return what an equation's source says in plain text as HTML."""
    from attn_course.figures.plain import mathematics
    from attn_course.site.sources import LABEL, NAMED

    def number(found: re.Match[str]) -> str:
        return eq(found[0]).removeprefix("Eq. ") if lesson_of("labels", found[0]) else found[0]

    named = NAMED.sub(lambda found: re.sub(LABEL, number, found[0]), cite(text))
    return mathematics(html.escape(named, quote=False))


def _markdown(text: str) -> str:
    """Return Markdown as HTML, its formulas as Anki's MathJax reads them."""
    from markdown_it import MarkdownIt

    kept: list[str] = []

    def keep(found: "re.Match[str]") -> str:
        kept.append(rf"\[{html.escape(found[1], quote=False)}\]" if found[1] else rf"\({html.escape(found[2], quote=False)}\)")
        return f"\ue000{len(kept) - 1}\ue001"  # no sign of any text

    rendered = MarkdownIt().enable("table").render(_FORMULA.sub(keep, text))
    return re.sub("\ue000(\\d+)\ue001", lambda found: kept[int(found[1])], rendered)


def _stable(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4])


def _write(package: Any, pictures: dict[str, bytes], out: Path) -> None:
    """Write the package with its pictures, which genanki takes from files."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        for name, content in pictures.items():
            Path(folder, name).write_bytes(content)
        package.media_files = [str(Path(folder, name)) for name in pictures]
        try:
            out.parent.mkdir(parents=True, exist_ok=True)
            package.write_to_file(str(out))
        except OSError as error:
            raise BadInput(f"cannot write {out}: {error.strerror or error}") from error

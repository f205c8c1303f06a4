"""What Sphinx builds the site from: the built notebooks under addresses that stay, and a page for each equation and each task."""

import ast
import html
import json
import re
import shutil
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from itertools import combinations, dropwhile, groupby, pairwise
from pathlib import Path
from typing import Any

from docutils.nodes import make_id

from attn_course import numbers
from attn_course.authoring.course import Unit
from attn_course.authoring.notebook import SET_UP, is_passed_over, steps_of
from attn_course.authoring.predictions import curly, unquoted
from attn_course.equations.core import REGISTRY, Equation
from attn_course.equations.names import name_of
from attn_course.figures.explorable import joined_parts, packed, unpacked
from attn_course.figures.machines import tall
from attn_course.figures.plain import mathematics
from attn_course.figures.viewer import text_of, viewer
from attn_course.game.alive import card, life_of, still
from attn_course.game.card import card_of_the_machine
from attn_course.game.living import StaysStill
from attn_course.language.maps import TEXTS, smollm2_maps
from attn_course.notation.glossary import DIALECTS, GLOSSARY
from attn_course.notation.tables import letters
from attn_course.numbers import counted
from attn_course.site.arcs import arcs, most_used
from attn_course.site.formulas import in_latex, unbroken
from attn_course.tasks import all_tasks
from attn_course.tasks.core import Task

HERE = Path(__file__).parent
NOTEBOOK = r"(?:\.\./(?:work/lessons|work|notebooks|exercises)/)?(?P<ex>ex_)?\d\d_(?P<slug>\w+)\.ipynb"
IN_MARKDOWN = re.compile(rf"\[(?P<words>[^\]\[]*)\]\({NOTEBOOK}(?P<anchor>#[^)]*)?\)")
IN_HTML = re.compile(rf'href="{NOTEBOOK}')
LABEL = r"(?!and\b)[a-z][a-z0-9]*(?:-[a-z0-9]+)*"
NAMED = re.compile(rf"\b(?:Eq\. |Eqs\. (?:{LABEL}, )*{LABEL} and ){LABEL}")  # as the sources of equations refer to each other
HINT = re.compile(r"(?<=<summary>)(Hint \d</summary>\n\n)(.*?)(?=\n\n</details>)", re.DOTALL)
HELD = re.compile(r"(?<=- )[^$\n]+?(?=: \$|$)", re.MULTILINE)  # in the list of what holds: an equation, and what it rejects
NAMELESS = re.compile(r"(?<=[:$] )[\\\w{}]+(?= (?:is given and|does not take))")  # a letter in what is said of a mistake
JOINED_BY = re.compile(r"(?<=[\w>)|\]]) (?:[=/+·×≤≥−]|&[lg]t;) (?=[\w√Σ(|<−])|(?<=</var>|</sub>|</sup>) (?:ln )?(?=<var>)")  # in one line
COLUMNS = 6  # of two pages, each with whole lessons
NARROWED = re.compile(r"(?<=,) *\\quad |\s*\\in \\mathbb\{R\}\^\{[^}]*\}\Z")  # two claims, which may stand below each other; a shape
SIGN = re.compile(r"\\[A-Za-z]+|[^{}\s^_]")  # of a formula
CODED = re.compile(r"\b(?:np|tl)\.|\w\[|\w\w_\w|\(axis=|range\(")  # a line of code is left as it is
CODE = re.compile(r"nn\.\w+|\w+_\w+_\w+")
ANSWER = re.compile(r"<details[^>]*><summary>[^<]*</summary>(.*)</details>\s*", re.DOTALL)
FOLDED: dict[str, Any] = {"tags": [SET_UP], "mystnb": {"code_prompt_show": "code", "code_prompt_hide": "code"}}
QUIET: dict[str, Any] = {"tags": [SET_UP, "quiet"]}  # what made nothing
ALIVE, HOLES = re.compile(r'^alive\("([a-z0-9-]+)"\)', re.MULTILINE), re.compile(r"\n{3,}")
A_LINE_OR_TWO = 160
ASKED = re.compile(r"(?<=[^\n])\n>")  # the text before a question is a paragraph of its own
SHOWN_THERE = re.compile(r"\bprint\(|^ *figures\.", re.MULTILINE)  # by a cell whose output depends on the machine
HEADING = re.compile(r"^#.*", re.MULTILINE)
LIVE = '<small class="live">What comes out of this cell and its like depends on the machine: run them in your notebook.</small>'
SIZE = re.compile(r'width="\d+" height="\d+"')
IMPORTS = QUIET | {"mystnb": {"code_prompt_show": "imports", "code_prompt_hide": "imports"}}
IN_WORDS = "<details><summary>Figure in words</summary>"
KEY = re.compile(r"\$\$\s*\\boxed(?:(?!\$\$).)*\\tag\{([\d.]+)\}", re.DOTALL)
GLOSSARY_PAGE = """# Glossary

Each word of the course with its axes, and below what six other dialects call the same.

{words}

## Six dialects

They are recognised by this:

{dialects}

## Letters of many meanings

{letters}
"""
MAP = """# Which equation rests on which

Each arc leads from a lesson down to one that uses its equations, the thicker the more often.
Lit are those of {lit}, which is used most. <span class="with-mouse">The number before the arcs counts the uses; point at another lesson to
light its own.</span>

{arcs}

<span class="with-mouse">Point at an equation, or move to it with Tab:</span> <span class="with-finger">Tap an equation:</span>
below stand what it rests on and what it is used by. <span class="with-finger">Another tap opens its page.</span>"""
JOINED = """<div class="map-joined" aria-live="polite" hidden>
<div><p>rests on</p><div class="map-lesson"></div></div><div><p>used by</p><div class="map-lesson"></div></div></div>"""
OTHERS = {
    "sheet": "Attention on two pages",
    "map": "Which equation rests on which",
    "glossary": "Glossary",
    "break": "Break the machine",
    "viewer": "Attention viewer",
}
BESIDE = {"break": ", a game", "viewer": " of a real model"}
LOOKS = "looks-card"  # the cell of the first picture
PARTS = {  # of the course: the lesson that it begins with, its name, and what one can do after it
    "start": ("One head", "Compute a head by hand, write it in a few lines, find the mistake in somebody else's, derive its gradients."),
    "self_attention": ("A layer", "Build a layer with order, masks and several heads, and find out what a head of a real model does."),
    "absorption": ("Smaller and faster", "Shrink the cache, do without the softmax, compute exact attention and store no weights."),
    "transformer": ("A whole model", "Write a GPT that runs the weights of a real model, show how it copies, and read what others write."),
}
VIEWER = """# Attention viewer

Each head of a real language model on three short texts, and what it brings beside what it looks at. Find the head in which "it" looks at
the cat, and those in which the second "red" looks at what followed the first.

{card}

Three heads in four give more than half of their weight to the first word, and it brings less than that, for its values are short. In a
notebook, `attention_viewer(tokens, weights, values)` shows the attention of any model in this way.
"""
INDEX = """# Own attention

{hero}

{lessons}

{beside}

{play}

Every numbered formula is computed with random numbers before it is printed, and most of them you can play with. {change}

{alive}

```{{toctree}}
:caption: Lessons
:hidden:

{toc_lessons}
```

```{{toctree}}
:hidden:

{toc_exercises}
```

```{{toctree}}
:caption: To look things up
:hidden:

sheet
map
glossary
break
viewer
```
"""


@dataclass(frozen=True)
class Sources:
    """The folder that Sphinx reads, filled by `write`. `repository`: where the course's files lie on GitHub, "owner/name", or ""."""

    units: Sequence[Unit]
    folder: Path
    repository: str = ""
    branch: str = "main"
    titles: dict[str, str] = field(default_factory=dict)  # of the pages of notebooks, filled by `write`

    @cached_property
    def equations(self) -> list[Equation]:
        """The equations of the lessons that are on the site, in their order."""
        shown = {unit.slug for unit in self.units}
        return [equation for equation in REGISTRY.all_equations() if equation.number and equation.lesson in shown]

    @cached_property
    def tasks(self) -> list[Task]:
        """The tasks of these lessons, in their order."""
        return [task for slug in dict.fromkeys(unit.slug for unit in self.units) for task in all_tasks(slug)]

    @property
    def numbers(self) -> dict[str, str]:
        """The number of each equation, and its label."""
        return {numbers.eq(equation.label)[5:-1]: equation.label for equation in self.equations}

    @property
    def places(self) -> dict[str, tuple[str, str]]:
        """What the text refers to, and where it stands: a page and its anchor."""
        found = {f"eq {number}": (numbers.lesson_of("labels", label) or "", f"eq-{label}") for number, label in self.numbers.items()}
        found |= {f"task {task.number}": (f"task/{task.id}", "") for task in self.tasks}
        return found | {f"lesson {int(numbers.lesson_number(unit.slug)):02d}": (unit.slug, "") for unit in self.units}

    def write(self) -> None:
        """Write all sources."""
        for name in ("_static/alive", "_static/katex", "_static/plots", "eq", "task"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        shutil.copytree(HERE / "katex", self.folder / "_static" / "katex", dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.js"))
        for name in ("mark.svg", "site.css", "site.js"):
            shutil.copy(HERE / name, self.folder / "_static" / name)
        questions, keys, looks = dict[str, str](), list[str](), ""
        for unit in self.units:
            book = json.loads(unit.path.read_text(encoding="utf-8"))
            texts = {cell["id"]: "".join(cell["source"]) for cell in book["cells"]}
            questions |= {name.removesuffix("-text"): unquoted(text) for name, text in texts.items() if name.endswith("-text")}
            keys += [number for text in texts.values() for number in KEY.findall(text) if number in self.numbers]
            self.titles[page_of(unit)] = next(iter(texts.values())).partition("\n")[0].removeprefix("# ")
            self._write(page_of(unit) + ".ipynb", json.dumps(self._book(unit, book), ensure_ascii=False))
            looks = looks or next(("".join(cell["outputs"][0]["data"]["text/html"]) for cell in book["cells"] if cell["id"] == LOOKS), "")
        for equation in self.equations:
            self._write(f"eq/{equation.label}.md", self._equation(equation))
        for task in self.tasks:
            if task.id in questions:
                self._write(f"task/{task.id}.md", self._task(task, questions[task.id]))
        self._write("sheet.md", self._sheet([self.numbers[number] for number in dict.fromkeys(keys)]))
        self._write("map.md", self._map())
        self._write("glossary.md", _glossary())
        self._write("_static/about.js", f"const ABOUT = {json.dumps(self._about(), ensure_ascii=False)};\n")
        self._write("_static/machine.js", tall.script())
        self._write("break.md", f"# Break the machine\n\n{_raw(card_of_the_machine())}\n")
        real = viewer([text_of(**smollm2_maps(text)) for text in TEXTS], layer=13, head=8, query=4, title="SmolLM2, 30 layers of 9 heads")
        self._write("viewer.md", VIEWER.format(card=_raw(real._repr_html_())))
        self._write("index.md", self._index(looks))

    def _named(self, slug: str) -> str:
        """The number and the short name of a lesson, as they stand everywhere."""
        return self.titles[slug].partition(":")[0]

    def _write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text, encoding="utf-8")

    # ---- Notebooks
    def _book(self, unit: Unit, book: dict[str, Any]) -> dict[str, Any]:
        told = False
        for cell in book["cells"]:
            text = "".join(cell["source"])
            if cell["cell_type"] == "markdown":
                cell["source"] = _said_in_tasks(self._links(_displayed(unquoted(ASKED.sub("\n\n>", text)))))
            else:
                cell["source"] = HOLES.sub("\n\n", text)
            for output in cell.get("outputs", []):
                data = output.get("data", {})
                if (words := "".join(data.get("text/html", ""))).startswith(IN_WORDS):
                    data["text/html"] = IN_WORDS + mathematics(words.removeprefix(IN_WORDS).replace("&#x27;", "’"))
                if (said := "".join(data.get("text/markdown", ""))).startswith("<details><summary>✓"):
                    data["text/markdown"] = HELD.sub(lambda found: mathematics(html.escape(found[0], quote=False)), said)
                for kind in {"text/markdown", "text/html"} & set(data):
                    data[kind] = unpacked(self._links("".join(data[kind])))  # so that a card is there when the page is printed
                if "image/svg+xml" in data:
                    output["data"] = {"text/html": self._plot("".join(data["image/svg+xml"]), **output["metadata"]["image/svg+xml"])}
            tags = cell["metadata"].get("tags", [])
            shows = "live" in tags and "predicted" not in tags and not cell["outputs"] and SHOWN_THERE.search("".join(cell["source"]))
            if shows and not told:
                cell["outputs"].append({"output_type": "display_data", "data": {"text/html": LIVE}, "metadata": {}})
                told = True  # once in a lesson
        book["cells"] = [part for cell in _in_one_fold(book["cells"]) for part in _without_set_up(cell)]
        for before, cell in pairwise(book["cells"]):
            shown = ALIVE.search("".join(cell["source"]))
            equation, _, since = "".join(before["source"]).rpartition(f"\\tag{{{numbers.eq(shown[1])[5:-1]}}}") if shown else ("", "", "")
            if equation and len(since) < A_LINE_OR_TWO:
                cell["metadata"] = cell["metadata"] | {"tags": [*cell["metadata"]["tags"], "in-place"]}
        title = book["cells"][0]
        parts = title["source"].split("\n\n")
        parts.insert(2 if unit.folder == "exercises" else len(parts), self._take_away(unit))
        title["source"] = "\n\n".join(parts)
        return book

    def _plot(self, svg: str, alt: str, narrow: str) -> str:
        """Write a plot into files of its own and return how a page shows it; on a phone one that has no narrow form scrolls."""
        wide, slim = (f"_static/plots/{sha256(each.encode()).hexdigest()[:16]}.svg" for each in (svg, narrow))
        self._write(wide, svg)
        if narrow:
            self._write(slim, narrow)
        source = f'<source media="(max-width: 600px)" srcset="{slim}">' if narrow else ""
        kind = "attn-plot" if narrow else "attn-plot only-wide"
        size = SIZE.findall(svg)[0]  # so that nothing below moves when it comes
        return f'<picture class="{kind}">{source}<img src="{wide}" {size} alt="{html.escape(alt)}"></picture>'

    def _take_away(self, unit: Unit) -> str:
        download = f'<a href="notebooks/{unit.path.name}" download>Download this notebook</a>'
        links = [download]
        if self.repository:
            where = f"{self.repository}/{{}}{self.branch}"
            path = f"{unit.folder}/{unit.path.name}"
            binder = f"https://mybinder.org/v2/gh/{where.format('')}?urlpath=lab/tree/{path}"
            colab = f"https://colab.research.google.com/github/{where.format('blob/')}/{path}"
            links += [f'<a href="{binder}">Open in Binder</a>', f'<a href="{colab}">Open in Colab</a>']
        return f'<p class="take-away">{" · ".join(links)}</p>'

    def _links(self, text: str, up: str = "") -> str:
        """Turn links to notebooks into links to their pages; those of lessons that are left out become their words."""

        def in_markdown(found: re.Match[str]) -> str:
            page = f"{found['slug']}{'-exercises' * bool(found['ex'])}"
            return f"[{found['words']}]({up}{page}.ipynb{found['anchor'] or ''})" if page in self._pages else found["words"]

        def in_html(found: re.Match[str]) -> str:
            page = f"{found['slug']}{'-exercises' * bool(found['ex'])}"
            return f'href="{up}{page}.html' if page in self._pages else 'data-left-out="'

        return IN_HTML.sub(in_html, IN_MARKDOWN.sub(in_markdown, text))

    @cached_property
    def _pages(self) -> set[str]:
        return {page_of(unit) for unit in self.units}

    # ---- Pages of their own
    def _equation(self, equation: Equation) -> str:
        number, label = numbers.eq(equation.label), equation.label
        where = f"{number} of lesson [{self._named(equation.lesson)}](../{equation.lesson}.ipynb)"
        practised = [f"[Task {task.number}: {_titled(task.title)}](../task/{task.id}.md)" for task in self.tasks if task.equation == label]
        listed = [
            ("Assumes", [self._said(each) for each in equation.assumes]),
            ("Rests on", [_to(each) for each in equation.uses if each in self._labels]),
            ("Used by", [_to(each) for each in self._used_by[label]]),
            ("Practised in", practised),
            ("Checked", [self._said(equation.checked)]),
            ("In code", [f'`show("{label}")` puts numbers in' if equation.kind != "transcribed" else f"`{label}`"]),
        ]
        return "\n\n".join(
            [
                f"---\norphan: true\n---\n\n# {equation.name}",
                where + ".",
                f"$${equation.latex}$$",
                self._said(equation.why),
                self._play(equation),
                *("\n: ".join([words, *found]) for words, found in listed if found),
                f"**LaTeX**\n\n```latex\n{equation.latex}\n```",
            ]
        )

    def _said(self, text: str, up: str | None = "../") -> str:
        """Return what an equation's source says in plain text as Markdown; `up`: None for no links."""
        text = html.escape(numbers.cite(text), quote=False).replace("*", "\\*")

        def link(found: re.Match[str]) -> str:
            number = numbers.eq(found[0]).removeprefix("Eq. ") if found[0] in self._labels else found[0]
            return f"[{number}]({up}eq/{found[0]}.md)" if up is not None and found[0] in self._labels else number

        said = mathematics(NAMED.sub(lambda found: re.sub(LABEL, link, found[0]), text))
        return JOINED_BY.sub(lambda found: found[0].replace(" ", "\N{NO-BREAK SPACE}"), said)

    def _play(self, equation: Equation) -> str:
        """Return an equation to play with, or, as it is printed above, its numbers and the smallest counterexample of each mistake."""
        try:
            return _raw(self._card(equation))
        except StaysStill:
            card = still(equation)
            first = card.parts[0]._repr_markdown_()
            lead, _, *lines = first.split("\n\n")
            lines = [re.sub(r".*?, with ", "With ", lead, count=1), *lines] if lines else []
            said = NAMELESS.sub(r"$\g<0>$", "\n\n".join([*lines, card._repr_markdown_().removeprefix(first)]).strip())
            return f"{_raw('<div class=still>')}\n\n{said}\n\n{_raw('</div>')}" * bool(said)

    def _card(self, equation: Equation, up: str = "../") -> str:
        life = life_of(equation.label)
        markup, style, script = joined_parts(packed(card(life)))
        (self.folder / "_static" / "alive" / f"{equation.label}.js").write_text(script, encoding="utf-8")
        (self.folder / "_static" / "alive.css").write_text(style, encoding="utf-8")
        return f'{markup}\n<script src="{up}_static/alive/{equation.label}.js"></script>'

    @cached_property
    def _labels(self) -> set[str]:
        return {equation.label for equation in self.equations}

    @cached_property
    def _used_by(self) -> Mapping[str, list[str]]:
        found = defaultdict[str, list[str]](list)
        for equation in self.equations:
            for used in equation.uses:
                found[used].append(equation.label)
        return found

    def _task(self, task: Task, question: str) -> str:
        text = re.sub(r"\A## ", "# ", _said_in_tasks(self._links(question, up="../")))
        page, kind = (task.lesson, "lesson") if task.your_turn else (f"{task.lesson}-exercises", "exercises of")
        anchor = make_id(text.partition("\n")[0])
        links = [f'<a href="../{page}.html#{anchor}">Answer it in the {kind} {self._named(task.lesson)}</a>']
        if task.equation in self._labels and task.equation:
            links.append(f'<a href="../eq/{task.equation}.html">Look at {numbers.eq(task.equation)}</a>')
        begin = f'<p class="begin">{" ".join(links)}</p>'
        return f"---\norphan: true\n---\n\n{text}\n\n{_raw(begin)}\n"

    def _sheet(self, keys: Sequence[str]) -> str:
        by_lesson = [list(own) for _, own in groupby(map(REGISTRY.get_equation, keys), key=lambda each: each.lesson)]
        columns = min(
            _cut(by_lesson, COLUMNS), key=lambda columns: sum(sum(map(_lines, column)) ** 2 for column in columns)
        )  # equally long
        parts = ["# Attention on two pages", "The key equations of all lessons, each with its reason. Printed, they fill two pages."]
        lines = [sum(map(_lines, column)) for column in columns]
        for at, column in enumerate(columns):
            parts += [_raw("<div class=next-column></div>")] * bool(at)
            longest = max(lines[:3] if at < 3 else lines[3:])
            air = (longest - lines[at]) / sum(map(len, column))  # so that the columns of a page end together
            for own in column:
                parts.append(f"## [{self._named(own[0].lesson)}]({own[0].lesson}.ipynb)")
                for each in own:
                    key = f"$${unbroken(_narrowed(each.latex))} \\tag{{{numbers.eq(each.label)[5:-1]}}}$$"
                    why = in_latex(self._said(each.why, up=""))
                    parts += [_raw(f"<div class=key style=--air:{air:.2f}>"), key, why, _raw("</div>")]
        return "\n\n".join(parts)

    def _map(self) -> str:
        home = {equation.label: equation.lesson for equation in self.equations}
        slugs = list(dict.fromkeys(home.values()))
        pairs = [(home[used], equation.lesson) for equation in self.equations for used in {*equation.uses} & {*home}]
        links = Counter((slugs.index(upper), slugs.index(lower)) for upper, lower in pairs if upper != lower)
        named = [(self._named(slug), f"#{make_id(self._named(slug))}") for slug in slugs]
        parts = {slugs.index(slug): name for slug, (name, _) in PARTS.items() if slug in slugs}
        lines = [MAP.format(arcs=_raw(arcs(named, links, parts)), lit=named[most_used(links, len(slugs))][0])]
        for slug in slugs:
            own = [equation for equation in self.equations if equation.lesson == slug]
            about = [(each.label, " ".join(each.uses), _called(each.label)) for each in own]
            chips = "\n".join(
                f'<a class="map-eq" href="eq/{label}.html" data-label="{label}" data-uses="{uses}">{called}</a>'
                for label, uses, called in about
            )
            summary = f"<summary>{counted(len(own), 'equation')}</summary>"
            fold = f"<details class=map-fold open>{summary}<div class=map-lesson>{chips}</div></details>"
            lines.append(f"## {self._named(slug)}\n\n{_raw(fold)}")
        return "\n\n".join([*lines, _raw(JOINED)])

    def _about(self) -> dict[str, tuple[str, str, str]]:
        """What a result of a search says: the kind of a page, a sentence below its title, and the title."""
        found = {
            unit.slug: ("Lesson", curly(unit.lesson.about), self.titles[unit.slug]) for unit in self.units if unit.folder == "notebooks"
        }
        found |= {page: ("Exercises", title, title) for page, title in self.titles.items() if page.endswith("-exercises")}
        for each in self.equations:
            found[f"eq/{each.label}"] = (
                "Equation",
                f"({numbers.eq(each.label)[5:-1]}) {_sentence(self._said(each.why, up=None))}",
                each.name,
            )
        for task in self.tasks:
            found[f"task/{task.id}"] = ("Task", task.trains, _titled(task.title))
        found |= {page: ("", "", title) for page, title in OTHERS.items()}
        shown = {page: re.sub("`([^`]+)`", r"<code>\1</code>", f"{_sentence(said)}." * bool(said)) for page, (_, said, _) in found.items()}
        return {page: (kind, shown[page], title) for page, (kind, _, title) in found.items()}

    def _lessons(self) -> str:
        """A line for each lesson, in the parts of the course."""
        part, parts = ("", ""), defaultdict[tuple[str, str], list[str]](list)
        for unit in self.units:
            if unit.folder == "notebooks":
                part = PARTS.get(unit.slug, part)
                number, _, title = html.escape(self.titles[unit.slug].replace("dot-", "dot\N{NON-BREAKING HYPHEN}")).partition(" ")
                title = re.sub("(?<=: )(.*)", r'<span class="rest">\1</span>', title)
                exercises = f' <a href="{unit.slug}-exercises.html">exercises</a>' * (f"{unit.slug}-exercises" in self._pages)
                parts[part].append(
                    f'<li><i>{number}</i><a href="{unit.slug}.html">{title}</a><span>{unit.lesson.minutes} min{exercises}</span>'
                    f"<p>{html.escape(curly(_sentence(unit.lesson.about)), quote=False)}.</p></li>"
                )
        heading = {(name, after): f"<h2>{name}</h2>\n<p>{curly(after)}</p>\n" * bool(name) for name, after in parts}
        lists = (f'<div>{heading[part]}<ul class="lessons">\n' + "\n".join(lines) + "\n</ul></div>" for part, lines in parts.items())
        return '<div class="parts">\n' + "\n".join(lists) + "\n</div>"

    def _index(self, looks: str) -> str:
        lessons = [page for page in self.titles if not page.endswith("-exercises")]
        begin = f'<p class="begin"><a href="{lessons[0]}.html">Begin with lesson {self._named(lessons[0])[:2]}</a></p>'
        counts = {"lessons": len(lessons), "checked equations": len(self.equations), "tasks": len(self.tasks)}
        told = "".join(f"<span><b>{count}</b> {name}</span>" for name, count in counts.items())
        lead = "Derive attention, implement it, debug it and make it fast."
        need = "You need matrix products, derivatives and some Python."
        beside = " ".join(f'<a href="{page}.html">{name}{BESIDE.get(page, "")}</a>' for page, name in [*OTHERS.items()][::-1])
        hero = f'<div><p class="lead">{lead}</p><p>{need}</p><p class="counts">{told}</p>{begin}</div>\n<div>{looks}</div>'
        return INDEX.format(
            hero=_raw(f'<div class="hero">{hero}</div>'),
            alive=_raw(self._card(REGISTRY.get_equation("attention"), "")),
            change="[Change the numbers of attention](eq/attention.md), and press a mistake." * ("attention" in self._labels),
            lessons=_raw(self._lessons()),
            beside=_raw(f'<p class="begin beside">{beside}</p>'),
            play=_raw("<h2>Formulas to play with</h2>"),
            toc_lessons="\n".join(lessons),
            toc_exercises="\n".join(page for page in self.titles if page not in lessons),
        )

    def sidebar(self) -> dict[str, Any]:
        """What the template of the sidebar shows: groups of pages, and the lesson to which a page of an equation or task belongs."""
        lessons = {page: self._named(page) for page in self.titles if not page.endswith("-exercises")}
        homes = {f"eq/{equation.label}": equation.lesson for equation in self.equations} | {
            f"task/{task.id}": task.lesson for task in self.tasks
        }
        homes |= {page: page.removesuffix("-exercises") for page in self.titles if page.endswith("-exercises")}
        part, parts = "Lessons", defaultdict[str, dict[str, str]](dict)
        for page, words in lessons.items():
            part = PARTS[page][0] if page in PARTS else part
            parts[part][page] = words
        return {"course_pages": [*parts.items(), ("To look things up", OTHERS)], "course_homes": homes}

    @property
    def rows(self) -> list[list[tuple[str, str]]]:
        """Pages that follow each other, with their titles: equations, and tasks."""
        equations = [(f"eq/{equation.label}", _called(equation.label)) for equation in self.equations]
        tasks = [(f"task/{task.id}", f"{task.number} {_titled(task.title)}") for task in self.tasks]
        return [equations, [(page, title) for page, title in tasks if (self.folder / f"{page}.md").is_file()]]


def _in_one_fold(cells: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Put the explanation of what came out behind the output that it explains, into the same fold."""
    for before, cell in zip((None, *cells), cells, strict=False):
        found = ANSWER.fullmatch("".join(cell["source"])) if "answer" in cell["metadata"].get("tags", []) else None
        if before and found and "predicted" in before["metadata"].get("tags", []):
            explanation = {"output_type": "display_data", "data": {"text/markdown": found[1].strip()}, "metadata": {}}
            before["outputs"].append(explanation)
        else:
            yield cell


def _without_set_up(cell: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Fold what a reader can pass over: what its author folds, three imports or more, and a cell that does no more than show something."""
    code, tags = "".join(cell["source"]), cell["metadata"].get("tags", [])
    steps = steps_of(code) if cell["cell_type"] == "code" else []
    rest = list(dropwhile(lambda step: isinstance(step, ast.Import | ast.ImportFrom), steps))
    if code.startswith("verify_lesson("):
        cell["metadata"] = cell["metadata"] | {"tags": ["remove-input"]}
    elif steps and is_passed_over(code, tags):
        cell["metadata"] = cell["metadata"] | FOLDED | ({} if cell["outputs"] else QUIET)
    elif len(steps) - len(rest) >= 3:
        lines = code.splitlines(keepends=True)
        imports, cell["source"] = "".join(lines[: rest[0].lineno - 1]).strip(), "".join(lines[rest[0].lineno - 1 :])
        yield cell | {"id": f"{cell['id']}-imports", "source": imports, "outputs": [], "metadata": IMPORTS}
    yield cell


def _cut(lessons: Sequence[list[Equation]], parts: int) -> Iterator[list[Sequence[list[Equation]]]]:
    """Yield each way to cut a sequence into so many parts."""
    for cuts in combinations(range(1, len(lessons)), min(parts, len(lessons)) - 1):
        yield [lessons[start:end] for start, end in pairwise((0, *cuts, len(lessons)))]


def _lines(own: Sequence[Equation]) -> float:
    """About how many lines the equations of a lesson take in a column, with their reasons and a heading."""
    lines = (1.3 + ("\\frac" in one.latex or "\\sum" in one.latex) + len(SIGN.findall(one.latex)) / 30 + len(one.why) / 46 for one in own)
    return 2 + sum(lines)


def _narrowed(latex: str) -> str:
    """Return a formula for a narrow column: without its shape, and each of its claims may stand in a line of its own."""
    return NARROWED.sub(lambda found: r" \qquad " if "quad" in found[0] else "", latex)


def _said_in_tasks(text: str) -> str:
    """Set the mathematics of hints and of headings, which are plain text."""
    return HEADING.sub(lambda found: _titled(found[0]), HINT.sub(_hint, text))


def _titled(title: str) -> str:
    return title.replace("^T", "⊤")  # stands in menus too


def _displayed(text: str) -> str:
    """Give a displayed formula inside a paragraph lines of its own, as Jupyter does.

    >>> _displayed("with\\n$$W = 1$$\\nand")
    'with\\n\\n$$W = 1$$\\n\\nand'
    """
    return re.sub(r"(?<=\S)\n\$\$.+?\$\$\n(?=\S)", r"\n\g<0>\n", text)


def _hint(found: re.Match[str]) -> str:
    parts = re.split(r"(\$[^$]*\$)", found[2])
    said = (part if at % 2 or CODED.search(part) else mathematics(html.escape(part, quote=False)) for at, part in enumerate(parts))
    return found[1] + "".join(said)


def _sentence(text: str) -> str:
    return f"{text[:1] if text.startswith('ln ') else text[:1].upper()}{text[1:].rstrip('.')}"


def _glossary() -> str:
    """Return the page of words, of what they are called elsewhere, and of letters that mean many things."""
    in_code = r"`\g<0>`"
    words = []
    for term in GLOSSARY:
        axes = f' <span class="axes">axes `{term.shape}`</span>' * bool(term.shape)
        names = ((name, f"`{said}`" if name == "torch" else mathematics(said)) for name, said in term.names.items() if said)
        called = " ".join(f'<span class="dialect"><i>{name}</i> {said}</span>' for name, said in names)
        words.append(f"`{term.term}`\n: {mathematics(term.meaning)}{axes}\n: {called}")
    dialects = "\n\n".join(f"{name}\n: {mathematics(CODE.sub(in_code, said))}" for name, said in DIALECTS.items())
    return GLOSSARY_PAGE.format(words="\n\n".join(words), dialects=dialects, letters=mathematics(letters(style="markdown")))


def page_of(unit: Unit) -> str:
    """Return the address of a notebook's page: its slug, without the number that may change."""
    return f"{unit.slug}-exercises" if unit.folder == "exercises" else unit.slug


def _to(label: str) -> str:
    return f"[{_called(label)}](../eq/{label}.md)"


def _called(label: str) -> str:
    """Return the number and the name of an equation."""
    return f"{numbers.eq(label)[5:-1]} {name_of(label)}"


def _raw(markup: str) -> str:
    return f"```{{raw}} html\n{markup}\n```"

"""A deck of slides from a built lesson alone: `attn-course slides softmax --out DIR`.

A section opens with its first sentence or two, above its first equation or code, which is cut only at an empty line and where it is higher
than a slide; a question that opens it stands alone. Then each machine, figure, table, boxed equation with its card, and prediction is a
slide of its own, with no words but whole claims. What a picture claims is the title of its slide, which it fills: only a low one has words
above it. A prediction stands alone until the next key shows what was printed, or the next slide what was drawn.
All else that the lesson says stands in the notes, with the minutes.
"""

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from html import escape, unescape
from itertools import groupby, pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any
from urllib.parse import quote

from attn_course import numbers
from attn_course.authoring.predictions import unquoted
from attn_course.authoring.problems import AuthoringError
from attn_course.equations.names import name_of
from attn_course.figures.explorable import unpacked
from attn_course.game.alive import card, life_of
from attn_course.game.living import StaysStill
from attn_course.game.sides import keys_of, values_of
from attn_course.site.formulas import Typesetter, block, pieces
from attn_course.site.sources import IN_MARKDOWN

HERE = Path(__file__).parent
HEADING = re.compile(r"\A(#{1,3}) (?:(\d+\.\d+) )?(.+)\n*")
EQUATION = re.compile(r"\$\$(.+?)\$\$", re.DOTALL)
TAG = re.compile(r"\\tag\{([\d.]+)\}")
FOLD = re.compile(r"<details[^>]*><summary>(.*?)</summary>(.*?)</details>", re.DOTALL)
SPOT = "Spot the mistake"
QUESTION = re.compile(r"\*\*[^*]+\?\*\*")
SENTENCE = re.compile(r"(?:(?<=[.?!:])|(?<=[.?!]\))) (?=[A-Z\"*$])")
THE_CELL = re.compile(r"\b(this|next|the)( \w+)? cell\b", re.IGNORECASE)
POINTS = re.compile(r"\b(below|code|lines)\b")  # to code, which has to be seen then
GOES_ON = re.compile(r"(together|it|its|they|their|this|that|these|so|then|but|and|here|there)\b", re.IGNORECASE)  # and stands not alone
REFERS = re.compile(r"(it|its|they|their|this|that|these)\b", re.IGNORECASE)  # to what a heading names
SHOWS = re.compile(r"(so )?(as|here)\b.*:\Z", re.IGNORECASE)  # it leads to what is no slide, or to a picture that has a title
LOOSE = re.compile(r"(so )?(with|for|if|when|where|as|here|this|that|these|it|they|then|and|but|or)\b", re.IGNORECASE)  # no claim
YOURS = re.compile(r"\byours?\b")  # code of a learner
IMPORTS = re.compile(r"\A(?:(?:from|import) [^(\n]*\n+)+")
SIZE = re.compile(r'view[Bb]ox="\S+ \S+ ([\d.]+) ([\d.]+)"')
LETTER = re.compile(r"font-size:((?:[89]|1[01])(?:\.\d+)?)px")
CLAIM = re.compile(
    r'<text (?:x="[\d.]+" y="|transform="translate\([\d.]+ )([\d.]+)[^>]*font-weight:700;font-size:1[12][^>]*>([^<]*)</text>'
)
CAPTION = re.compile(r"<figcaption>(?:The machine of attention\. )?(.*?)(?:(?<=\w\w\.) (.*?))?</figcaption>", re.DOTALL)
QUOTED = re.compile(r"""(?<!\w)(["'])\b([^"']*)\1""")
CLAUSE = re.compile(r"[:;] |, (?:so|and|but) ")  # behind which a claim goes on
ASKS = re.compile(r"<p class=['\"]attn-title['\"]>(.*?)</p>")
BOLD = re.compile(r"\*\*([^*?]+ (?:is|are) [^*?]+)\*\*")  # in prose it is the claim of the equation that follows
MARKUP = re.compile(r"<[^>]*>")
ROOT = re.compile(r"<svg[^>]*\bpreserveAspectRatio=.*?</svg>", re.DOTALL)  # which KaTeX draws in a formula
ALIVE = re.compile(r'alive\("([a-z0-9-]+)"\)')
WORDS_A_MINUTE = 130  # spoken
SECONDS = {"idea": 20, "equation": 40, "alive": 60, "picture": 40, "question": 75, "end": 40}  # beside what is said
OPENING, SHORT = 30, 8  # most and fewest words of a section on its first slide
ASKED, TOLD = 40, 25  # most words before the end of a question, and of what is told after it
LINES, SHORT_CODE = 14, 3  # most of code beside a question; most line ends of code that is no slide
NUMBERS, TABLES = 30, 3  # most that a card's givens have and make, if they are to be read from the last row
NAMED = 98  # most letters of a claim that is a title
WIDTH, ROOM, LINE, CODE = 1136, 533, 46, 35  # pixels below a title; of a line of words, of code
FINE = 0.76  # size of the smallest code over that of other code
BETWEEN, FRAME = 16, 48  # pixels below a paragraph, and around code
LETTERS, COLUMNS, BOUND = 62, 67, 60  # in a line of words, of code, of a formula that is bound to what is behind it
PARTS = ("reveal.css", "reveal.js")
MATHML = re.compile(r"<math.*?</math>", re.DOTALL)
END = "\N{WORD JOINER}"  # of a formula, which a line does not part from what is behind it
ENDS = re.compile(rf'(<span class="math inline">(?:(?!<span class="math)[^{END}])*{END}</span>[.,;:?!)]+)', re.DOTALL)
WORDS = re.compile(r"<(?:p|li)(?: [^>]*)?>(.*?)</(?:p|li)>", re.DOTALL)
ASKED_IN = re.compile(r"<p>(?=(?:(?!</p>).)*<strong>(?:Predict|Spot))", re.DOTALL)
LINES_OF = re.compile(r"<span[^>]*>(.*?)</span>")
OPENS = re.compile(r"\((?=[*\w])")  # what is said in brackets is never cut
REMARK = re.compile(r"^( *)(\S.*?)  # (.+)$")  # at the end of a line
HEAD = re.compile(r"^( *)(?:class|def) [^#\n]*:", re.MULTILINE)
BREAK = re.compile(r"(?<=,) | (?=(?:[-+*/@|&]|==|if|else|for|and|or) )")  # where a line of code may
NARROW, LONG = 30, 4  # most letters and fewest lines of a print that stands beside its question
STRUT = re.compile(r'class="katex-strut" style="height:([\d.]+)em')
ZERO = "\N{ZERO WIDTH SPACE}"
EM, LONGEST = 61, 45  # pixels of a letter of an equation; letters of the longest that stands in a line
ROW, CELL = 71, 24  # pixels of a row of a table; most letters of a cell in one line
ROWS, NOTED = 4, 3  # most rows of the last table; the lines between its columns, if it has no notes


_typesetter = cache(Typesetter)  # one for all decks: a process with an engine for each may never end


@dataclass
class Slide:
    """What one slide shows, as HTML, and what is said to it, as Markdown."""

    kind: str
    heading: str  # of its section or subsection
    section: str
    title: str = ""  # as HTML; else the heading
    shown: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    before: "Slide | None" = None
    opening: str = ""  # of a section, as Markdown
    code: str = ""  # the first that follows

    @property
    def seconds(self) -> int:
        """How long it takes: what there is to look at, and the words of its notes."""
        words = len(" ".join(EQUATION.sub("formula", text) for text in self.said).split())
        return SECONDS[self.kind] + round(60 * words / WORDS_A_MINUTE) + (self.before.seconds if self.before else 0)

    @property
    def notes(self) -> list[str]:
        """What is said to it and to the slide that it has taken in."""
        return [*(self.before.notes if self.before else []), *self.said]

    @property
    def body(self) -> str:
        """All that it shows: above it the slide that it has taken in, and at its right what is narrow."""
        if any(map(_is_narrow, self.shown)) and not any(part.startswith("<pre style") for part in self.shown):
            parts = [part.replace('class="fragment"', f'class="fragment" data-fragment-index="{at}"') for at, part in enumerate(self.shown)]
            return _beside(*("\n".join(part for part in parts if _is_narrow(part) is wanted) for wanted in (False, True)))
        return "\n".join([*([self.before.body] if self.before and self.before.body else []), *self.shown])

    @property
    def tall(self) -> int:
        """About how high what it shows is, beside what is drawn."""
        return sum(_tall(part) for part in self.shown if not _is_picture(part))

    @property
    def room(self) -> int:
        """How high its words and code may be: what is drawn takes the whole width first."""
        drawn = [part for part in self.shown if _is_picture(part)]
        return min([ROOM - sum(map(_formula, self.shown)) * (self.kind == "equation"), *map(_room_above, drawn)])

    @property
    def asks(self) -> bool:
        """Whether it is a question alone."""
        return self.opening.endswith("?")

    def uncovered(self) -> list[str]:
        """Give away what waits for the next key, to a slide of its own."""
        waits = [part for part in self.shown if part.startswith(_later("")[:-6])]
        self.shown = [part for part in self.shown if part not in waits]
        return [part.removeprefix(_later("")[:-6]).removesuffix("</div>") for part in waits]

    def only_say(self) -> None:
        """Show no words that open a section: they are said."""
        self.said.insert(0, self.opening)
        self.shown.clear()


class Deck:
    """The slides of a lesson, made cell by cell; `slides` holds them."""

    def __init__(self, book: dict[str, Any], lesson: str) -> None:
        """Read the notebook `book`."""
        self.lesson, self.slides = lesson, list[Slide]()
        self.title, self._section, self._heading, self._lead, self._ask, self._claim, self._paragraph = ("",) * 7
        self._typeset, self._alive = _typesetter(), set[str]()
        for cells in _sections(book["cells"]):
            texts = [_text(cell) for cell in cells if cell["cell_type"] == "markdown"]
            self._key = r"\boxed" if any(r"\boxed" in text for text in texts) else r"\tag"  # else the first with a number
            for cell in cells:
                (self._read if cell["cell_type"] == "markdown" else self._run)(cell)
        title, *rest = self.slides
        for before, slide in pairwise(rest):
            if before.heading != slide.heading or before.kind != "idea":
                continue
            apart = slide.kind in ("question", "alive") or (slide.title and REFERS.match(before.opening))
            if (apart or before.tall + slide.tall > slide.room) and not before.asks:
                before.only_say()
            if not before.body or not (apart or before.tall + slide.tall > slide.room):
                slide.before = before
        taken = {id(slide.before) for slide in rest}
        self.slides = [title]
        for slide in rest:
            if id(slide) in taken:
                continue
            if slide.kind == "idea" and not slide.asks:  # words alone
                if slide.heading == slide.section and 1 < slide.code.count("\n") < LINES:
                    slide.shown.append(_program(slide.code))
                else:
                    slide.only_say()
                    self.slides[-1].said += slide.notes
                    continue
            self.slides.append(slide)

    def _add(self, kind: str, *shown: str, title: str = "", lead: str = "") -> Slide:
        """Add a slide.

        `lead`: the words before it in the lesson, the title of a picture that has none; where they claim nothing alone
        or have no room, they are said.
        """
        slide = Slide(kind, self._heading, self._section, title, list(shown))
        if lead.endswith(":") and not LOOSE.match(lead) and not SHOWS.match(SENTENCE.split(lead)[-1]):
            words = self.html(re.sub(r"\ASo (.)", lambda found: found[1].upper(), lead))
            if slide.tall + _tall(words) <= slide.room:
                slide.shown.insert(0, words)
        if not slide.shown[len(shown) :]:
            slide.said += [lead] * bool(lead)
        self.slides.append(slide)
        return slide

    # ---- Text
    def _read(self, cell: dict[str, Any]) -> None:
        text = _text(cell)
        if found := HEADING.match(text):
            self._open(found)
            text = text[found.end() :]
            if self.slides and self.slides[-1].kind == "end":
                first, *others = sorted(_blocks(text), key=lambda part: not part.startswith(("-", "|")))
                for place, part in enumerate(_halves(first)):
                    if place:
                        self._open(found)
                    self.slides[-1].shown.append(self.html(part))
                self.slides[-1].said += others
                return
            if found[3] == SPOT and (fold := FOLD.search(text)) and "**Predict**" not in text:
                self.slides.pop()
                self._part(f"**{SPOT}.** {text[: fold.end()]}")
                text = text[fold.end() :]
            opening, rest = _cut(text)
            if len(found[1]) == 1:
                question = QUESTION.search(text)
                self.slides[-1].shown.append(self.html(f"**{question[0][2].upper()}{question[0][3:]}" if question else opening))
                self.slides[-1].said.append(text)
                return
            if THE_CELL.search(opening) or (0 < len(opening.split()) < SHORT and rest):  # no slide shows the cell
                self.slides.pop()
            elif opening:
                self.slides[-1].shown.append(self.html(opening))
                self.slides[-1].opening = opening
                text = rest
        if "answer" in cell["metadata"].get("tags", []):
            answer, *behind = _blocks(FOLD.sub(r"\2", text))
            told, more = _first_sentences(answer, TOLD)
            slide, words = self.slides[-1], self.html(told)
            asked = next(slide for slide in reversed(self.slides) if slide.kind != "picture")
            if asked is slide and any("<pre" in part for part in slide.shown) and slide.tall + _tall(words) > ROOM:
                self._add("picture", *slide.uncovered(), words)
                slide = self.slides[-1]
            elif asked is slide or 'class="fragment"' in asked.body:
                asked.shown.append(_later(words))
            elif slide.tall + _tall(words) <= slide.room:
                slide.shown.insert(0 if any(map(_is_picture, slide.shown)) else len(slide.shown), words)
            else:
                more = f"{told} {more}"
            slide.said += [more, *behind]
            return
        for part in _blocks(text):
            self._part(part)

    def _open(self, found: "re.Match[str]") -> None:
        self._heading, self._claim = found[3], ""
        if len(found[1]) == 2:
            self._section = found[3]
        if len(found[1]) == 1:
            self.title = found[3]
        self._add("end" if found[3] in ("Formula card", "Summary") else "idea")

    def _part(self, part: str) -> None:
        equation = EQUATION.fullmatch(part)
        if equation and self._key in part:
            self._equation(equation[1])
        elif "**Predict**" in part:
            said, self._ask = _asking(part)
            self.slides[-1].said.append(said)
        elif part.startswith("|"):
            self._add("picture", self.html(part), lead=self._whole)
            self._lead = ""
        elif part.startswith(f"**{SPOT}"):
            question, answer = FOLD.sub("", part), " ".join(found[2].strip() for found in FOLD.finditer(part))
            told, more = _first_sentences(answer, TOLD)
            self._heading = self._section
            self._add("question", self.question(question), _later(self.html(told))).said.append(more)
        else:
            self.slides[-1].said.append(FOLD.sub(r"(\1) \2", part))
            bold = BOLD.search(part)
            self._claim = bold[1] if bold else ""
            self._lead, self._paragraph = "" if equation or part.startswith("<details") else _leading(part), part

    def _equation(self, latex: str) -> None:
        found = TAG.search(latex)
        label = numbers.named("labels", found[1]) if found else None
        live = self._live(label) if label else []
        claim = self.html(self._claim[:1].upper() + self._claim[1:])[3:-5]
        title = claim or (escape(name_of(label)) if label else "")
        self._add("alive" if live else "equation", self.html(f"$${latex}$$"), *live, title=title, lead=self._lead)
        self._lead = self._claim = ""
        if self._key == r"\tag":
            self._key = "no second"

    def _live(self, label: str) -> list[str]:
        """The card of an equation, once, if it can be read from the last row."""
        if label in self._alive:
            return []
        try:
            life = life_of(label)
        except StaysStill:
            return []
        self._alive.add(label)
        values, keys = values_of(life.formula, life.givens), keys_of(life.givens)
        sizes, chains = [_count(values[keys[one.name]]) for one in life.inputs], life.forms[0].chains
        small = sum(sizes) <= NUMBERS and sum(size > 1 for size in sizes) <= TABLES
        letters = len(chains) == 1 and len(chains[0].letters) <= 2  # else there is a table for each of the others
        return [_without_sections(card(life))] if small and letters else []

    # ---- What came out
    def _run(self, cell: dict[str, Any]) -> None:
        tags = cell["metadata"].get("tags", [])
        if found := ALIVE.search(_text(cell)):
            if live := self._live(found[1]):
                self._add("alive", *live, title=escape(name_of(found[1])))
            return
        if not {"hide-input", "your-turn"} & set(tags):
            self.slides[-1].code = self.slides[-1].code or _code(cell)
        claims, shown, captions = [], [], []
        for output in cell.get("outputs", []):
            claim, html, more = _claimed(_output(output) if "tag" not in output else "")
            claims += [claim] * bool(claim)
            shown += [html] * bool(html)
            captions += [more] * bool(more)
        claim = claims[0] if len(claims) == 1 else ""
        pictures = [html for html in shown if _is_picture(html)]
        if self._ask and "predicted" in tags:
            self._predicted(cell, claim, shown, pictures)
        elif pictures:
            self._add("picture", *pictures, title=claim, lead=self._whole)
        elif self._lead.endswith(":") and not shown and not THE_CELL.search(self._lead):  # code to read
            if _code(cell).strip().count("\n") < SHORT_CODE:
                return  # of which the words do not speak
            if YOURS.search(self._lead):
                self.slides[-1].said.append(self._lead)
            else:
                self._program(_code(cell))
        self.slides[-1].said += captions
        self._lead = ""

    @property
    def _whole(self) -> str:
        """What leads to the next picture or code, with its subject."""
        return _with_subject(self._lead, self._paragraph) if LOOSE.match(self._lead) else self._lead

    def _program(self, code: str) -> None:
        """Code below what leads to it, in smaller letters where it is whole then, and else in as few slides as it needs.

        One that goes on says so, its class or function above it in grey.
        """
        if ROOM < _high(code) <= ROOM / FINE:
            self._add("picture", _program(code).replace('<pre style="', f'<pre class="fine" style="--rows:{_high(code) / CODE:.1f};', 1))
            return
        whole, before = "" if LOOSE.match(self._whole) else self._whole, ""
        lead, short = self.html(whole), self.html(f"{whole.partition(': ')[0].removesuffix(':')}:")
        lead = next((words for words in (lead, short, "") if _tall(words) + _high(code) <= ROOM), "")
        for at, part in enumerate(_parts(code, ROOM - _tall(lead))):
            inside = len(part) - len(part.lstrip(" "))
            again = [found[0] for found in HEAD.finditer(before) if len(found[1]) < inside][-1:]
            self._add("picture", lead, _program(part, *again), title=f"{self.html(self._heading)[3:-5]}, continued" * bool(at))
            lead, before = "", f"{before}\n{part}"

    def _predicted(self, cell: dict[str, Any], claim: str, shown: list[str], pictures: list[str]) -> None:
        """What was printed waits for the next key, and what was drawn, or print for which there is no room, for the next slide."""
        code, asked = _code(cell), self.question(self._ask)
        seen = [_program(code)] if POINTS.search(self._ask) and code.count("\n") < LINES else []
        now = [html for html in shown if html not in pictures]
        self._ask = ""
        if seen and sum(map(_tall, [asked, *seen, *now])) + 2 * LINE > ROOM:
            now = []
        self._add("question", asked, *seen, *map(_later, now))
        if then := [html for html in shown if html not in now]:
            self._add("picture", *then, title=claim)

    def html(self, text: str, *, small: bool = False) -> str:
        """Return Markdown as HTML, with formulas set; `small`: as MathML alone, which needs no style."""
        from markdown_it import MarkdownIt
        from mdit_py_plugins.dollarmath import dollarmath_plugin

        def formula(latex: str, options: dict[str, Any]) -> str:
            if options["display_mode"] and not small:
                return block(latex, self._typeset, {})
            parts = pieces(TAG.sub("", latex).strip())
            style = r"\displaystyle " * parts[0].startswith(r"\displaystyle")
            made = [self._typeset(style + part.removeprefix(style), display=options["display_mode"], small=small) for part in parts]
            return " ".join(made) + END * (len(latex) <= BOUND)

        reader = MarkdownIt("commonmark", {"html": True, "typographer": True}).enable(["table", "smartquotes"])
        reader.use(dollarmath_plugin, renderer=formula, allow_labels=False)
        return ENDS.sub(r'<span class="whole">\1</span>', reader.render(IN_MARKDOWN.sub(r"\g<words>", text))).replace(END, "")

    def question(self, text: str) -> str:
        """Return what asks as HTML, in a paragraph of its own behind what is told before."""
        return ASKED_IN.sub('<p class="asks">', self.html(re.sub(r"(?<=[.?!:)]) (?=\*\*Predict)", "\n\n", text)))

    # ---- The page
    def page(self) -> str:
        """Return the deck as a page."""
        plan = "\n".join(f"| {name} | {minutes} |" for name, minutes in self.plan())
        self.slides[0].said.append(f"| part | minutes |\n|---|---|\n{plan}")
        template = (HERE / "deck.html").read_text(encoding="utf-8")
        return template.replace("TITLE", escape(self.title)).replace("SLIDES", "\n".join(map(self._slide, self.slides)))

    def plan(self) -> list[tuple[str, int]]:
        """Return the sections in their order, and the minutes that each takes."""
        parts = dict.fromkeys(slide.section for slide in self.slides if slide.section)
        return [(part, -(-sum(slide.seconds for slide in self.slides if slide.section == part) // 60)) for part in parts]

    def _slide(self, slide: Slide) -> str:
        level, notes = ("h1" if slide is self.slides[0] else "h2"), "\n\n".join(slide.notes)
        heading = self.html(slide.heading)[3:-5]
        lesson = self.html(self.slides[0].heading.partition(":")[0])[3:-5]
        below = "Own attention" if slide is self.slides[0] else lesson if heading in (slide.title or heading) else heading
        part = f'<p class="part">{below}</p>'
        aside = f'<aside class="notes">{self.html(notes, small=True)}</aside>' if notes else ""
        return (
            f'<section data-timing="{slide.seconds}" class="{slide.kind}"><{level}>{slide.title or heading}</{level}>'
            f'<div class="body">{slide.body}</div>{part}{aside}</section>'
        )


def write_slides(root: Path, lesson: str, out: Path) -> Deck:
    """Write the slides of a lesson into a folder, beside those that are there, and return them.

    `root`: where notebooks/ lies. Raises AuthoringError if the lesson has not been built.
    """
    built = sorted((root / "notebooks").glob(f"[0-9]*_{lesson}.ipynb"))
    if not built:
        raise AuthoringError(f"no built lesson {lesson} in {root / 'notebooks'}")
    import sphinx_revealjs

    deck = Deck(json.loads(built[0].read_text(encoding="utf-8")), lesson)
    reveal = Path(sphinx_revealjs.__file__).parent / "_static" / "revealjs"
    (out / "reveal").mkdir(parents=True, exist_ok=True)
    for part in ("LICENSE", *(f"dist/{name}" for name in PARTS), "plugin/notes/notes.js"):
        shutil.copy(reveal / part, out / "reveal")
    shutil.copytree(HERE / "katex", out / "katex", dirs_exist_ok=True)
    for name in ("deck.css", "deck.js"):
        shutil.copy(HERE / name, out)
    (out / f"{lesson}.html").write_text(deck.page(), encoding="utf-8")
    return deck


def _sections(cells: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """The cells of each section and subsection of the core, up to the first deeper one."""
    run: list[dict[str, Any]] = []
    for cell in cells:
        found = HEADING.match(_text(cell)) if cell["cell_type"] == "markdown" else None
        if found:
            yield run
            run = []
            if found[3].startswith(("Deeper", "Sources")):
                return
        run.append(cell)
    yield run


def _text(cell: dict[str, Any]) -> str:
    return unquoted("".join(cell["source"]))


def _code(cell: dict[str, Any]) -> str:
    """The code of a cell, without what it imports first, with one empty line for two, and no line that is too long, if it can be helped."""
    lines = re.sub(r"\n{3,}", "\n\n", IMPORTS.sub("", _text(cell))).split("\n")
    above = "\n".join(REMARK.sub(r"\1# \3\n\1\2", line) if len(line) > COLUMNS else line for line in lines)
    return "\n".join(map(_broken, above.split("\n")))


def _broken(line: str) -> str:
    """A line of code, in two if it is too long: it is broken in as few brackets as can be, as late as can be.

    >>> print(_broken("    return (first_of(one, two) + first_of(three, four) + second_of(five, six))"))
        return (first_of(one, two) + first_of(three, four)
            + second_of(five, six))
    """
    deep, places = 0, list[tuple[int, int]]()
    for at, letter in enumerate(line[: COLUMNS + 1]):
        deep += (letter in "([{") - (letter in ")]}")
        if deep and BREAK.match(line, at) and line[:at].count('"') % 2 == 0:
            places.append((-deep, at))
    if len(line) <= COLUMNS or not places or line.lstrip().startswith("#"):
        return line
    at, inside = max(places)[1], len(line) - len(line.lstrip())
    return f"{line[:at]}\n{' ' * (inside + 4)}{line[at + 1 :]}"


def _blocks(text: str) -> Iterator[str]:
    """The paragraphs of a cell; a fold, a fence and a list stay whole, and with a mistake to spot goes the fold behind it."""
    run: list[str] = []
    for part in re.split(r"\n\s*\n|\n(?=```\w)", text.strip()):
        run.append(part)
        whole = "\n\n".join(run)
        waits = whole.startswith("**Spot") and "</details>" not in whole
        if whole.count("<details") == whole.count("</details>") and whole.count("```") % 2 == 0 and not waits:
            yield whole
            run = []
    if run:
        yield "\n\n".join(run)


def _cut(text: str) -> tuple[str, str]:
    """Cut the first sentences of a section from the rest, if they are no question to predict and no formula."""
    first, *rest = [*_blocks(text), ""]
    if "**Predict**" in first or first.startswith(("$$", "**Spot", "**Your turn")):
        return "", text
    opening, more = _first_sentences(first, OPENING)
    if lead := _leading(opening):  # it waits for what comes next
        if not more and (rest[0].startswith("```") or EQUATION.fullmatch(rest[0])) and not TAG.search(rest[0]):
            opening = f"{opening}\n\n{rest.pop(0)}"
        else:
            opening, more = opening.removesuffix(lead).strip(), f"{lead} {more}"
    return opening, "\n\n".join([more, *rest]).strip()


def _first_sentences(text: str, most: int) -> tuple[str, str]:
    """Cut a paragraph behind its first sentence, or behind as many as have `most` words; a list, table, formula or code stays whole."""
    if text.startswith(("-", "|", "```", "$$")):
        return text, ""
    shown, *more = SENTENCE.split(" ".join(text.split()))
    while more and (len(f"{shown} {more[0]}".split()) <= most or len(OPENS.findall(shown)) > shown.count(")")):
        shown = f"{shown} {more.pop(0)}"
    return shown, " ".join(more)


def _asking(text: str) -> tuple[str, str]:
    """Cut a paragraph before its question and a sentence that leads to it, or more while all have few words.

    >>> _asking("A coin fell. It is heads up. **Predict** the next one.")
    ('', 'A coin fell. It is heads up. **Predict** the next one.')
    >>> _asking("The " + "very " * 40 + "large one fell. It is up. **Predict** it.")[1]
    '**Predict** it.'
    """
    sentences = SENTENCE.split(" ".join(EQUATION.sub(lambda found: f"${found[1].strip()}$", text).split()))
    asked = at = next(place for place, each in enumerate(sentences) if "**Predict**" in each)
    while at and not THE_CELL.search(sentences[at - 1]) and (at == asked or len(" ".join(sentences[at - 1 :]).split()) <= ASKED):
        at -= 1
    while at < asked and GOES_ON.match(sentences[at]):
        at += 1
    told = [*sentences[: asked + 1], *(each for each in sentences[asked + 1 :] if not THE_CELL.search(each))]
    return " ".join(sentences[:at]), " ".join(told[at:])


def _halves(text: str) -> list[str]:
    """A table of many rows, or of some with notes, in two with its head over both."""
    head, rule, *rows = text.split("\n") if text.startswith("|") else ["", ""]
    if len(rows) <= ROWS - (head.count("|") > NOTED):
        return [text]
    half = -(-len(rows) // 2)
    return ["\n".join([head, rule, *part]) for part in (rows[:half], rows[half:])]


def _leading(text: str) -> str:
    """Return the last sentence of a paragraph if it leads to what comes next."""
    last = SENTENCE.split(" ".join(text.split()))[-1]
    return "" if last.endswith((".", "?", "!", ".)", '."', "|", "`")) else last


def _with_subject(lead: str, paragraph: str) -> str:
    """Put before what leads to a picture the sentences without which it says little, if all have few words.

    >>> _with_subject("They are striped:", "These are all scores. Some of the pairs have never met. They are striped:")
    'Some of the pairs have never met. They are striped:'
    """
    before = SENTENCE.split(" ".join(paragraph.split()))[:-1]
    while lead and before and (len(lead.split()) < SHORT or GOES_ON.match(lead)) and len(f"{before[-1]} {lead}".split()) <= OPENING:
        lead = f"{before.pop()} {lead}"
    return lead


def _count(values: Any) -> int:
    return sum(map(_count, values)) if isinstance(values, list) else _count(values["column"]) if isinstance(values, dict) else 1


def _is_picture(html: str) -> bool:
    return any(mark in ROOT.sub("", html) for mark in ("<img", "<figure", "<svg", "<script"))


def _room_above(drawn: str) -> int:
    """How many pixels a picture as wide as a slide leaves for words; a card leaves none."""
    size = None if "<script" in drawn else SIZE.search(drawn)
    return int(ROOM - WIDTH * float(size[2]) / float(size[1])) if size else 0


def _is_narrow(html: str) -> bool:
    """Whether a print is a list, which stands beside its question."""
    lines = [len(_read_out(line)) for line in LINES_OF.findall(html)] if 'class="printed' in html else []
    return len(lines) >= LONG and max(lines) <= NARROW


def _beside(left: str, right: str) -> str:
    return f'<div class="beside"><div>{left}</div><div>{right}</div></div>'


def _later(html: str) -> str:
    return f'<div class="fragment">{html}</div>'


def _pre(text: str, *again: str, kinds: dict[int, str] | None = None) -> str:
    """Lines of code or print, which are never broken, with how many letters the longest has: by it they may have to be smaller.

    `again`: lines that were seen. `kinds`: the colour of each letter that has one.
    """
    lines, start = text.rstrip().split("\n"), 0
    shown = [f'<span class="again">{escape(each)}</span>' for each in again]
    for each in lines:
        letters = [((kinds or {}).get(at, ""), letter) for at, letter in enumerate(each, start)]
        parts = ((kind, escape("".join(letter for _, letter in run))) for kind, run in groupby(letters, itemgetter(0)))
        shown.append("<span>" + "".join(f'<b class="{kind}">{part}</b>' if kind else part for kind, part in parts) + "</span>")
        start += len(each) + 1
    return f'<pre style="--columns:{max(map(len, [*again, *lines]))}">{"".join(shown)}</pre>'


def _program(code: str, *again: str) -> str:
    """Code in the colours of its words: k is a keyword, f what is defined, b built in, m a number, s a string, c a remark."""
    from pygments.lexers.python import PythonLexer
    from pygments.token import Comment, Keyword, Name, Number, Operator, String

    kinds, of = dict[int, str](), {"k": (Keyword, Operator.Word), "s": (String,), "c": (Comment,)}
    of |= {"f": (Name.Function, Name.Class), "b": (Name.Builtin,), "m": (Number,)}
    for start, token, text in PythonLexer(stripnl=False, ensurenl=False).get_tokens_unprocessed(code):
        kind = next((kind for kind, tokens in of.items() if any(token in each for each in tokens)), "")
        kinds.update(dict.fromkeys(range(start, start + len(text)), kind) if kind else {})
    return _pre(code, *again, kinds=kinds)


def _parts(code: str, most: int) -> list[str]:
    """Code, cut at empty lines into as few parts as are no higher than `most`, of about the same height."""
    parts = _filled(code, most)
    for room in range(most - CODE, 0, -CODE):
        less = _filled(code, room)
        if len(less) != len(parts) or max(map(_high, less)) > most:
            break
        parts = less
    return parts


def _filled(code: str, most: int) -> list[str]:
    run, *rest = code.strip("\n").split("\n\n")
    full = []
    for part in rest:
        if _high(f"{run}\n\n{part}") > most:
            full.append(run)
            run = part
        else:
            run = f"{run}\n\n{part}"
    return [*full, run]


def _high(code: str) -> int:
    return _tall(_pre(code))


def _tall(html: str) -> int:
    """About how high code or paragraphs are, in pixels; an empty line of code is half as high as another."""
    if "<tr>" in html:
        rows = [max(len(_read_out(cell)) for cell in row.split("</t")) for row in html.split("<tr>")[1:]]
        return sum(ROW + LINE * (letters > CELL) for letters in rows)
    if "<pre" in html:
        return FRAME + round(sum(CODE if line else CODE / 2 for line in LINES_OF.findall(html)))
    return _formula(html) + sum(-(-len(_read_out(text)) // LETTERS) * LINE + BETWEEN for text in WORDS.findall(html))


def _formula(html: str) -> int:
    """About how high displayed equations are: the parts of a long one stand below each other."""
    high = 0
    for equation in html.split('<div class="eq">')[1:]:
        parts = [max(map(float, STRUT.findall(part)), default=1) for part in equation.split('<div class="eq-part">')[1:]]
        high += round(EM * (sum(parts) if len(_read_out(equation).replace(ZERO, "").split()[0]) > LONGEST else max(parts))) + FRAME
    return high


def _read_out(html: str) -> str:
    """The words of HTML, and each formula once."""
    return unescape(MARKUP.sub("", MATHML.sub("", html)))


def _drawn(words: str, svg: str) -> str:
    """A plot without its title, which is what it claims: the slide has it."""
    claim = _curly(" ".join(found[2] for found in CLAIM.finditer(svg)))
    if claim:
        top = max(float(found[1]) for found in CLAIM.finditer(svg)) + 5

        def cut(found: re.Match[str]) -> str:
            return f'viewBox="0 {top:.2f} {found[1]} {float(found[2]) - top:.2f}"'

        svg = re.sub(r'width="[\d.]+" height="[\d.]+" viewBox="0 0 (\S+) ([\d.]+)"', cut, CLAIM.sub("", svg), count=1)
    size = SIZE.search(svg)
    if size and float(size[2]) * WIDTH > float(size[1]) * ROOM:  # as high as a slide: its letters are larger for the last row
        svg = LETTER.sub(lambda found: f"font-size:{1.15 * float(found[1]):.2f}px", svg)
    return f'<img alt="{words}" data-claim="{claim}" data-{size[0] if size else ""} src="data:image/svg+xml,{quote(svg)}">'


def _curly(claim: str) -> str:
    """A claim as HTML that may stand in an attribute.

    >>> _curly('No sentence joins "curious" &amp; the cat')
    'No sentence joins “curious” &amp; the cat'
    """
    return escape(QUOTED.sub(r"“\2”", unescape(claim)))


def _claimed(html: str) -> tuple[str, str, str]:
    """What a picture claims, or a card asks, the picture without it, and what else its caption says."""
    if found := re.match(r'<img [^>]*data-claim="([^"]+)"', html):
        return found[1], html, ""
    if found := CAPTION.search(html):
        said, more = QUOTED.sub(r"“\2”", found[1].replace("&#x27;", "'")), found[2] or ""
        claim = said.removesuffix(".")
        if len(MARKUP.sub("", claim)) > NAMED:
            claim, rest = [*CLAUSE.split(said, maxsplit=1), ""][:2]
            more = f"{rest[:1].upper()}{rest[1:]} {more}".strip()
        if len(MARKUP.sub("", claim)) <= NAMED:
            return claim, html.replace(found[0], ""), more
    elif found := ASKS.search(html):
        return found[1], html, ""
    return "", html.replace("<figcaption>The machine of attention. ", "<figcaption>"), ""


def _output(output: dict[str, Any]) -> str:
    """Return what a cell printed or drew as HTML; its figure in words is not for a screen."""
    if "text" in output:
        text = "".join(output["text"])
        return _pre(text).replace("<pre", '<pre class="printed"', 1)
    data = output.get("data", {})
    if "text/html" in data:
        html = "".join(data["text/html"])
        return "" if "<summary>Figure in words" in html else _without_sections(html)
    if "image/svg+xml" in data:
        words = escape("".join(data.get("text/plain", "")).removeprefix("[figure] "))
        return _drawn(words, "".join(data["image/svg+xml"]))
    return ""


def _without_sections(html: str) -> str:
    """Reveal.js takes each section for a slide."""
    return re.sub(r"<(\\?/?)section\b", r"<\1div", unpacked(html))

"""A deck of slides from a built lesson alone: `attn-course slides softmax --out DIR`.

A section opens with its first sentence or two, above its first equation, beside its first picture or above its first code, which is
cut only at an empty line and where it is higher than a slide. Then each
machine, figure, table, boxed equation with its card, and prediction is a slide of its own, with no more words than are read at a glance;
what a picture claims is the title of its slide. A prediction stands alone until the next key shows what came out, or until the next
slide, where code or a picture takes the room. All else that the lesson says stands in the notes, with the minutes.
"""

import itertools
import json
import re
import shutil
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape, unescape
from pathlib import Path
from typing import Any

from attn_course import numbers
from attn_course.authoring.predictions import unquoted
from attn_course.authoring.problems import AuthoringError
from attn_course.equations.names import name_of
from attn_course.figures.explorable import unpacked
from attn_course.game.alive import card, life_of
from attn_course.game.living import StaysStill
from attn_course.game.sides import keys_of, values_of
from attn_course.site.formulas import Typesetter, block
from attn_course.site.sources import IN_MARKDOWN

HERE = Path(__file__).parent
HEADING = re.compile(r"\A(#{1,3}) (?:(\d+\.\d+) )?(.+)\n*")
EQUATION = re.compile(r"\$\$(.+?)\$\$", re.DOTALL)
TAG = re.compile(r"\\tag\{([\d.]+)\}")
FOLD = re.compile(r"<details[^>]*><summary>(.*?)</summary>(.*?)</details>", re.DOTALL)
SPOT = "Spot the mistake"
QUESTION = re.compile(r"\*\*[^*]+\?\*\*")
SENTENCE = re.compile(r"(?:(?<=[.?!:])|(?<=[.?!]\))) (?=[A-Z\"*$])")
THE_CELL = re.compile(r"\b(this|next|the) cell\b", re.IGNORECASE)
POINTS = re.compile(r"\b(below|code|lines)\b")  # to code, which has to be seen then
GOES_ON = re.compile(r"(together|it|its|they|their|this|that|these|so|then|but|and|here|there)\b", re.IGNORECASE)  # and stands not alone
REFERS = re.compile(r"(it|its|they|their|this|that|these)\b", re.IGNORECASE)  # to what a heading names
IMPORTS = re.compile(r"\A(?:(?:from|import) [^(\n]*\n+)+")
SIZE = re.compile(r'view[Bb]ox="\S+ \S+ ([\d.]+) ([\d.]+)"')
CLAIM = re.compile(r'<text (?:x="[\d.]+" y="|transform="translate\([\d.]+ )([\d.]+)[^>]*font-weight:700;font-size:11px[^>]*>([^<]*)</text>')
CAPTION = re.compile(r"<figcaption>(?:The machine of attention\. )?(.*?)(?:(?<=\w\w\.) (.*?))?</figcaption>", re.DOTALL)
ASKS = re.compile(r"<p class=['\"]attn-title['\"]>(.*?)</p>")
BOLD = re.compile(r"\*\*([^*?]+ (?:is|are) [^*?]+)\*\*")  # in prose it is the claim of the equation that follows
MARKUP = re.compile(r"<[^>]*>")
ROOT = re.compile(r"<svg[^>]*\bpreserveAspectRatio=.*?</svg>", re.DOTALL)  # which KaTeX draws in a formula
ALIVE = re.compile(r'alive\("([a-z0-9-]+)"\)')
WORDS_A_MINUTE = 130  # spoken
SECONDS = {"idea": 20, "equation": 40, "alive": 60, "picture": 40, "question": 75, "end": 40}  # beside what is said
OPENING, SHORT = 30, 8  # most and fewest words of a section on its first slide
ASKED, TOLD = 40, 25  # most words before the end of a question, and of what is told after it
LINES = 14  # most of code beside a question
NUMBERS, TABLES = 30, 3  # most that a card's givens have and make, if they are to be read from the last row
WIDE = 1.7  # times as wide as high: a picture that stands below its words
NAMED = 98  # most letters of a claim that is a title
ROOM, LINE, CODE = 545, 45, 33  # pixels below a title; of a line of words, of code
BETWEEN, FRAME = 16, 48  # pixels below a paragraph, and around code
LETTERS, COLUMNS = 66, 78  # in a line of words, of code
PARTS = ("reveal.css", "reveal.js")
MATHML = re.compile(r"<math.*?</math>", re.DOTALL)
LINES_OF = re.compile(r"<span[^>]*>(.*?)</span>")
REMARK = re.compile(r"^( *)(\S.*?)  # (.+)$")  # at the end of a line
CLOSE = re.compile(r"[\w.]*=?\([^() ]+ [^()]{1,20}\)")  # a bracket that stays in one line
HEAD = re.compile(r"^( *)(?:class|def) .*:", re.MULTILINE)
FULLER = {("idea", "equation"), ("idea", "picture")}  # what goes onto one slide


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
        """All that it shows: the slide that it has taken in above or, if this one is a picture, to the left."""
        own = "\n".join(self.shown)
        if self.kind == "question" and any(map(_is_picture, self.shown)):
            parts = [part.replace('class="fragment"', f'class="fragment" data-fragment-index="{at}"') for at, part in enumerate(self.shown)]
            return _beside(*("\n".join(part for part in parts if _is_picture(part) is wanted) for wanted in (False, True)))
        above = self.before.body if self.before else ""
        if self.kind != "picture" or not any(map(_is_picture, self.shown)):
            return f"{above}\n{own}" if above else own
        lead, *pictures = self.shown
        beside = _beside(above + lead, "\n".join(pictures))
        return beside if above or (lead and SIZE.search(own) and "stacked" not in beside) else own

    @property
    def tall(self) -> int:
        """About how high what it shows is, if it is words and code."""
        return sum(map(_tall, self.shown))

    @property
    def words(self) -> int:
        """How many it shows above a picture."""
        return len(_read_out("".join(part for part in self.shown if part.startswith("<p>"))).split())

    def takes(self, before: "Slide") -> bool:
        """Whether it has room for the slide before it, which belongs to it or shows nothing."""
        return before.heading == self.heading and (not before.body or (before.kind, self.kind) in FULLER)

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
        self._typeset, self._alive = Typesetter(), set[str]()
        for cells in _sections(book["cells"]):
            texts = [_text(cell) for cell in cells if cell["cell_type"] == "markdown"]
            self._key = r"\boxed" if any(r"\boxed" in text for text in texts) else r"\tag"  # else the first with a number
            for cell in cells:
                (self._read if cell["cell_type"] == "markdown" else self._run)(cell)
        title, *rest = self.slides
        for before, slide in itertools.pairwise(rest):
            together = before.kind == "idea" and before.heading == slide.heading
            if "<pre" in slide.body:
                crowded = before.tall + slide.tall > ROOM
            else:
                crowded = slide.kind == "picture" and before.words + slide.words > ASKED
            if together and (slide.kind in ("question", "alive") or crowded or (slide.title and REFERS.match(before.opening))):
                before.only_say()
            if slide.takes(before):
                slide.before = before
        taken = {id(slide.before) for slide in rest}
        self.slides = [title]
        for slide in rest:
            if id(slide) in taken:
                continue
            if slide.kind == "idea":  # words alone
                if slide.heading == slide.section and 1 < slide.code.count("\n") < LINES:
                    slide.shown.append(_pre(slide.code))
                else:
                    slide.only_say()
                    self.slides[-1].said += slide.notes
                    continue
            self.slides.append(slide)

    def _add(self, kind: str, *shown: str, title: str = "") -> Slide:
        self.slides.append(Slide(kind, self._heading, self._section, title, list(shown)))
        return self.slides[-1]

    # ---- Text
    def _read(self, cell: dict[str, Any]) -> None:
        text = _text(cell)
        if found := HEADING.match(text):
            self._open(found)
            text = text[found.end() :]
            if self.slides and self.slides[-1].kind == "end":
                first, *others = sorted(_blocks(text), key=lambda part: not part.startswith(("-", "|")))
                self.slides[-1].shown.append(self.html(first))
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
            slide = self.slides[-1]
            if slide.kind == "question":
                slide.shown.append(_later(self.html(told)))
            else:
                slide.shown.insert(0, self.html(told))
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
            self._add("picture", self.html(self._lead), self.html(part))
            self._lead = ""
        elif part.startswith(f"**{SPOT}"):
            question, answer = FOLD.sub("", part), " ".join(found[2].strip() for found in FOLD.finditer(part))
            told, more = _first_sentences(answer, TOLD)
            self._heading = self._section
            self._add("question", self.html(question), _later(self.html(told))).said.append(more)
        else:
            self.slides[-1].said.append(FOLD.sub(r"(\1) \2", part))
            bold = BOLD.search(part)
            self._claim = bold[1] if bold else ""
            self._lead, self._paragraph = "" if equation or part.startswith("<details") else _leading(part), part

    def _equation(self, latex: str) -> None:
        found = TAG.search(latex)
        label = numbers.named("labels", found[1]) if found else None
        second = label and any(slide.heading == self._heading and slide.kind in ("alive", "equation") for slide in self.slides)
        shown, live = [self.html(self._lead), self.html(f"$${latex}$$")], self._live(label) if label else []
        claim = self.html(self._claim[:1].upper() + self._claim[1:])[3:-5]
        title = claim or (escape(name_of(label)) if label and second else "")
        self._add("alive" if live else "equation", *shown, *live, title=title)
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
        if "hide-input" not in tags:
            self.slides[-1].code = self.slides[-1].code or _code(cell)
        claims, shown = [], []
        for output in cell.get("outputs", []):
            claim, html = _claimed(_output(output)) if "tag" not in output else ("", "")
            claims += [claim] * bool(claim)
            shown += [html] * bool(html)
        claim = claims[0] if len(claims) == 1 else ""
        pictures = [html for html in shown if _is_picture(html)]
        if self._ask and "predicted" in tags:
            self._predicted(cell, claim, shown, pictures)
        elif pictures:
            self._add("picture", self.html(_with_subject(self._lead, self._paragraph)), *pictures, title=claim)
        elif self._lead.endswith(":") and "\n" in _code(cell).strip() and not shown and not THE_CELL.search(self._lead):  # code to read
            self._program(_code(cell))
        self._lead = ""

    def _program(self, code: str) -> None:
        """Code below what leads to it, in as few slides as it needs; what goes on there has its class or function above it, in grey."""
        lead, before = self.html(self._lead), ""
        short = self.html(f"{self._lead.partition(': ')[0].removesuffix(':')}:")
        if _tall(lead) + _high(code) > ROOM >= _tall(short) + _high(code):
            lead = short
        for part in _parts(code, ROOM - _tall(lead)):
            inside = len(part) - len(part.lstrip(" "))
            again = [found[0] for found in HEAD.finditer(before) if len(found[1]) < inside][-1:]
            self._add("picture", lead, _pre(part, *again))
            lead, before = "", f"{before}\n{part}"

    def _predicted(self, cell: dict[str, Any], claim: str, shown: list[str], pictures: list[str]) -> None:
        """What came out waits for the next key; or for the next slide, where a picture stands with print, or there is no room for it."""
        code, asked = _code(cell), self.html(self._ask)
        seen = [_pre(code)] if POINTS.search(self._ask) and code.count("\n") < LINES else []
        printed = [html for html in shown if html not in pictures]
        self._ask = ""
        low = pictures and _beside("", pictures[0]).startswith('<div class="beside stacked') and _tall(asked) > 2 * LINE
        if seen and sum(map(_tall, [asked, *seen, *printed])) + 2 * LINE > ROOM:
            self._add("question", asked, *seen)
            again = [] if pictures or sum(map(_tall, [*seen, *printed])) + 2 * LINE > ROOM else seen
            self._add("picture", *again, *shown, title=claim)
        elif pictures and (printed or low):
            self._add("question", asked, *seen, *map(_later, printed))
            self._add("picture", *pictures, title=claim)
        else:
            self._add("question", asked, *seen, *map(_later, shown))

    def html(self, text: str, *, small: bool = False) -> str:
        """Return Markdown as HTML, with formulas set; `small`: as MathML alone, which needs no style."""
        from markdown_it import MarkdownIt
        from mdit_py_plugins.dollarmath import dollarmath_plugin

        def formula(latex: str, options: dict[str, Any]) -> str:
            if options["display_mode"] and not small:
                return block(latex, self._typeset, {})
            return self._typeset(TAG.sub("", latex).strip(), display=options["display_mode"], small=small)

        reader = MarkdownIt("commonmark", {"html": True, "typographer": True}).enable(["table", "smartquotes"])
        reader.use(dollarmath_plugin, renderer=formula, allow_labels=False)
        return str(reader.render(IN_MARKDOWN.sub(r"\g<words>", text)))

    # ---- The page
    def page(self) -> str:
        """Return the deck as a page."""
        plan = self.plan()
        rows = "".join(f"<tr><td>{escape(name)}</td><td>{minutes}</td></tr>" for name, minutes in plan)
        table = f'<table class="plan"><tr><th>part</th><th>minutes</th></tr>{rows}</table>'
        title = self.slides[0]
        title.shown = [_beside("\n".join(title.shown), table)]
        template = (HERE / "deck.html").read_text(encoding="utf-8")
        return template.replace("TITLE", escape(self.title)).replace("SLIDES", "\n".join(map(self._slide, self.slides)))

    def plan(self) -> list[tuple[str, int]]:
        """Return the sections in their order, and the minutes that each takes."""
        parts = dict.fromkeys(slide.section for slide in self.slides if slide.section)
        return [(part, -(-sum(slide.seconds for slide in self.slides if slide.section == part) // 60)) for part in parts]

    def _slide(self, slide: Slide) -> str:
        level, notes = ("h1" if slide is self.slides[0] else "h2"), "\n\n".join(slide.notes)
        heading = self.html(slide.heading)[3:-5]
        part = f'<p class="part">{heading}</p>' if slide.title else ""
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
    """The code of a cell, without what it imports first, with one empty line for two, and a remark above a line that is too long."""
    lines = re.sub(r"\n{3,}", "\n\n", IMPORTS.sub("", _text(cell))).split("\n")
    return "\n".join(REMARK.sub(r"\1# \3\n\1\2", line) if len(line) > COLUMNS else line for line in lines)


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
    while more and len(f"{shown} {more[0]}".split()) <= most:
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
    while at and (at == asked or len(" ".join(sentences[at - 1 :]).split()) <= ASKED):
        at -= 1
    while at < asked and GOES_ON.match(sentences[at]):
        at += 1
    return " ".join(sentences[:at]), " ".join(sentences[at:])


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


def _beside(left: str, right: str) -> str:
    size = SIZE.search(right)
    stacked = " stacked" * bool(size and float(size[1]) > WIDE * float(size[2]))
    return f'<div class="beside{stacked}"><div>{left}</div><div>{right}</div></div>'


def _later(html: str) -> str:
    return f'<div class="fragment">{html}</div>'


def _pre(text: str, *again: str) -> str:
    """Lines of code or print: one that is too long goes on further in, and short brackets are not broken. `again`: lines that were seen."""

    def line(text: str, kind: str = "") -> str:
        whole = CLOSE.sub(r"<i>\g<0></i>", escape(text))
        return f'<span{kind} style="--in:{len(text) - len(text.lstrip())}">{whole}</span>'

    lines = [line(each, ' class="again"') for each in again] + [line(each) for each in text.rstrip().split("\n")]
    return f"<pre>{''.join(lines)}</pre>"


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
    if "<pre" in html:
        lines = [len(_read_out(line)) for line in LINES_OF.findall(html)]
        return FRAME + round(sum(CODE * max(0.5, -(-line // COLUMNS)) for line in lines))
    return sum(-(-len(_read_out(text)) // LETTERS) * LINE + BETWEEN for text in html.split("<p>")[1:])


def _read_out(html: str) -> str:
    """The words of HTML, and each formula once."""
    return unescape(MARKUP.sub("", MATHML.sub("", html)))


def _drawn(words: str, svg: str) -> str:
    """A plot without its title, which is what it claims: the slide has it."""
    claim = " ".join(found[2] for found in CLAIM.finditer(svg))
    if claim:
        top = max(float(found[1]) for found in CLAIM.finditer(svg)) + 5

        def cut(found: re.Match[str]) -> str:
            return f'viewBox="0 {top} {found[1]} {float(found[2]) - top:.2f}"'

        svg = re.sub(r'width="[\d.]+" height="[\d.]+" viewBox="0 0 (\S+) ([\d.]+)"', cut, CLAIM.sub("", svg), count=1)
    size = SIZE.search(svg)
    drawn = b64encode(svg.encode()).decode()
    return f'<img alt="{words}" data-claim="{claim}" data-{size[0] if size else ""} src="data:image/svg+xml;base64,{drawn}">'


def _claimed(html: str) -> tuple[str, str]:
    """What a picture claims, or a card asks, and the picture without it."""
    if found := re.match(r'<img [^>]*data-claim="([^"]+)"', html):
        return found[1], html
    if found := CAPTION.search(html):
        claim, more = found[1].removesuffix("."), f"<figcaption>{found[2]}</figcaption>" if found[2] else ""
        if len(MARKUP.sub("", claim)) <= NAMED:
            return claim, html.replace(found[0], more)
    elif found := ASKS.search(html):
        return found[1], html
    return "", html


def _output(output: dict[str, Any]) -> str:
    """Return what a cell printed or drew as HTML; its figure in words is not for a screen."""
    if "text" in output:
        return _pre("".join(output["text"])).replace("<pre>", '<pre class="printed">', 1)
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

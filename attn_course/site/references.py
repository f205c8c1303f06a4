"""Sphinx: "Eq. (2.5)", "section 2.12", "task 2.1" and "lesson 03" in the text become links; a deeper section becomes a fold."""

import functools
import math
import re
from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx.search.en import SearchEnglish
from sphinx.transforms.post_transforms import SphinxPostTransform

from attn_course.authoring.measure import WORDS_A_MINUTE
from attn_course.numbers import counted

if TYPE_CHECKING:
    from sphinx.application import Sphinx

NUMBER = r"\((?P<{0}>\d+\.\d+)\)"
REFERENCE = re.compile(
    rf"(?<=Eq\.[ \N{{NO-BREAK SPACE}}]){NUMBER.format('one')}|(?:(?<=Eqs\. )|(?<=\), )|(?<=\) and )){NUMBER.format('many')}"
    r"|[Ss]ection (?P<section>\d+\.\d+)(?!\.\d)|[Tt]ask (?P<task>\d+\.\d+)|[Ll]esson (?P<lesson>\d\d)"
)
SECTION = re.compile(r"(\d+\.\d+) (Deeper: )?")
PERCENT, MINUS = re.compile(r"(?<=\d) %"), re.compile(r"(?<![\w-])-(?=\d)")
HYPHEN = re.compile(r"(?<=\b\w)-(?=\w)|\A-(?=[a-z])")  # of "1-D", and behind a formula
ASKS = ("Predict", "Your turn", "Spot the mistake")
LABEL = re.compile(rf"({'|'.join(ASKS)})([.:]?)\s*(.*)", re.DOTALL)
FIXED = (nodes.literal, nodes.literal_block, nodes.raw, nodes.math, nodes.math_block)
KEPT = (nodes.reference, nodes.title, *FIXED)
TAG = re.compile(r"\\tag\{([^}]*)\}")
FOLD = '<details class="deeper"><summary>Read on: {said}</summary>'


class References(SphinxPostTransform):
    """Find what the text refers to. `course_places`: "eq 2.5", "task 2.1", "lesson 02" -> (page, anchor)."""

    default_priority = 900

    def run(self, **kwargs: Any) -> None:
        """Replace the words in each text."""
        for section in list(self.document.findall(nodes.section)):
            title = section.next_node(nodes.title)
            if title is not None and (found := SECTION.match(title.astext())):
                section["ids"].append(f"section-{found[1].replace('.', '-')}")
                if found[2]:
                    at = section.index(title) + 1
                    section.insert(at, nodes.raw("", FOLD.format(said=_what_is_in(section)), format="html"))
                    section.append(nodes.raw("", "</details>", format="html"))
        for title in self.document.findall(nodes.title):
            name = title.astext()
            if isinstance(title.parent.parent, nodes.document) and ": " in name:
                first, rest = name.split(": ", 1)
                title.children = [nodes.Text(f"{first}: "), nodes.inline("", rest, classes=["rest"])]
        for words in self.document.findall(nodes.strong):
            if words.astext() == "You need":
                words.parent["classes"].append("needs")
            if words.astext().startswith(ASKS) and isinstance(words.parent, nodes.paragraph):
                words["classes"].append("asks-label")
                words.parent["classes"].append("asks")
                _let_begin(words)
        for text in list(self.document.findall(nodes.Text)):
            if not any(isinstance(around, KEPT) for around in _around(text)):
                self._link(text)
        for text in list(self.document.findall(nodes.Text)):
            said = MINUS.sub("−", PERCENT.sub("\N{NO-BREAK SPACE}%", text)).replace(" −", "\N{NO-BREAK SPACE}−")
            said = HYPHEN.sub("\N{NON-BREAKING HYPHEN}", said).replace(" · ", "\N{NO-BREAK SPACE}· ")
            if said != text and not any(isinstance(around, FIXED) for around in _around(text)):
                text.parent.replace(text, nodes.Text(said))

    def _link(self, text: nodes.Text) -> None:
        words, parts, at = text.astext(), list[nodes.Node](), 0
        for found in REFERENCE.finditer(words):
            address = self._address(found)
            if address:
                kind = ["eq-ref"] if found["one"] or found["many"] else []
                before = re.sub(r" \Z", "\N{NO-BREAK SPACE}", words[at : found.start()])
                parts += [nodes.Text(before), nodes.reference("", found[0], refuri=address, internal=True, classes=kind)]
                at = found.end()
        if parts and text.parent is not None:
            text.parent.replace(text, [*parts, nodes.Text(words[at:])])

    def _address(self, found: "re.Match[str]") -> str:
        places, here = self.config.course_places, self.env.docname
        number = found["one"] or found["many"]
        if number:
            place = places.get(f"eq {number}")
        elif found["section"]:
            lesson = places.get(f"lesson {int(found['section'].split('.')[0]):02d}")
            place = lesson and (lesson[0], f"section-{found['section'].replace('.', '-')}")
        elif found["task"]:
            place = places.get(f"task {found['task']}")
        else:
            place = places.get(f"lesson {found['lesson']}")
        if place is None:
            return ""
        page, anchor = place
        path = "" if page == here else f"{'../' * here.count('/')}{page}.html"
        return f"{path}#{anchor}" if anchor else path


def _what_is_in(section: nodes.section) -> str:
    """How long a section takes, where a displayed formula takes a minute, and its equations."""
    shown = [formula.astext() for formula in section.findall(nodes.math_block)]
    said = sum(len(text.astext().split()) for text in section.findall(nodes.Text) if not isinstance(text.parent, FIXED))
    numbers = [f"({number})" for formula in shown for number in TAG.findall(formula)]
    ends = [numbers[0], *numbers[-1:]] if len(numbers) > 1 else numbers
    equations = f", Eq{'s' * (len(ends) > 1)}. {(' and ' if len(numbers) == 2 else ' to ').join(ends)}" * bool(ends)
    return f"about {counted(math.ceil(said / WORDS_A_MINUTE + len(shown)), 'minute')}{equations}"


def _let_begin(label: nodes.strong) -> None:
    """Give a label that ends with a colon or a full stop a line of its own, without it; what follows begins with a capital letter."""
    rest = label.next_node(descend=False, siblings=True)
    said = label.astext() + (rest.astext() if isinstance(rest, nodes.Text) else "")
    if (found := LABEL.match(said)) and found[2]:
        label["classes"].append("alone")
        label.children = [nodes.Text(found[1])]
        if isinstance(rest, nodes.Text) and rest.parent is not None:
            rest.parent.replace(rest, nodes.Text(found[3][:1].upper() + found[3][1:]))


def _around(node: nodes.Node) -> Iterator[nodes.Node]:
    while node.parent is not None:
        node = node.parent
        yield node


def _neighbours(app: "Sphinx", page: str, _: str, context: dict[str, Any], *others: Any) -> None:
    """Give a page of an equation or a task the one before it and the one after it."""
    for row in app.config.course_rows:
        around = [("", ""), *row, ("", "")]
        for before, (name, _title), after in zip(around, row, around[2:], strict=False):
            if name == page:
                links = {"prev": before, "next": after}
                context |= {
                    way: {"link": app.builder.get_relative_uri(page, to), "title": escape(title)}
                    for way, (to, title) in links.items()
                    if to
                }


def _two_pages(app: "Sphinx", page: str, _: str, context: dict[str, Any], *others: Any) -> None:
    """Let the page that searches know what each page is about before it ranks what it finds; the first page has one title."""
    if page == "search":
        app.add_js_file("about.js")
    if page == "index":
        context["docstitle"] = ""


class English(SearchEnglish):
    """Sphinx's own, which finds the stem of a word anew on every page."""

    stem = functools.cache(SearchEnglish.stem)


def setup(app: "Sphinx") -> dict[str, bool]:
    """Tell Sphinx of the transform."""
    app.add_search_language(English)
    app.add_config_value("course_places", {}, "html")
    app.add_config_value("course_rows", [], "html")
    app.connect("html-page-context", _neighbours)
    app.connect("html-page-context", _two_pages)
    app.add_post_transform(References)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

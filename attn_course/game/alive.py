r"""`alive("attention-weights")`: a numbered equation as a small machine, and as a still card what cannot be one."""

import contextlib
import json
import re
from collections.abc import Iterator
from functools import lru_cache
from html import escape
from pathlib import Path
from typing import Any

from IPython.display import display

from attn_course import numbers
from attn_course.equations.core import REGISTRY, Equation
from attn_course.equations.latex import statements
from attn_course.equations.publish import publish
from attn_course.equations.show import ShowError, Shown, shown
from attn_course.figures.explorable import Explorable, joined_html
from attn_course.figures.mathml import mathml
from attn_course.figures.plain import mathematics
from attn_course.formulas import FormulaError, Node
from attn_course.formulas.javascript import ALGEBRA, MORE
from attn_course.formulas.plain import plain
from attn_course.formulas.tree import write
from attn_course.game.living import Derived, Form, Input, Life, StaysStill, living
from attn_course.game.sides import Chain, keys_of, values_of

HERE = Path(__file__).parent
CALLED, JOINED = re.compile(r"\b[on]\.(\w+)\("), re.compile(r"^  (\w+)[:,]", re.MULTILINE)
GIVEN = re.compile(r'(?:o\.given|(o\.entry\(o\.given))\(\$\.(\w+), "\2"\)(?(1), )')  # shorter in a card: `G` of `alive.js`
FLOAT, LEADING = re.compile(r"-?\d+\.\d+(?:e-?\d+)?"), re.compile(r"(?<!\d)0(?=\.)")  # 13 digits are more than a card compares
SHORT = 36  # characters of a side that stands above its table, if it is one line high
SCRIPT = re.compile(r"(?<=\b[A-Za-z])([_^])(\w+)")  # in words: the rows of W_O, Q^T K
CONTROLS = """<p class="attn-title">{title}</p>
<div class="alv-top">
<div class="alv-forms" role="group" aria-label="The equation, and known mistakes">{printed}<i>Try a mistake:</i>{mistakes}</div>
<div class="alv-now"><p class="alv-named"></p><div class="alv-formula"></div>
<div class="alv-said"><p class="alv-verdict" role="status"></p>
<div class="attn-buttons"><button type="button" class="alv-some">Show such numbers</button>
<button type="button" class="alv-again">Back to the start</button></div></div></div>
</div>
<div class="alv-given"><div class="alv-inputs"></div></div>
<details class="alv-more"><summary>More: what follows from them</summary><div class="alv-derived"></div></details>
<div class="alv-sides"></div>
<div class="alv-how" aria-live="polite"></div>
"""
ALT = (
    "{title} as a machine: {changed}each number of the result says what it is computed from, "
    "and known mistakes mark the numbers in which they differ."
)


def alive(label: str) -> None:
    """Show an equation as a card in which its numbers can be changed, and its mistakes be tried.

    `label`: its name, or its number as messages print it. Where scripts do not run, and for an equation whose numbers cannot be
    changed alone, the card is still: the formula, numbers put in, and the smallest counterexample of each mistake. Raises
    UnknownEquation if there is no such label.
    """
    equation = REGISTRY.get_equation(numbers.named("labels", label) or label)
    try:
        life = life_of(equation.label)
    except StaysStill:
        publish(still(equation))
    else:
        display(Explorable(card(life), alt(life)))


@lru_cache(maxsize=512)
def life_of(label: str) -> Life:
    """Return what is alive of an equation; raises StaysStill."""
    return living(REGISTRY.get_equation(label))


def title(equation: Equation) -> str:
    """Return what a card is called."""
    return f"{numbers.eq(equation.label)}: {equation.name}"


def alt(life: Life) -> str:
    """Return the words that stand for a card."""
    changed = ", ".join(plain(one.name) for one in life.inputs)
    return ALT.format(title=title(life.equation), changed=f"{changed} can be changed, " * bool(changed))


def card(life: Life) -> str:
    """Return the card as one piece of HTML that needs nothing beside it."""
    label = life.equation.label
    printed, *mistakes = (
        f'<button type="button" data-form="{place}"{" data-mistake" * bool(form.name)}>{_button(form)}</button>'
        for place, form in enumerate(life.forms)
    )
    controls = CONTROLS.format(title=escape(title(life.equation)), printed=printed, mistakes="".join(mistakes))
    source = javascript(life)
    algebra, rare, engine = (part.read_text(encoding="utf-8") for part in (ALGEBRA, MORE, HERE / "alive.js"))
    first, *blocks = rare.split("\n\n")
    needed = [block for block in blocks if {*JOINED.findall(block)} & {*CALLED.findall(source)}]
    script = "\n".join([algebra, *[first] * bool(needed), *needed, engine, f"const LIFE = {source};"])
    words = "".join(f"<p>{escape(line.strip(), quote=False)}</p>\n" for line in str(numbered(life.equation)).splitlines())
    look = (HERE / "alive.css").read_text(encoding="utf-8")
    return joined_html(f"alive-{label}", f"alive-{label}", controls, look, words, script)


def _button(form: Form) -> str:
    tag = {"_": "sub", "^": "sup"}
    name = SCRIPT.sub(lambda found: f"<{tag[found[1]]}>{found[2]}</{tag[found[1]]}>", escape(numbers.cite(form.name)))
    return name.replace("<sup>T</sup>", "<sup>⊤</sup>") or "as printed"


# ---- The life of an equation as JavaScript
TAGS = re.findall('TAGS = "(.+?)"', (HERE / "alive.js").read_text(encoding="utf-8"))[0].split()
WHOLE = ['<mo stretchy="false">', '<mspace width="0.17em"/>', '<mo lspace="0" rspace="0">']
PACKED = {f"<{'/' * closing}{tag}>": chr(0x100 + 2 * place + closing) for place, tag in enumerate(TAGS) for closing in (0, 1)}
PACKED |= {tag: chr(0x100 + 2 * len(TAGS) + place) for place, tag in enumerate(WHOLE)}
TAG = re.compile("|".join(PACKED))


def packed(markup: str) -> str:
    """Return MathML with one letter for each of its usual tags, as `alive.js` reads it."""
    return TAG.sub(lambda found: PACKED[found[0]], markup)


def javascript(life: Life) -> str:
    """Return what `alive.js` finds under the name LIFE."""
    keys, sides, chains, printed = keys_of(life.givens), list[str](), list[str](), list[str]()
    inputs, follow = [keys[one.name] for one in life.inputs], {keys[one.name] for one in life.derived}
    values = values_of(life.formula, life.givens)
    fields = {
        "fixed": FLOAT.sub(
            lambda found: LEADING.sub("", f"{float(found[0]):.13g}"),
            _json({key: value for key, value in values.items() if key not in inputs and key not in follow and value is not None}),
        ),
        "values": _json({key: values[key] for key in inputs}),
        "beside": _json(
            [{"key": keys[name], "label": packed(mathml(name, display=False))} for name in _beside(life) if keys[name] in values]
        ),
        "inputs": _listed(_input(one, life, keys) for one in life.inputs),
        "assumes": _json("; ".join(map(numbers.cite, life.equation.assumes))),
        "forms": _listed(_form(form, sides, chains, printed) for form in life.forms),
        "derived": _listed(_derived(one, life, keys, sides) for one in life.derived),
    }
    inside = ",\n".join(f"{name}: {value}" for name, value in fields.items())
    source = f"(() => {{\nconst S = {_listed(sides)}, C = {_listed(chains)}, M = {_json(printed)};\nreturn {{ {inside} }};\n}})()"
    return GIVEN.sub(lambda found: f'G(o,$,"{found[2]}"{"," if found[1] else ")"}', source).replace("</", "<\\/")


def _json(thing: Any) -> str:
    text = json.dumps(thing, ensure_ascii=False, separators=(",", ":"))
    return text.replace("-Infinity", "-1/0").replace("Infinity", "1/0").replace(".0,", ",").replace(".0]", "]")


def _listed(items: Any) -> str:
    return f"[\n{''.join(f'  {item},' + chr(10) for item in items)}]"


def _input(one: Input, life: Life, keys: dict[str, str]) -> str:
    """Return what the page has to know of an input; above one that the equation does not hold stands what is computed from it."""
    made = [] if _holds(life.equation.latex, one.name) else [each.latex for each in life.derived if _holds(each.latex, one.name)]
    label = r",\quad ".join([one.name, *filter(_fits, made)])
    return _json({"key": keys[one.name], "label": packed(mathml(label, display=False)), "spoken": plain(one.name), "kind": one.kind})


def _holds(latex: str, name: str) -> bool:
    """Whether a symbol stands in a formula, not as a part of another word."""
    return re.search(rf"(?<![A-Za-z\\]){re.escape(name)}(?![A-Za-z])", latex) is not None


def _derived(one: Derived, life: Life, keys: dict[str, str], sides: list[str]) -> str:
    whole = any(_is_side(node, one.name) for chain in life.forms[0].chains for node in chain.nodes)
    alias = next((alias for alias in life.aliases if alias.name == one.name), None)
    about: dict[str, Any] = {"key": keys[one.name], "label": packed(mathml(one.name, display=False)), "side": whole or alias is not None}
    about |= {"base": keys[alias.base], "turned": alias.turned} if alias else {}
    source = one.source
    for place, side in enumerate(sides):
        letters, _, body = side.partition("=>")
        within = all(f"({letter}) =>" in source for letter in letters[1:-1].split(",")[2:])
        source = source.replace(body, f"S[{place}]{letters}") if within and len(body) > len(letters) + 5 else source
    return f"{_json(about)[:-1]},make:(o,$)=>{source}}}"


def _beside(life: Life) -> list[str]:
    """Return the symbols that are neither changed nor computed, but for those that are a side of a relation."""
    return [name for name in life.fixed if not any(_is_side(node, name) for chain in life.forms[0].chains for node in chain.nodes)]


def _is_side(node: Node, name: str) -> bool:
    """Whether a side of a relation is a symbol, or it with letters."""
    base = node.children[0] if node.kind == "entry" else node
    return base.kind == "name" and base.value == name


def _form(form: Form, sides: list[str], chains: list[str], printed: list[str]) -> str:
    said = [f"M[{_placed(packed(mathml(statement)), printed)}]" for statement in statements(form.latex)]
    problem = f"problem:{_json(form.problem)}," if form.problem else ""
    places = [_placed(chain_source(chain, sides), chains) for chain in form.chains]
    return f"{{{problem}math:{'+'.join(said)},chains:[{','.join(f'C[{place}]' for place in places)}]}}"


def chain_source(chain: Chain, sides: list[str]) -> str:
    """Return a chain as JavaScript; its sides are put into a list, if they are not there."""
    letters = ",".join(["$", *chain.letters])
    order = -1 if chain.turned else 1
    made = [_placed(f"(o,{letters})=>{source}", sides) for source in chain.sides[::order]]
    where = f"({letters})=>{chain.where}" if chain.where else "null"
    labels = [packed(mathml(latex, display=False)) if _fits(latex) else said for latex, said in _sides(chain.nodes[::order])]
    facts: dict[str, Any] = {
        "letters": list(chain.letters),
        "runs": list(map(list, chain.runs)),
        "signs": list(chain.signs),
        "labels": labels,
    }
    if chain.letters and not any(re.search(rf"\b{letter}\b", source) for letter in chain.letters for source in chain.sides):
        facts["once"] = True  # what is claimed of Z beside each z_i is the same for every i
    return f"{_json(facts)[:-1]},where:{where},sides:[{','.join(f'S[{place}]' for place in made)}]}}"


def _fits(latex: str) -> bool:
    return len(plain(latex)) <= SHORT and "frac" not in latex


def _placed(source: str, table: list[str]) -> int:
    if source not in table:
        table.append(source)
    return table.index(source)


def _sides(nodes: tuple[Node, ...]) -> Iterator[tuple[str, str]]:
    for place, node in enumerate(nodes):
        yield write(node), "left side" if not place else "right side" if place == len(nodes) - 1 else "middle"


# ---- What stands still
class Still:
    """An equation with numbers in it, and the smallest counterexample of each of its mistakes."""

    def __init__(self, parts: list[Shown]) -> None:
        self.parts = parts

    def _repr_markdown_(self) -> str:
        first, *wrong = self.parts
        leads = [mathematics(escape(one.lead, quote=False)) for one in wrong]
        folded = [
            f"<details><summary>{lead}</summary>\n\n{one._repr_markdown_().removeprefix(one.lead)}\n\n</details>"
            for lead, one in zip(leads, wrong, strict=True)
        ]
        return "\n\n".join([first._repr_markdown_(), *folded])

    def __str__(self) -> str:
        return "\n\n".join(map(str, self.parts))

    __repr__ = __str__


def numbered(equation: Equation) -> Shown:
    """Return an equation with numbers put in; as it is printed where that cannot be done."""
    try:
        return shown(equation.label)
    except (ShowError, FormulaError, StopIteration):
        return Shown(f"{numbers.eq(equation.label)}:", equation.latex, equation.latex)


def still(equation: Equation) -> Still:
    """Return the still card of an equation."""
    parts = [numbered(equation)]
    for wrong in equation.wrongs:
        with contextlib.suppress(ShowError):  # no counterexample is found
            parts.append(shown(equation.label, wrong.name))
    return Still(parts)

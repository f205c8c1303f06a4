"""What is cut from a script, a style or markup is only what its author reads; a browser says whether the rest does the same."""

import pytest

from attn_course.figures import explorable
from attn_course.figures.compact import compact_markup, compact_script, compact_style
from attn_course.game.build import javascript
from attn_course.game.card import SCRIPTS
from tests.figures.support import CARDS

PARTS = [explorable.HERE / "card.js", explorable.HERE / "explorable.js", *SCRIPTS]
PARTS += [card.with_suffix(".js") for card in CARDS.values()]
STYLES = [
    explorable.HERE / "card.css",
    explorable.HERE / "explorable.css",
    explorable.HERE / "diagram.css",
    SCRIPTS[0].with_name("page.css"),
    *(card.with_suffix(".css") for card in CARDS.values()),
]
RETURNING = [  # each a body of a function that returns text
    'return "// no /* comment */ " + \'// "\' + "\\\\" + "it\'s \\"so\\"" + "\\"a\\"\\n";',
    "return `a  // b\n  ${[1, 2].map((n) => `<${n} ${'}'} ${`${n  +  1}`}>`).join(' ')}  \\` ${{ a: 1 }.a}  `;",
    'return "a/b//c".replace(/[/"]+/g, " ") + /\\/ "/.test("/ \\"") + [8 / 2 / 2, (8) / 2, [8][0] / 2].join(" / ");',
    "let i = 1;\nconst more = i++ + ++i, less = 5 - -i - --i;\nreturn String([more, less, i++ / 2, i / 2]);",
    "const a = 1; // one\nconst b = /* two */ 2;\n/* three\n lines */ return typeof a + void 0 + (a in [1, 2]) + b;",
    'const said = { "one-two": 1, "one": 2, if: 3, \'three\': 4 };\nreturn JSON.stringify([said, true ? "x" : "y"]);',
    'const f = () => {\n  return\n  "never";\n};\nreturn String(f()) + 1 .toFixed(2) + 2.5.toFixed(1);',
    "class Counter {\n  count = 1\n  static of = 2\n}\nlet x = new Counter().count\nlet y = Counter.of\nreturn `${x}${y}`;",
    "outer: for (const x of [1, 2]) { for (;;) { if (x < 2) continue outer; else break outer; } }\ndo ; while (false)\nreturn 'done';",
    "const half = (x) => x / 2, two = 2;\nreturn String(half(4) / two / 1) + (3 > 2 && !/a/.test('b') ? /b/ : /c/).source;",
]


@pytest.fixture
def evaluate(page):
    return lambda body: page.evaluate("(body) => new Function(body)()", body)


@pytest.mark.browser
def test_a_compact_script_does_the_same(evaluate):
    for body in RETURNING:
        compact = compact_script(body)
        assert evaluate(compact) == evaluate(body), compact
        assert len(compact) < len(body)
        assert compact_script(compact) == compact


@pytest.mark.browser
def test_a_missing_semicolon_is_refused_by_the_browser_and_never_means_something_else(evaluate):
    with pytest.raises(Exception, match="SyntaxError"):
        evaluate(compact_script('const a = "a"\nreturn a;'))


@pytest.mark.browser
def test_a_compact_style_holds_the_same_rules(page):
    """The rules as the browser read them, with the class that they are nested in, wherever they stand."""
    read = """(text) => {
        const sheet = new CSSStyleSheet();
        sheet.replaceSync(text);
        const rules = (list, outer, where) => [...list].flatMap((rule) => {
            if ("conditionText" in rule) return rules(rule.cssRules, outer, rule.conditionText);
            const name = rule.selectorText?.replaceAll("&", outer) ?? rule.cssText;
            const says = `${where} ${name} { ${rule.style?.cssText} }`.replace(/([,:]) /g, "$1").replaceAll('"', "'");
            return [...(rule.style?.length ? [says] : []), ...rules(rule.cssRules ?? [], name, where)];
        });
        return rules(sheet.cssRules, "", "");
    }"""
    for path in STYLES:
        text = path.read_text(encoding="utf-8")
        compact = compact_style(text)
        rules = page.evaluate(read, text)
        assert rules
        assert page.evaluate(read, compact) == rules, path.name
        assert compact_style(compact) == compact


def test_a_style_keeps_its_strings_and_the_spaces_that_mean_something():
    assert compact_style('a::before { content: "/* ; } */  \\201c"; }') == "a::before{content:'/* ; } */  \\201c'}"
    assert compact_style("a :is(b, c) + d ~ e > f { width: calc(1px + 2px * 3) !important; }\n") == (
        "a :is(b,c) + d ~ e>f{width:calc(1px + 2px * 3) !important}"
    )
    assert compact_style("@media (width > 3px) and (hover) { .a b { c: d } .a e { f: g } .a-b { h: i } }") == (
        "@media (width>3px) and (hover){.a{b{c:d}e{f:g}}.a-b{h:i}}"
    )
    assert compact_style(".a b, c { d: e } .a f { g: h }") == ".a b,c{d:e}.a f{g:h}", "c is not within a"


def test_markup_stays_what_it_shows():
    assert compact_markup('<p title="it\'s">a\n  <b class="x">b</b>\n  c\'s</p>\n') == "<p title=\"it's\">a <b class='x'>b</b> c's</p>"


@pytest.mark.browser
def test_the_scripts_of_the_course_are_read_by_a_browser_and_lose_a_tenth_and_more(page):
    sources = {"machine": javascript(), **{path.name: path.read_text(encoding="utf-8") for path in PARTS}}
    for name, text in sources.items():
        compact = compact_script(text)
        page.evaluate("(text) => void new Function(text)", compact)
        assert compact_script(compact) == compact
        assert len(compact) < 0.9 * len(text), name

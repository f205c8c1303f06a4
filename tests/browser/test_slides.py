"""Slides of a lesson: made of the notebook alone, none taller or wider than the screen, and a prediction keeps what came out."""

import re
from pathlib import Path

import pytest

from attn_course.site.slides import Deck, _claimed, _code, _drawn, _halves, _high, _is_picture, _parts, _program, write_slides
from tests.browser.notebook_page import open_page, required_browser

ROOT = Path(__file__).parents[2]
CLEAR = """(() => {
    const box = (part) => document.querySelector(`section.present ${part}`).getBoundingClientRect();
    return box(".alv-verdict b").top - box(".alv-forms").bottom;
})()"""
NUMBERS = """Array.from(document.querySelectorAll('.present :is(.body, .attn-live > div > .alv-given, .alv-sides)'),
    (one) => one.currentCSSZoom)"""
LOOK = """() => {
    const slide = Reveal.getCurrentSlide(), body = slide.querySelector('.body');
    const words = document.createTreeWalker(body, NodeFilter.SHOW_TEXT), sizes = [];
    for (let word; (word = words.nextNode()); ) {
        const one = word.parentElement;
        if (one.matches('.katex *, math *, svg *, sub, details *, script, style') || !word.data.trim() || !one.checkVisibility()) continue;
        sizes.push(parseFloat(getComputedStyle(one).fontSize) * one.currentCSSZoom);
    }
    const inside = [...body.querySelectorAll(':not(.katex-mathml, .katex-mathml *, svg *)')];
    const plots = Array.from(body.querySelectorAll(':scope > img'), (one) => {
        const svg = decodeURIComponent(one.src), [, width, height] = svg.match(/viewBox="\\S+ \\S+ (\\S+) ([\\d.]+)"/);
        const scale = Math.min(one.clientWidth / width, one.clientHeight / height);
        return scale * Math.min(...Array.from(svg.matchAll(/font-size:([\\d.]+)px/g), (found) => found[1]));
    });
    return { height: slide.scrollHeight, plot: Math.min(99, ...plots),
             width: slide.scrollWidth, bottom: body.getBoundingClientRect().bottom,
             out: inside.filter((one) => one.getBoundingClientRect().right > 1281).length,
             open: [...slide.querySelectorAll('.fragment')].map((one) => one.classList.contains('visible')),
             top: body.getBoundingClientRect().top, letters: Math.min(...sizes),
             spills: body.scrollHeight > body.clientHeight + 1 || body.scrollWidth > body.clientWidth + 1,
             code: Array.from(body.querySelectorAll('pre'), (one) =>
                 Math.round(one.currentCSSZoom * parseFloat(getComputedStyle(one).fontSize))),
             text: Array.from(body.querySelectorAll(':is(p, li):not(.attn-explorable *)'), (one) =>
                 Math.round(one.currentCSSZoom * parseFloat(getComputedStyle(one).fontSize))),
             margin: slide.matches('.question') ? body.querySelector('p').getBoundingClientRect().left
                 - document.querySelector('.navigate-left').getBoundingClientRect().right : 99,
             off: (body.firstElementChild.getBoundingClientRect().top - body.getBoundingClientRect().top)
                 * !body.matches(':has(> .eq:first-child), :has(> pre:first-child)'),
             hints: [body, ...body.querySelectorAll('.fragment')].map((one) => getComputedStyle(one, '::after').content)
                 .filter((said) => said === '"press → to see"').length,
             size: Number(body.style.zoom), scrolls: body.style.overflowY, kind: slide.className.split(' ')[0] };
}"""


def markdown(text: str, *tags: str) -> dict:
    """Return a cell of text."""
    return {"cell_type": "markdown", "source": text, "metadata": {"tags": list(tags)}}


def code(text: str, *tags: str, printed: str = "", html: str = "") -> dict:
    """Return a cell of code that has run."""
    outputs = [{"output_type": "stream", "name": "stdout", "text": printed}] * bool(printed)
    outputs += [{"output_type": "display_data", "data": {"text/html": html}, "metadata": {}}] * bool(html)
    return {"cell_type": "code", "source": text, "metadata": {"tags": list(tags)}, "outputs": outputs}


def test_each_equation_picture_and_prediction_is_a_slide_with_the_idea_before_it_and_the_rest_is_said():
    cells = [
        markdown("# 02 A lesson\n\nShort words.\n\nMore."),
        markdown("## 2.1 First\n\nA question opens this section, in more than eight words. So the weights are\n\n$$a = b \\tag{2.97}$$"),
        markdown("We look at [exercises](../work/ex_02_softmax.ipynb).\n\nIt follows that\n\n$$\\boxed{c = d} \\tag{2.98}$$\n\nEnd."),
        code("draw()", html="<section><svg></svg></section>"),
        markdown("Why so? These count:\n\n| n |\n|---|\n| 1 |\n\n**Predict** the number below."),
        code("print(1)", "predicted", printed="42"),
        markdown("<details><summary>What came out</summary>\n\nForty-two.\n\n</details>", "answer"),
        markdown("**Spot the mistake.** Is it 43?\n\n<details><summary>No</summary>\n\nIt is less.\n\n</details>"),
        markdown("## Formula card\n\n| what | formula |\n|---|---|\n| c | $d$ |"),
        markdown("## 2.2 Deeper: more\n\nThis is for readers, and no slide of a lecture shows it."),
    ]
    deck = Deck({"cells": cells}, "toy")
    assert [slide.kind for slide in deck.slides] == ["idea", "equation", "picture", "picture", "question", "question", "end"]
    title, equation, picture, table, predicted, spotted, card = deck.slides
    assert "Short words" in title.shown[0]
    assert equation.body.index("opens this section") < equation.body.index("(2.98)")
    assert "So the weights are" not in equation.body
    assert "We look at [exercises]" in "".join(equation.notes)
    assert "(2.98)" in equation.shown[0]
    assert equation.said == ["It follows that", "End."], "which is no claim"
    assert "<div><svg></svg></div>" in picture.shown[0]  # a section would be a slide
    assert ["These count" in table.body, "<table>" in table.body] == [True, True]
    question, seen, *later = predicted.shown
    assert re.sub("</?b[^>]*>", "", seen) == '<pre style="--columns:8"><span>print(1)</span></pre>'  # the words point at it
    assert "<strong>Predict</strong>" in question
    assert ["42" in later[0], "Forty-two" in later[1]] == [True, True]
    assert all(part.startswith('<div class="fragment">') for part in (*later, spotted.shown[1]))
    assert "<table>" in card.shown[0]
    page = deck.page()
    assert page.count("<section") == len(deck.slides)
    assert "<td>First</td>\n<td>5</td>" in page.partition("</section>")[0].partition("notes")[2], "minutes are not for the room"
    assert 'href="../work' not in page
    assert "readers" not in page


def test_a_root_in_a_formula_is_no_picture_to_stand_beside_a_question():
    deck = Deck({"cells": [markdown("# 02 A lesson\n\nShort.")]}, "toy")
    asked = deck.html(r"**Predict** $\sqrt{d_k}$.")
    assert "<svg" in asked
    assert not _is_picture(asked)
    assert _is_picture(asked + "<figure><svg></svg></figure>")


def test_a_low_picture_has_words_above_it_and_another_the_slide_to_itself_and_a_question_too():
    cells = [
        markdown("# 02 A lesson\n\nShort words.\n\nMore."),
        markdown("## 2.1 First\n\nThis opens the section, with the words that a slide shows."),
        code("draw()", html='<figure><svg viewBox="0 0 400 200"></svg></figure>'),
        markdown("## 2.2 Second\n\nWhat does the second section ask, with this picture?"),
        code("draw()", html='<figure><svg viewBox="0 0 400 100"></svg></figure>'),
        markdown("## 2.3 Third\n\nSome go on, as others do in the third section.\n\nSo **Predict** it."),
        code("show()", "predicted", printed="a  1\nb  2\nc  3\nd  4"),
    ]
    deck = Deck({"cells": cells}, "toy")
    _, high, low, listed = deck.slides
    assert ["opens the section" in high.body, "opens the section" in "".join(high.notes)] == [False, True]
    assert "ask, with this picture?" in low.body
    assert listed.body.index("Predict") < listed.body.index("</div><div>") < listed.body.index("d  4"), "beside its question"


@pytest.mark.parametrize("words", ["With $c = 1$:", "This is our lemma:", "Here $i$ is first:", "If only $z$ rises, it is $s$, and"])
def test_words_cut_loose_stand_on_no_slide(words):
    cells = [
        markdown("# 02 A lesson\n\nShort words.\n\nMore."),
        markdown(f"## 2.1 First\n\nThe section opens with a sentence of its own. {words}\n\n$$\\boxed{{c = d}} \\tag{{2.98}}$$"),
        markdown("## 2.2 Second\n\nSo it is the sum of these:\n\n$$\\boxed{c = d} \\tag{2.99}$$"),
    ]
    _, first, second = Deck({"cells": cells}, "toy").slides
    assert ["sentence of its own" in first.body, first.said, "It is the sum" in second.body] == [True, [words], False]


def test_a_wide_picture_stands_below_its_words_and_a_lone_sentence_above_its_code_or_in_the_notes():
    two, three = "work()\nrest()", "import numpy as np\n\n\ndef work():\n    x = 1\n\n\n    return x"
    cells = [
        markdown("# 02 A lesson\n\nShort words.\n\nMore."),
        markdown("## 2.1 First\n\nThis opens the section, with the words that a slide shows."),
        code("draw()", html='<figure><svg viewBox="0 0 400 100"></svg></figure>'),
        markdown("## 2.2 Second\n\nThis also opens a section, and nothing else of it is shown."),
        code(three),
        markdown("## 2.3 Third\n\nThis opens one more, of which there is nothing to be seen."),
        code(two),
    ]
    deck = Deck({"cells": cells}, "toy")
    _, wide, program = deck.slides
    assert wide.body.index("opens the section") < wide.body.index("<svg")
    assert program.body.endswith(
        '<span><b class="k">def</b> <b class="f">work</b>():</span><span>    x = <b class="m">1</b></span>'
        '<span></span><span>    <b class="k">return</b> x</span></pre>'
    )
    assert "one more" in "".join(program.notes)


def test_a_picture_whose_claim_is_the_title_has_words_that_name_what_they_are_about():
    plot = {"output_type": "display_data", "data": {"image/svg+xml": PLOT, "text/plain": "[figure] A line."}, "metadata": {}}
    drawn = code("draw()")
    drawn["outputs"].append(plot)
    cells = [
        markdown("# 02 A lesson\n\nShort words.\n\nMore."),
        markdown("## 2.1 The head\n\nIt has more than eight words, which need the heading.\n\nMost pairs are new. They are striped:"),
        drawn,
        markdown("### Spot the mistake\n\nIs it 43?\n\n<details><summary>No</summary>\n\nIt is less.\n\n</details>\n\nSo it is $x$."),
        code("one()  # " + "long " * 20 + "\n" + "two(3, 4)" * 9, "predicted", printed="42"),
    ]
    _, picture, spotted = Deck({"cells": cells}, "toy").slides
    assert [picture.title, "heading" in picture.body, "Most pairs are new. They are" in picture.body] == ["It falls", False, True]
    assert [spotted.kind, spotted.heading, "It is less" in spotted.shown[1]] == ["question", "The head", True]
    lines = _code(cells[-1]).split("\n")
    assert [lines[0][:6], lines[1]] == ["# long", "one()"], "a remark stands above a line that is too long"


PLOT = (
    '<svg width="9" height="5" viewBox="0 0 400 150"><text x="4.32" y="17.07" style="font-weight:700;font-size:12.25px">It falls</text>'
    '<text x="1" y="50">3</text></svg>'
)


def test_what_a_picture_claims_is_its_title_and_what_leaves_no_room_goes_on_on_the_next_slide():
    plot = {"output_type": "display_data", "data": {"image/svg+xml": PLOT, "text/plain": "[figure] A line."}, "metadata": {}}
    predicted = code("draw()", "predicted", printed="42")
    predicted["outputs"].append(plot)
    long = "class C:\n" + "\n\n".join(f"    def f{n}(x):\n" + "        x = x + 1\n        return x" for n in range(6))
    cells = [
        markdown("# 02 A lesson\n\nShort words.\n\nMore."),
        markdown("## 2.1 First\n\nShort.\n\nSo **the sum of all weights is 1**:\n\n$$a = b \\tag{2.1}$$"),
        markdown("**Predict** whether it falls."),
        predicted,
        markdown("<details><summary>What came out</summary>\n\nYes, it does.\n\n</details>", "answer"),
        markdown("## 2.2 Second\n\nHere is all of it:"),
        code(long),
        code("draw()", html="<figure><svg></svg><figcaption>The machine of attention. Keys answer. And more.</figcaption></figure>"),
    ]
    deck = Deck({"cells": cells}, "toy")
    _, equation, question, picture, first, second, machine = deck.slides
    assert [equation.kind, equation.title] == ["alive", "The sum of all weights is 1"]
    assert equation.body.index("(2.1)") < equation.body.index("attn-explorable")  # the equation and its card
    assert [question.title, picture.title] == ["", "It falls"]  # which would give the answer away
    assert ["42" in question.body, "<img" in question.body] == [True, False]
    assert question.body.index("42") < question.body.index("Yes, it does")
    assert 'data-viewBox="0 22.07 400 127.93"' in picture.body
    assert [part.body.count('<b class="f">f') for part in (first, second)] == [3, 3], "of the same height"
    assert second.body.strip().startswith(
        '<pre style="--columns:17"><span class="again">class C:</span><span>    <b class="k">def</b> <b class="f">f3</b>'
    )
    assert [machine.title, "figcaption" in machine.body, machine.said] == ["Keys answer", False, ["And more."]]


def test_code_that_has_room_in_smaller_letters_is_not_cut():
    whole = "class C:\n" + "\n\n".join(f"    def f{n}(x):\n" + "        x = x + 1\n" * 2 + "        return x" for n in range(4))
    cells = [markdown("# 02 A lesson\n\nShort words.\n\nMore."), markdown("## 2.1 First\n\nHere is all of it:"), code(whole)]
    _, slide = Deck({"cells": cells}, "toy").slides
    assert (slide.body.count('<pre class="fine"'), slide.body.count('<b class="f">f')) == (1, 4)


def test_parts_of_code_that_do_not_stand_together_on_a_slide_stay_apart():
    assert _parts("a = 1\n\nb = 2", _high("a = 1")) == ["a = 1", "b = 2"]


def test_a_title_keeps_the_words_behind_a_quote_and_a_long_caption_gives_it_its_first_clause():
    plot = _drawn("A line.", PLOT.replace("It falls", 'No sentence joins "curious" with the cat'))
    assert _claimed(plot)[0] == "No sentence joins “curious” with the cat"
    caption = f"The softmax stands between scores and values, so {'very ' * 20}many numbers have to be made."
    title, picture, more = _claimed(f"<figure><svg></svg><figcaption>{caption}</figcaption></figure>")
    assert [title, "figcaption" in picture, more[:9]] == ["The softmax stands between scores and values", False, "Very very"]


def test_what_came_out_and_leaves_no_room_for_its_answer_goes_with_it_to_the_next_slide():
    cells = [
        markdown("# 02 A lesson\n\nShort words.\n\nMore."),
        markdown("## 2.1 First\n\nShort.\n\n**Predict** the lines."),
        code("show()", "predicted", printed="\n".join(["a line that is longer than thirty letters"] * 12)),
        markdown("<details><summary>What came out</summary>\n\nAll are alike.\n\n</details>", "answer"),
    ]
    _, question, seen = Deck({"cells": cells}, "toy").slides
    assert ["fragment" in question.body, "fragment" in seen.body] == [False, False]
    assert seen.body.index("a line") < seen.body.index("All are alike")


def test_code_has_colours_and_a_long_table_becomes_two():
    assert _program('if x: "a"  # b') == (
        '<pre style="--columns:14"><span><b class="k">if</b> x: <b class="s">&quot;a&quot;</b>  <b class="c"># b</b></span></pre>'
    )
    rows = [f"| {n} | $x$ |" for n in range(5)]
    assert _halves("\n".join(["| a | b |", "|---|---|", *rows]))[1] == "\n".join(["| a | b |", "|---|---|", *rows[3:]])


@pytest.mark.browser
@pytest.mark.parametrize("lesson", ["gradients", "self_attention", "linear"])
def test_no_slide_scrolls_or_is_drawn_smaller_and_all_have_one_room(lesson: str, tmp_path: Path):
    write_slides(ROOT, lesson, tmp_path)
    with open_page(required_browser(), tmp_path / "profile") as browser:
        page = browser.page
        page.set_viewport_size({"width": 1280, "height": 720})
        page.goto((tmp_path / f"{lesson}.html").as_uri())
        page.wait_for_function("window.Reveal?.isReady()")
        page.evaluate("document.fonts.ready")
        for place in range(1, page.evaluate("Reveal.getTotalSlides()")):
            page.evaluate(f"Reveal.slide({place})")
            seen = page.evaluate(LOOK)
            assert [seen["scrolls"], seen["spills"], seen["size"] >= 1] == ["", False, True], (place, seen)
            assert round(seen["top"]) == 143 or seen["kind"] == "alive", "below a title"
            assert set(seen["text"]) <= {34, 42, 44, 54}, (place, seen)
            assert seen["off"] <= 4, (place, seen, "words begin at one height")
            assert seen["hints"] == (seen["kind"] == "question"), "an empty frame says that an answer comes"
            title = page.evaluate("document.querySelector('.present h2').textContent")
            assert title == title.strip()


@pytest.mark.browser
def test_a_deck_fits_the_screen_and_keeps_what_came_out_until_the_next_key(tmp_path: Path):
    deck = write_slides(ROOT, "softmax", tmp_path / "deck")
    with open_page(required_browser(), tmp_path / "profile") as browser:
        page = browser.page
        page.set_viewport_size({"width": 1280, "height": 720})
        page.goto((tmp_path / "deck" / "softmax.html").as_uri())
        page.wait_for_function("window.Reveal?.isReady()")
        seen = [page.evaluate(LOOK)]
        while not page.evaluate("Reveal.isLastSlide() && !Reveal.availableFragments().next"):
            page.keyboard.press("Space")
            seen.append(page.evaluate(LOOK))
        faults = [one for one in seen if max(one["height"], one["bottom"]) > 720 or one["width"] > 1280]
        faults += [one for one in seen if one["out"] or one["scrolls"] or one["spills"]]
        assert faults == []
        assert [slide.heading for slide in deck.slides if "data-" in slide.heading] == []
        assert min(one["size"] for one in seen) > 0.7
        assert {size for one in seen for size in one["text"]} <= {34, 42, 44, 54}, "one for each kind of words"
        assert min(one["margin"] for one in seen) >= 8, "the bar of a question stands clear of the arrow"
        assert {size for one in seen for size in one["code"]} <= set(range(20, 31)), "a line of 88 letters is not broken"
        assert min(one["plot"] for one in seen) >= 18
        assert min(one["letters"] for one in seen) >= 16  # the last row reads them
        rooms = {(one["kind"], round(one["top"])) for one in seen[1:] if one["kind"] != "alive"}
        assert len(rooms) == len(dict(rooms)), "what is shown has the same room on every slide of its kind"
        assert max(one["off"] for one in seen[1:]) <= 4, "words begin at one height"
        asked = [one["open"] for one in seen if one["kind"] == "question"]
        assert [False, False] in asked
        assert [True, True] in asked
        assert len(seen) > len(deck.slides) >= 12
        assert page.locator("section.alive [data-form]").count() > 10  # mistakes to press
        assert page.evaluate("Reveal.getSlideNotes(Reveal.getSlide(3))").count("<math") > 0
        for place, slide in enumerate(deck.slides):
            if slide.kind == "alive":
                page.evaluate(f"Reveal.slide({place})")
                assert page.locator("section.present [data-mistake][aria-pressed=true]").count() == 0, f"opens as printed: {slide.heading}"
                sizes = page.evaluate(NUMBERS)
                for mistake in page.locator("section.present [data-mistake]").all():
                    mistake.click()
                    page.wait_for_timeout(50)
                    assert page.evaluate(LOOK)["bottom"] <= 720, slide.heading
                    assert page.evaluate(NUMBERS) == sizes, f"nothing shrinks when a mistake is pressed: {slide.heading}"
                assert page.evaluate(CLEAR) >= 10, f"the verdict stands clear of the buttons: {slide.heading}"
        page.keyboard.press("d")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(13, 17, 23)", "in a dark room"
        assert browser.complaints == []
        assert [url for url in browser.elsewhere if not url.startswith("file:")] == []

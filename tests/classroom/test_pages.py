"""Pages for students and teachers: complete, and inert whatever a student wrote."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from urllib.parse import unquote

import pytest

from attn_course.classroom import pages
from attn_course.classroom.class_page import class_page, hardest, mistakes, runs
from attn_course.classroom.feedback import feedback_page
from attn_course.classroom.hand_ins import Class
from attn_course.classroom.marks import Marked
from attn_course.classroom.pages import sentence
from attn_course.figures.drawing import contrast
from attn_course.numbers import cite, eq, lesson_number, lessons
from attn_course.tasks import all_tasks, get_task
from attn_course.tasks.core import Verdict
from tests.classroom.class_tools import SOFTMAX_POINTS, Room

HOSTILE = ['<script>alert("x")<', "<img src=x onerror=alert(1)>", "\"><svg onload='alert(1)'>", "</title><script>alert(2)<", "&lt;b&gt;"]


class Reader(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.text = [], [], ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.text += data


def is_inert(text):
    page = Reader(text)
    allowed = {"html", "head", "meta", "title", "style", "body", "main", "h1", "h2", "h3", "p", "b", "code", "div", "section", "ul", "li"}
    allowed |= {"picture", "source", "table", "tr", "th", "td", "figure", "figcaption", "details", "summary", "img", "pre", "a", "span"}
    allowed |= {"math", "mrow", "mi", "mo", "mn", "mtext", "msub", "msup", "msubsup", "mfrac", "munderover", "munder", "mover", "mspace"}
    allowed |= {"var", "sub", "sup", "i"}
    sources = [value for name, value in page.attributes if name in ("src", "href", "data", "action", "srcset")]
    return (
        set(page.tags) <= allowed
        and not any(name.startswith("on") for name, _ in page.attributes)
        and all(
            source.startswith("data:image/svg+xml;base64,") or re.fullmatch(r"(feedback/[^:]*\.html)?(#[a-z-]+)?", source)
            for source in sources
        )
        and "default-src 'none'" in text
    )


def test_the_check_for_inert_pages_can_fail():
    def with_body(html):
        text = '{% extends "page.html" %}{% block body %}' + html + "{% endblock %}"
        return pages.environment().from_string(text).render(title="title")

    assert is_inert(with_body("<p>text</p>"))
    for bad in ("<script>1</script>", '<p onclick="x">a</p>', '<img src="http://x/y.png">', "<iframe></iframe>"):
        assert not is_inert(with_body(bad))


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """A graded class of students who are called and write as in HOSTILE, of one who did well, and of files that look alike or are none."""
    room = Room(tmp_path_factory.mktemp("class"))
    for text in HOSTILE:
        name = text.replace("/", "\u2215")
        room.hand_in(name, f"{name}/{name}.ipynb", words=f"say {text} note {text}")
    room.hand_in("bea", right="1 3", words="say less < more & more")
    for name in ("02_softmax.ipynb", "02_softmax.IPYNB", "02_Softmax.ipynb", "\udcff" * 200 + ".ipynb", "02_softmax.ipynb.txt"):
        room.hand_in("cy", name)
    room.grade()
    return room


def page(room, name):
    return (room / "out" / name).read_text()


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_names_and_words_are_shown_and_do_nothing(graded, text):
    name = text.replace("/", "\u2215")
    feedback = page(graded, f"feedback/{name}/{name}/{name}.html")
    for html in (feedback, page(graded, "class.html")):
        assert is_inert(html)
        assert name in Reader(html).text
    assert text in Reader(feedback).text


def test_feedback_says_everything_about_every_task(graded):
    text = Reader(page(graded, "feedback/bea/02_softmax.html")).text
    assert "bea · 02_softmax.ipynb" in text
    assert f"5 of {SOFTMAX_POINTS} points" in text
    tasks = all_tasks("softmax")
    for task in tasks:
        assert f"{task.number} {task.title.replace('`', '')}" in text
        if task.equation:
            assert eq(task.equation) in text
        known, failed = task.wrong[0], task.id not in ("stable-softmax", "log-softmax-derivative")
        assert (known.name.replace("`", "") in text) == failed
        hint = sentence(cite(known.hint), task.entry).split("`")
        said = ((pages.typeset(part) if "\\" in part else part) if at % 2 else pages.mathematics(part) for at, part in enumerate(hint))
        assert (Reader("".join(said)).text in text) == failed
    assert r"\ln" not in re.sub(r"(?s)Your answer.*?(?=Eq\. )", "", text)
    counts = [text.count(words) for words in ("less < more & more", "✗ not right", "✓ Passed")]
    assert counts == [2 * (len(tasks) - 2), len(tasks) - 2, 1]  # as the diagnosis, and as the answer that stands below it
    assert text.count("Your answer") == len(tasks) - 2
    assert text.rindex("✗ not right") < text.index("✓ Passed"), "what is left to do comes first"


def test_a_formula_is_typeset_and_what_it_quotes_is_escaped():
    told = Verdict("stable-softmax", "Title", False, 0, 1, "it is wrong", formula=r"\frac{e^{z_i}}{\text{<script>}}")
    text = feedback_page(Marked("ann", "", "02.ipynb", "softmax", "graded", (told,)))
    assert is_inert(text)
    assert "<mfrac>" in text
    assert "&lt;script&gt;" in text
    assert pages.typeset(r"\unknown{<b>}") == r"<code>\unknown{&lt;b&gt;}</code>"


def test_a_message_and_an_answer_in_latex_are_typeset_and_an_answer_that_cannot_be_read_stands_alone():
    told = Verdict("stable-softmax", "Title", False, 0, 1, "the first wrong number, [0], is -0.5 and should be 0.25; s_i is a weight")
    text = feedback_page(
        Marked("ann", "", "02.ipynb", "softmax", "graded", (told,), answers={"stable-softmax": 'mine = r"\\frac{a}{<b>}"'})
    )
    assert "<var>s</var><sub><var>i</var></sub>" in text
    assert "<mfrac><mi>a</mi><mrow><mo>&lt;</mo><mi>b</mi><mo>&gt;</mo></mrow></mfrac></math></p>\n<details><summary>" in text
    assert [pages.answered(code) for code in (r'x = r"\frac{a"', r'x = r"\begin{none}"', 'x = "a"', "x = 1")] == [""] * 4


def test_two_numbers_stand_below_each_other_point_below_point_and_the_head_leads_to_each_task():
    said = "this is the mistake “m”. The first wrong number, element [0], is -0.5 and should be 10.25; the largest error is 11. It is `x`."
    told, passed = verdict("stable-softmax", "m"), verdict("entropy-by-hand")
    text = feedback_page(Marked("ann", "", "02.ipynb", "softmax", "graded", (replace(told, message=said), passed)))
    assert is_inert(text)
    assert re.findall("<tr><th.*?>(.*?)</th><td>(.*?)</td>", text) == [
        ("Got", "−0.5"),
        ("Should be", "10.25"),
        ("Where", "First at element [0]; the largest error is 11"),
    ]
    assert re.findall(r'<p class="said">(It is .*?)</p>', text) == ["It is <code>x</code>."]
    (marks,) = re.findall('<ul class="marks" style="--row: 2">(.*?)</ul>', text)
    assert re.findall('href="#(.*?)" .*?</span>(.)<', marks) == [("stable-softmax", "✗"), ("entropy-by-hand", "✓")]
    assert pages.compared("It is nan and should be 1.5, for n = 3.")[1] == [("Got", "nan"), ("Should be", "1.5")]
    assert pages.compared("The line before is 0.5, and this one 0.25 at i = 1, for n = 3.")[1:3] == (
        [("The line before", "0.5"), ("This line", "0.25")],
        "at i = 1, for n = 3",
    )
    assert pages.compared("it is 0.5.") == ("it is 0.5.", [], "", "")


def test_feedback_leads_to_the_equation_on_the_site_and_opens_it_at_the_mistake():
    told = Verdict("stable-softmax", "Title", False, 0, 1, "it is wrong", mistake="no maximum", equation="softmax")
    marked = Marked("ann", "", "02.ipynb", "softmax", "graded", (told,))
    assert 'href="https://course.org/eq/softmax.html#wrong=no%20maximum"' in feedback_page(marked, "https://course.org/")
    hinted = replace(marked, verdicts=(replace(told, hint=f"divide by all, {eq('softmax')}"),))
    (named,) = re.findall(r'<p class="hint">.*?</p>', feedback_page(hinted, "https://course.org/"), re.DOTALL)
    assert named.count(eq("softmax")) == named.count("<a ") == 1, "an equation that the hint names is not named again"
    assert "://" not in feedback_page(marked)


def test_a_notebook_that_was_not_begun_has_one_box_that_says_where_to_begin():
    tasks = all_tasks("softmax")
    blank = [Verdict(task.id, task.title, False, 0, task.points, f"task {task.number} has no answer yet") for task in tasks]
    text = feedback_page(Marked("ann", "", "02.ipynb", "softmax", "graded", tuple(blank)))
    assert text.count("<section") == 1
    assert f"Begin with: task {tasks[0].number}" in Reader(text).text.replace("\n", " ")
    assert text.count("<li id=") == len(tasks)
    failed = Verdict(tasks[0].id, tasks[0].title, False, 0, tasks[0].points, "it is wrong")
    text = feedback_page(Marked("ann", "", "02.ipynb", "softmax", "graded", (failed, *blank[1:])))
    assert text.index("✗ not right") < text.index("○ Not answered")
    assert "Begin with" not in text
    assert f'Next:</b> <a href="#{tasks[0].id}">task {tasks[0].number}' in text
    passed = Verdict(tasks[0].id, tasks[0].title, True, 3, 3, "right")
    wrong = Verdict(tasks[2].id, tasks[2].title, False, 0, 1, "it is wrong")
    text = feedback_page(Marked("ann", "", "02.ipynb", "softmax", "graded", (passed, blank[1], wrong, *blank[3:])))
    assert f"Next: task {tasks[1].number}" in Reader(text).text.replace("\n", " "), "the first that is wrong or open"


def test_an_answer_is_coloured_as_its_author_wrote_it_without_the_markers_around_it():
    told = Verdict("stable-softmax", "Title", False, 0, 1, "it is wrong")
    code = "def f(x):\n    ### BEGIN SOLUTION\n    return x < '<b>'  # ### BEGIN SOLUTION\n    ### END SOLUTION"
    text = feedback_page(Marked("ann", "", "02.ipynb", "softmax", "graded", (told,), answers={"stable-softmax": code}))
    assert is_inert(text)
    shown = re.search("<pre>(.*?)</pre>", text, re.DOTALL)[1]
    assert Reader(shown).text == "def f(x):\n\n    return x < '<b>'  # ### BEGIN SOLUTION\n"
    assert '<i class="word">return</i>' in shown


def test_the_class_report_has_a_row_for_each_student_that_leads_to_the_feedback(room):
    room.with_students(2)
    room.hand_in("s01", right="1")
    (room / "in" / "zoe").mkdir()
    room.grade()
    grid = re.search(r'<table class="grid"[^>]*>(.*?)</table>', page(room, "class.html"), re.DOTALL)[1]
    rows = [re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row, re.DOTALL) for row in re.split("<tr[^>]*>", grid)[1:]]
    assert rows[0] == ["Student", "Points", *(task.number for task in all_tasks("softmax"))]
    named = {re.sub("<.*?>", "", row[0]): row for row in rows[1:]}
    assert [re.sub("<.*?>", "", cell) for cell in named["s01"][2:4]] == ["✓", "✗"]
    assert {*named["zoe"][2:]} == {"–"}
    right = [f"{int(task.number == '2.1')}/2" for task in all_tasks("softmax")]  # of the notebooks that were judged
    assert [re.sub("<.*?>", "", cell) for cell in rows[-1]] == ["Right", "", *right]
    for place, task in re.findall('href="([^"#]*)#?([^"]*)"', grid):
        feedback = (room / "out" / unquote(place)).read_text()
        assert not task or f'id="{task}"' in feedback
    assert "href" in named["s01"][0]
    assert "href" not in named["zoe"][0]


def test_no_two_pages_have_one_name_and_that_of_a_notebook_that_was_not_judged_says_why(graded):
    found = [path.name.lower() for path in (graded / "out" / "feedback" / "cy").iterdir()]
    assert len(set(found)) == len(found) == 5
    assert max(len(name.encode()) for name in found) <= 255
    text = Reader(page(graded, "feedback/cy/02_softmax.ipynb.txt.html")).text
    assert "its name must end in .ipynb" in text
    assert f"0 of {SOFTMAX_POINTS} points" in text


def shown_of(*verdicts):
    return Reader(feedback_page(Marked("ann", "", "02.ipynb", "softmax", "graded", verdicts))).text


def test_a_page_says_each_thing_once_in_sentences_and_an_equation_by_its_number():
    said = "this is “no maximum subtracted” in the case “c”."
    told = Verdict("stable-softmax", "Title", False, 0, 1, said, "no maximum subtracted", "exp overflows")
    text = shown_of(told, Verdict("entropy-by-hand", "Title", False, 0, 1, "it is wrong", "another", None))
    assert text.count("no maximum subtracted") == 1
    for part in (f"T{said[1:]}", "It is wrong", "Known mistake: another", "Hint: exp overflows"):
        assert part in text
    hint = get_task("log-softmax-derivative").hints[0]
    (role,) = re.findall("{eq}`[^`]*`", hint)
    text = shown_of(Verdict("log-softmax-derivative", "Title", False, 0, 1, "it is wrong"))
    assert sentence(hint.replace(role, eq(role[5:-1]))).replace("`", "") in text
    assert "{eq}" not in text


def test_after_an_error_of_form_the_page_gives_no_hint_and_what_is_true_stands_in_it():
    told = "my_softmax is not right in the case “c”. Its numbers are right; it lacks an axis of length 1."
    text = shown_of(Verdict("stable-softmax", "Title", False, 0, 1, told, None, ""))
    assert told in text
    assert "Hint:" not in text


NAMES_AND_FORMULAS = """my_update has no answer yet|`x` feeds three maps|d_k counts|lse(z) is|x[0] is|np.exp(x) is
shares = np.exp(lses)|plain / 2|s (1 - s) is|t_1 + 9|exp overflows|dQ lacks|e^c is|p' = p|1 - t||-inf|<script>|Done|(x w)^T is"""


def test_a_text_begins_with_a_capital_unless_with_a_name_or_a_formula():
    kept = NAMES_AND_FORMULAS.replace("\n", "|").split("|")
    assert [sentence(text, "twice") for text in kept] == kept
    assert sentence("twice is not twice_as much, `twice(x)` is", "twice") == "`twice` is not twice_as much, `twice(x)` is"
    for text in ("this is “no scale”", "a position", "entry (0, 2)", "below -104 it", "additive: two", "queries, keys", "wrong"):
        assert sentence(text) == text[0].upper() + text[1:]


def test_the_class_report_says_what_comes_first_which_tasks_are_hard_and_what_to_look_at(room):
    room.with_students(1, "calm").grade("quiet", submissions="calm")
    text = (room / "quiet" / "class.html").read_text()
    for part in ("Nothing: every notebook was there", "Students <b>1</b></p>", "(1 notebook under “full”)"):
        assert part in text
    room.with_students(4)
    room.hand_in("s01", right="1", words="note code cell 3 was changed")
    (room / "in" / "zoe").mkdir()
    done = room.grade()
    assert is_inert(page(room, "class.html"))
    shown = Reader(page(room, "class.html"))
    assert "code cell 3 was changed" in shown.text
    assert re.search(r"zoe\s*softmax\s*missing", shown.text)
    assert "sandbox: full (a stand-in) (4 notebooks under “full”)" in shown.text
    tasks = all_tasks("softmax")
    assert hardest(done.marked)[0] == (f"2.4 {tasks[3].title}", 0, 4)  # zoe, who handed nothing in, makes no task hard
    assert hardest(done.marked)[-1] == (f"2.1 {tasks[0].title}", 3, 4)
    mistake, count = mistakes(done.marked)[0]
    assert count == 4
    words = " ".join(shown.text.split())
    assert f"Commonest mistake {mistake.replace('`', '')} 4 students" in words
    assert re.search(rf"2.4 {tasks[3].title} ?0 of 4 ?[^;]*: 4 students", words)


def about(**changed):
    return {"lessons": ["softmax"], "due": None, "sandbox": "full", "version": "0", "seed": 1} | changed


def test_the_distribution_of_marks_stands_where_the_grid_is_too_long_to_see_at_a_glance():
    for count in (19, 20):
        shares = [0.0, 0.55, 0.6, 1.0] + [0.3] * (count - 4)
        judged = [Verdict("stable-softmax", "Title", share == 1, share, 1, "said") for share in shares]
        marked = [Marked(f"s{n:02d}", "", "", "softmax", "graded", (one,)) for n, one in enumerate(judged)]
        text = class_page(Class(tuple(each.student for each in marked), (), ()), marked, about())
        shown = re.findall(r"<td>(\d+ to \d+) %</td><td>.*?(\d+)</td>", text)
        students = {0: 1, 3: 16, 5: 1, 6: 1, 9: 1}
        assert shown == [(f"{10 * n} to {10 * n + 10}", str(students.get(n, 0))) for n in range(10) if count == 20]


def test_one_table_holds_all_chapters_and_what_asks_for_a_look_leads_to_the_feedback():
    two = {"softmax": "stable-softmax", "scaling": "cosine-scores"}
    all_four = [Marked(who, "week 1", "a.ipynb", slug, "graded", (verdict(task),)) for who in ("ann", "bob") for slug, task in two.items()]
    marked = all_four[:3]
    marked[0] = replace(marked[0], notes=("code cell 3 was changed",))
    text = class_page(Class(("ann", "bob"), (), ()), marked, about(lessons=[*two]), {"feedback/ann/a.html": marked[0]})
    (grid,) = re.findall(r'<table class="grid"[^>]*>(.*?)</table>', text, re.DOTALL)
    assert re.findall("[✓–]", grid) == ["✓", "✓", "✓", "–"]
    assert '<a href="feedback/ann/a.html">week 1</a></td><td>note</td><td>a.ipynb: code cell 3 was changed' in text


def verdict(task, mistake=None):
    return Verdict(task, "Title", not mistake, 0, 1, "said", mistake)


def test_a_task_is_hard_for_those_whose_notebook_was_judged():
    tasks = ("stable-softmax", "entropy-by-hand", "repair-softmax-temperature")
    marked = [
        Marked("ann", "", "", "softmax", "graded", tuple(map(verdict, tasks, (None, "m", "m")))),
        Marked("bob", "", "", "softmax", "graded", tuple(map(verdict, tasks, (None, None, "m")))),
        Marked("eve", "", "", "softmax", "duplicate", tuple(map(verdict, tasks, ("m", "m", "m")))),
        Marked("ida", "", "", "softmax", "missing", tuple(map(verdict, tasks, ("no", "no", "no")))),
        Marked("ugo", "", "", "softmax", "not judged", tuple(map(verdict, tasks, ("no", "no", "no")))),
    ]
    assert hardest(marked) == [("2.5 Title", 0, 2), ("2.2 Title", 1, 2), ("2.1 Title", 2, 2)]


def test_mistakes_are_counted_by_students_and_sorted_by_task_as_numbers():
    in_order = ["repair-softmax-temperature", "repair-decoupled-scores", "latent-decoding-step", "repair-decay-gate"]
    temperature, scores, step, gate = in_order
    weeks = [
        ("ann", "week 1", {temperature: "late", gate: "early", step: "more", scores: "less"}),
        ("ann", "week 2", {temperature: "late", "read-interference": "two"}),
        ("bob", "week 1", {temperature: None, "read-interference": "two"}),
    ]
    marked = [Marked(who, week, "", "softmax", "graded", tuple(verdict(*each) for each in made.items())) for who, week, made in weeks]
    once = [(f"{get_task(task).number} {weeks[0][2][task]}", 1) for task in in_order]
    assert mistakes(marked) == [(f"{get_task('read-interference').number} two", 2), *once]


def test_chapters_in_a_row_are_named_by_their_ends():
    for numbers, text in {"2": "2", "2 3": "2, 3", "0 1 2": "0–2", "0 2 3 4 9 10 11 12": "0, 2–4, 9–12", "": ""}.items():
        assert runs([slug for slug in lessons() if lesson_number(slug) in numbers.split()]) == text


def test_colours_can_be_read_in_light_and_dark():
    light, dark = re.findall(r":root \{(.*?)\}", (pages.TEMPLATES / "style.css").read_text(encoding="utf-8"), flags=re.DOTALL)
    for colours in (light, dark):
        value = dict(re.findall(r"--(\w+): (#\w{6})", colours))
        for front in ("ink", "soft", "good", "bad", "open", "bar", "word"):
            assert min(contrast(value[front], value[behind]) for behind in ("paper", "card")) >= 4.5

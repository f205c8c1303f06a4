"""Pages for students and teachers: complete, and inert whatever a student wrote."""

import re
from html.parser import HTMLParser

import pytest

from attn_course.figures.drawing import contrast
from attn_course.grading import page as pages
from attn_course.grading.class_marks import Marked
from attn_course.grading.class_report import hardest, mistakes, runs
from attn_course.grading.feedback import feedback_page, sentence
from attn_course.numbers import cite, eq, lesson_number, lessons
from attn_course.tasks import all_tasks
from attn_course.tasks.core import Verdict
from tests.grading.class_tools import grade, notebook, small_class

HOSTILE = ['<script>alert("x")<', "<img src=x onerror=alert(1)>", "\"><svg onload='alert(1)'>", "</title><script>alert(2)<", "&lt;b&gt;"]


class Reader(HTMLParser):
    """The elements and the text of a page."""

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
    """Whether a page can neither run nor load anything."""
    page = Reader(text)
    allowed = {"html", "head", "meta", "title", "style", "body", "h1", "h2", "h3", "p", "b", "code", "div", "section", "ul", "li"}
    allowed |= {"table", "tr", "th", "td", "figure", "figcaption", "details", "summary", "img"}
    sources = [value for name, value in page.attributes if name in ("src", "href", "data", "action", "srcset")]
    return (
        set(page.tags) <= allowed
        and not any(name.startswith("on") for name, _ in page.attributes)
        and all(source.startswith("data:image/png;base64,") for source in sources)
        and "default-src 'none'" in text
    )


def test_the_check_for_inert_pages_can_fail():
    assert is_inert(pages.page("title", "<p>text</p>"))
    for bad in ("<script>1</script>", '<p onclick="x">a</p>', '<img src="http://x/y.png">', "<iframe></iframe>"):
        assert not is_inert(pages.page("title", bad))


@pytest.mark.usefixtures("without_pictures")
@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_names_and_words_are_shown_and_do_nothing(tmp_path, text):
    name = text.replace("/", "\u2215")
    notebook(tmp_path / "in" / name / name / f"{name}.ipynb", words=f"say {text} note {text}")
    grade(tmp_path / "in", tmp_path / "out")
    (feedback,) = (tmp_path / "out" / "feedback").rglob("*.html")
    for path in (feedback, tmp_path / "out" / "class.html"):
        assert is_inert(path.read_text())
        assert name in Reader(path.read_text()).text
    assert text in Reader(feedback.read_text()).text


@pytest.mark.usefixtures("without_pictures")
def test_feedback_says_everything_about_every_task(tmp_path):
    notebook(tmp_path / "in" / "bea" / "02_softmax.ipynb", right="1 3", words="say less < more & more")
    grade(tmp_path / "in", tmp_path / "out")
    text = Reader((tmp_path / "out" / "feedback" / "bea" / "02_softmax.html").read_text()).text
    assert "bea · 02_softmax.ipynb · chapter 2" in text
    assert "5 of 20 points" in text
    for task in all_tasks("softmax"):
        assert f"{task.number} {task.title.replace('`', '')}" in text
        if task.equation:
            assert eq(task.equation) in text
        known = task.wrong[0]
        assert (known.name.replace("`", "") in text) == (task.id not in ("stable-softmax", "log-softmax-derivative"))
        assert (sentence(cite(known.hint), task.entry).replace("`", "") in text) == (
            task.id not in ("stable-softmax", "log-softmax-derivative")
        )
    assert text.count("less < more & more") == len(all_tasks("softmax")) - 2
    assert text.count("✓ passed") == 2
    assert text.count("✗ not right") == len(all_tasks("softmax")) - 2


def test_an_equation_that_a_hint_names_is_shown_by_its_number():
    (task,) = (task for task in all_tasks("softmax") if task.id == "log-softmax-derivative")
    (role,) = re.findall("{eq}`[^`]*`", task.hints[0])
    failed = Verdict(task.id, task.title, False, 0, 1, "it is wrong", None, None, task.equation)
    text = Reader(feedback_page(Marked("ann", "", "02.ipynb", "softmax", "graded", (failed,)))).text
    assert sentence(task.hints[0].replace(role, eq(role[5:-1])), task.entry).replace("`", "") in text
    assert "{eq}" not in text


@pytest.mark.parametrize(
    "text",
    [
        *(
            "my_update has no answer yet",
            "twice is not right",
            "`x` feeds three maps",
            "d_k counts",
            "lse(z) is",
            "x[0] is",
            "np.exp(x) is",
        ),
        *(
            "shares = np.exp(lses)",
            "plain / 2",
            "s (1 - s) is",
            "t_1 + 9",
            "exp overflows",
            "dQ lacks",
            "e^c is",
            "p' = p",
            "1 - t",
            "",
            "-inf",
        ),
        *("<script>", "Done", "(x w)^T is"),
    ],
)
def test_a_text_that_begins_with_a_name_or_a_formula_stays_as_it_is(text):
    assert sentence(text, "twice") == text


@pytest.mark.parametrize(
    "text", ["this is “no scale”", "a position", "entry (0, 2)", "below -104 it", "additive: two", "queries, keys", "wrong"]
)
def test_any_other_text_begins_with_a_capital(text):
    assert sentence(text) == text[0].upper() + text[1:]


def test_a_page_says_each_thing_once_and_in_sentences():
    told = Verdict(
        "stable-softmax", "Title", False, 0, 1, "this is “no maximum subtracted” in the case “c”.", "no maximum subtracted", "exp overflows"
    )
    other = Verdict("entropy-by-hand", "Title", False, 0, 1, "it is wrong", "another", None)
    text = Reader(feedback_page(Marked("ann", "", "02.ipynb", "softmax", "graded", (told, other)))).text
    assert "This is “no maximum subtracted” in the case “c”." in text
    assert text.count("no maximum subtracted") == 1
    assert "It is wrong" in text
    assert "Known mistake: another" in text
    assert "Hint: exp overflows" in text


@pytest.mark.usefixtures("without_pictures")
def test_a_notebook_that_was_not_judged_has_a_page_with_the_reason(tmp_path):
    notebook(tmp_path / "in" / "bea" / "02_softmax.ipynb.txt")
    grade(tmp_path / "in", tmp_path / "out")
    text = Reader((tmp_path / "out" / "feedback" / "bea" / "02_softmax.ipynb.txt.html").read_text()).text
    assert "its name must end in .ipynb" in text
    assert "0 of 20 points" in text


@pytest.mark.usefixtures("without_pictures")
def test_no_two_pages_have_one_name(tmp_path):
    for name in ("02_softmax.ipynb", "02_softmax.IPYNB", "02_Softmax.ipynb"):
        notebook(tmp_path / "in" / "bea" / name)
    notebook(tmp_path / "in" / "bea" / ("\udcff" * 200 + ".ipynb"))
    grade(tmp_path / "in", tmp_path / "out")
    found = sorted(path.name.lower() for path in (tmp_path / "out" / "feedback" / "bea").iterdir())
    assert len(set(found)) == 4
    assert max(len(name.encode()) for name in found) <= 255


def test_the_class_report_shows_three_figures_with_words_and_what_to_look_at(tmp_path):
    small_class(tmp_path / "in", 4)
    notebook(tmp_path / "in" / "s01" / "02_softmax.ipynb", right="1", words="note code cell 3 was changed")
    (tmp_path / "in" / "zoe").mkdir()
    done = grade(tmp_path / "in", tmp_path / "out")
    text = (tmp_path / "out" / "class.html").read_text()
    page = Reader(text)
    assert is_inert(text)
    alts = [value for name, value in page.attributes if name == "alt"]
    assert [alt.split()[0] for alt in alts] == ["Histogram", "Horizontal", "Horizontal"]
    assert all(page.text.count(alt) == 1 for alt in alts)
    assert "code cell 3 was changed" in page.text
    assert re.search(r"zoe\s*softmax\s*missing", page.text)
    assert "sandbox: full (a stand-in) (4 notebooks under “full”)" in page.text
    tasks = all_tasks("softmax")
    assert hardest(done.marked)[0] == (f"2.4 {tasks[3].title}", 0, 4)  # zoe, who handed nothing in, makes no task hard
    assert hardest(done.marked)[-1] == (f"2.1 {tasks[0].title}", 3, 4)
    assert mistakes(done.marked)[0][1] == 4


@pytest.mark.usefixtures("without_pictures")
def test_a_class_with_nothing_odd_says_so(tmp_path):
    small_class(tmp_path / "in", 1)
    grade(tmp_path / "in", tmp_path / "out")
    text = (tmp_path / "out" / "class.html").read_text()
    assert "Nothing: every notebook was there" in text
    assert "1 student · 1 notebook graded" in text
    assert "(1 notebook under “full”)" in text


def verdict(task, mistake=None):
    return Verdict(task, "Title", not mistake, 0, 1, "said", mistake)


def test_a_task_is_hard_for_those_whose_notebook_was_judged():
    tasks = ("stable-softmax", "entropy-by-hand", "blockwise-normaliser")
    marked = [
        Marked("ann", "", "", "softmax", "graded", tuple(map(verdict, tasks, (None, "m", "m")))),
        Marked("bob", "", "", "softmax", "graded", tuple(map(verdict, tasks, (None, None, "m")))),
        Marked("eve", "", "", "softmax", "duplicate", tuple(map(verdict, tasks, ("m", "m", "m")))),
        Marked("ida", "", "", "softmax", "missing", tuple(map(verdict, tasks, ("no", "no", "no")))),
        Marked("ugo", "", "", "softmax", "not judged", tuple(map(verdict, tasks, ("no", "no", "no")))),
    ]
    assert hardest(marked) == [("2.9 Title", 0, 2), ("2.2 Title", 1, 2), ("2.1 Title", 2, 2)]


def test_mistakes_are_counted_by_students_and_sorted_by_task_as_numbers():
    first = {
        "repair-softmax-temperature": "late",
        "repair-decay-gate": "early",
        "latent-decoding-step": "more",
        "repair-decoupled-scores": "less",
    }
    second = {"repair-softmax-temperature": "late", "read-interference": "two"}
    other = {"repair-softmax-temperature": None, "read-interference": "two"}
    weeks = [("ann", "week 1", first), ("ann", "week 2", second), ("bob", "week 1", other)]
    marked = [Marked(who, week, "", "softmax", "graded", tuple(verdict(*each) for each in made.items())) for who, week, made in weeks]
    assert mistakes(marked) == [("11.6 two", 2), ("2.5 late", 1), ("10.9 less", 1), ("10.10 more", 1), ("11.5 early", 1)]


@pytest.mark.parametrize(
    ("numbers", "text"), [((2,), "2"), ((2, 3), "2, 3"), ((0, 1, 2), "0–2"), ((0, 2, 3, 4, 9, 10, 11, 12), "0, 2–4, 9–12"), ((), "")]
)
def test_chapters_in_a_row_are_named_by_their_ends(numbers, text):
    assert runs([slug for slug in lessons() if lesson_number(slug) in map(str, numbers)]) == text


def test_colours_can_be_read_in_light_and_dark():
    light, dark = re.findall(r":root \{(.*?)\}", pages._STYLE, flags=re.DOTALL)
    for colours in (light, dark):
        value = dict(re.findall(r"--(\w+): (#\w{6})", colours))
        for front in ("ink", "soft", "good", "bad", "open"):
            assert min(contrast(value[front], value[behind]) for behind in ("paper", "card")) >= 4.5

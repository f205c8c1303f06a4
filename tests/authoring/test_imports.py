"""Which package files a notebook depends on."""

import re
import subprocess
import sys

import pytest

import attn_course
from attn_course import numbers
from attn_course.authoring.imports import LAZY, ImportGraph

FILES = {
    "__init__.py": "",
    "costs.py": "import math\n",
    "reference/__init__.py": "from attn_course.reference.softmax import softmax\nfrom .masks import causal_mask as mask\nVERSION = 1\n",
    "reference/softmax.py": "from attn_course import costs\n",
    "reference/masks.py": "",
    "figures/__init__.py": "from attn_course.figures.base import heatmap\nfrom attn_course.figures.softmax import bars\n",
    "figures/base.py": "import matplotlib\n",
    "figures/softmax.py": 'from attn_course.figures.base import heatmap\nPAGE = "explorable.html"\n',
    "figures/explorable.html": "<p>",
    "figures/cards.py": 'FOLDER = "parts"\n',
    "figures/parts/card.css": "p {}",
    "figures/parts/card.js": "start()",
    "figures/viewer.py": 'def read(kind): return f"page.{kind}"\n',
    "figures/page.css": "p {}",
    "figures/page.js": "start()",
    "equations/links.py": "def chapter_map():\n    pass\n",
    "tasks/__init__.py": "from attn_course.tasks.engine import check\n",
    "tasks/engine.py": "def check():\n    from attn_course.tasks import judge\n    judge.judge()\n",
    "tasks/judge.py": "",
    "lessons/double/tasks.py": "from attn_course import reference\nreference.mask\n",
    "lessons/other/tasks.py": "",
    "lessons/double/figures.py": "from attn_course.figures.base import a\nfrom attn_course.lessons.double import figures_more\n'cards'",
    "lessons/double/figures_more.py": "",
    "numbers.py": "x = 'lessons'",
    "lessons/double/cards/card.js": "start()",
    "lessons/other/figures.py": "x = 'cards'",
    "lessons/other/cards/card.js": "start()",
    "equations/__init__.py": "from .core import verify, verify_lesson\n",
    "equations/core.py": "",
    "lessons/double/equations_more.py": "",
    "lessons/other/equations.py": "",
    "lessons/double/equations.py": "from attn_course.equations.core import verify\n",
}


TABLES = {
    "labels": {"double": {"first": "2.1", "second": "2.2"}, "other": {"third": "3.1"}},
    "tasks": {"double": {"double-it": "2.1"}, "other": {"halve": "3.1"}},
    "slugs": {"double": {"number": 2, "title": "Double"}, "other": {"number": 3, "title": "Other"}},
}


@pytest.fixture
def graph(tmp_path):
    for name, text in FILES.items():
        path = tmp_path / "attn_course" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return ImportGraph(tmp_path, TABLES)


CASES = {
    "nothing": ("import numpy as np\nnp.exp(1)", ""),
    "a name handed on by a package": ("from attn_course.reference import softmax", "costs reference/softmax"),
    "a name handed on under another name": ("from attn_course.reference import mask", "reference/masks"),
    "a name the package defines itself": (
        "from attn_course.reference import VERSION", "costs reference/__init__ reference/masks reference/softmax",
    ),
    "an attribute of a package": ("from attn_course import figures\nfigures.heatmap(1)", "figures/base"),
    "a module and the page it names": (
        "from attn_course import figures\nfigures.bars(1)", "figures/base figures/explorable.html figures/softmax",
    ),
    "a map of all lessons": (
        "from attn_course.equations.links import chapter_map\nchapter_map()",
        "equations/links lessons/double/equations lessons/double/equations_more lessons/other/equations",
    ),
    "a map that is not called": ("from attn_course.equations.links import chapter_map", "equations/links"),
    "a module and the folder it names": ("import attn_course.figures.cards", "figures/cards figures/parts/card.css figures/parts/card.js"),
    "a module and the pages whose names it makes": ("import attn_course.figures.viewer", "figures/page.css figures/page.js figures/viewer"),
    "a module and the folder of all lessons, which it names": ("from attn_course import numbers\nnumbers.x", "numbers"),
    "the pictures of a lesson": (
        "from attn_course.lessons.double import figures\nfigures.draw(1)",
        "figures/base lessons/double/cards/card.js lessons/double/figures lessons/double/figures_more",
    ),
    "a package under a short name": ("import attn_course.reference as ref\nref.mask", "reference/masks"),
    "a package used as a value": (
        "from attn_course import figures\nprint(figures)", "figures/__init__ figures/base figures/explorable.html figures/softmax",
    ),
    "a star": ("from attn_course.reference import *", "costs reference/__init__ reference/masks reference/softmax"),
    "a module": ("import attn_course.costs", "costs"),
    "a lazy name and a task": (
        'from attn_course import check\ncheck("double-it", f)', "lessons/double/tasks reference/masks tasks/engine tasks/judge",
    ),
    "a task of another lesson": ('from attn_course import check\ncheck("halve", f)', "lessons/other/tasks tasks/engine tasks/judge"),
    "an equation": (
        'from attn_course import verify_lesson\nverify_lesson("double")',
        "equations/core lessons/double/equations lessons/double/equations_more",
    ),
    "two equations in one call": (
        'from attn_course import verify\nverify("first", "third")',
        "equations/core lessons/double/equations lessons/double/equations_more lessons/other/equations",
    ),
    "an import inside a function": ("def f():\n    from attn_course import costs\n    return costs.flops", "costs"),
    "an equation that does not exist": ('from attn_course import verify\nverify("nowhere")', "equations/core"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "files"), CASES.values(), ids=CASES)
def test_the_closure_holds_what_the_code_needs_and_no_more(graph, text, files):
    names = [path.relative_to(graph.package_root / "attn_course").as_posix().removesuffix(".py") for path in graph.closure(text)]
    assert names == files.split()


def test_a_lesson_depends_on_the_pictures_and_cards_that_it_names_only(root):
    graph = ImportGraph(root, numbers.tables())
    lessons = root / "attn_course" / "lessons"
    pictures = {*lessons.glob("*/figures*.py"), *lessons.glob("*/explorables/*")}
    slugs = {path.relative_to(lessons).parts[0] for path in pictures}
    assert len(slugs) > 10
    for slug in slugs:
        text = (root / "notebooks" / "src" / f"{slug}.py").read_text(encoding="utf-8")
        named = set(re.findall(r"^from attn_course\.lessons\.(\w+)(?:\.explorables[.\w]*)? import", text, re.MULTILINE))
        assert slug in named
        assert set(graph.closure(text)) & pictures == {path for path in pictures if path.parts[len(lessons.parts)] in named}


def test_a_lesson_that_shows_the_viewer_depends_on_its_page_and_other_cards_do_not(root):
    graph = ImportGraph(root, numbers.tables())
    viewer = {root / "attn_course" / "figures" / f"viewer.{kind}" for kind in ("css", "html", "js", "py")}
    assert viewer < {*graph.closure("from attn_course.figures.viewer import attention_viewer")}
    others = {*graph.closure("from attn_course.figures.explorable import explorable_html")}
    pages = {path.name for path in others if path.suffix != ".py"}
    assert pages == {"card.css", "card.js", "explorable.css", "explorable.js", "unpack.js"}


def test_every_page_and_table_that_lessons_can_show_is_found_beside_the_module_that_reads_it(root):
    graph, package = ImportGraph(root, numbers.tables()), root / "attn_course"
    rooms = [package / room for room in ("figures", "language", "formulas", "lessons")]
    modules = [".".join(path.relative_to(root).with_suffix("").parts) for room in rooms for path in room.rglob("*.py")]
    found = {*graph.closure("\n".join(f"import {name.removesuffix('.__init__')}" for name in modules))}
    shown = {path for room in rooms for path in room.rglob("*.*") if path.suffix not in (".py", ".pyc", ".md")}
    assert len(shown) > 50
    assert shown <= found


def test_the_lazy_names_are_those_of_the_package():
    for name, home in LAZY.items():
        assert getattr(attn_course, name).__module__.startswith(home)


LOADED = "; print(*sorted(name for name in sys.modules if name.startswith('attn_course.')))"


def loaded_by(root, text):
    """The files of the package that a fresh Python loads for real code, found in another way than by reading imports."""
    done = subprocess.run([sys.executable, "-c", f"import sys; {text}{LOADED}"], cwd=root, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return {f"{name.replace('.', '/')}.py" for name in done.stdout.splitlines()[-1].split()}


@pytest.mark.parametrize(
    "text",
    [
        "from attn_course.reference.softmax import softmax",
        'from attn_course import verify; verify("softmax"); verify("softmax-jacobian"); verify("stable-softmax")',
        'from attn_course import check; check("entropy-by-hand", 0.868)',
    ],
)
def test_whatever_a_process_loads_is_in_the_closure_or_merely_handed_on(root, text):
    """An `__init__` that hands names on loads all its files; what such a package loads by itself need not be in the closure."""
    loaded = loaded_by(root, text)
    packages = {name for name in loaded if (root / name.removesuffix(".py")).is_dir()}
    handed_on = loaded_by(root, "import " + ", ".join(sorted(name.removesuffix(".py").replace("/", ".") for name in packages)))
    found = {path.relative_to(root).as_posix() for path in ImportGraph(root, numbers.tables()).closure(text)}
    assert loaded - packages - handed_on <= found
    if "verify" in text or "check" in text:
        assert any("lessons/softmax/" in name for name in loaded - packages - handed_on)  # something is left to compare

"""The chapter table of the README says what is there, and its samples what is printed."""

import re
from pathlib import Path

from PIL import Image

from attn_course import numbers
from attn_course.authoring.course import units
from attn_course.game.alive import life_of
from attn_course.tasks import all_tasks, check
from tests.project.pictures import ALIVE, MISTAKE, refused, weights_of_last

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\| (\d\d) \| \[(.+?)\]\((notebooks/.+?)\) \| \[(\d+) tasks, (\d+) points\]\((exercises/.+?)\) \|", re.MULTILINE)

PICTURE = re.compile(
    r'<picture>(?:<source media="[^"]+" srcset="[\w/]+\.png">)*<source media="\(prefers-color-scheme: dark\)" srcset="[\w/]+_dark\.png">'
    r'<img alt="(.+?)" src="[\w/.]+"(?: width="100%")?></picture>'
)


def test_every_lesson_has_a_row_with_its_title_tasks_and_points():
    wanted = []
    for lesson, exercise in zip(
        *([unit for unit in units(ROOT) if unit.folder == folder] for folder in ("notebooks", "exercises")), strict=True
    ):
        title = re.search(r"^# # \S+ ([^:\n]+)", lesson.read_source(), re.MULTILINE).group(1)
        tasks = all_tasks(lesson.slug)
        points = sum(task.points for task in tasks)
        wanted.append((lesson.stem[:2], title, lesson.name, str(len(tasks)), str(points), exercise.name))
    assert ROW.findall((ROOT / "README.md").read_text(encoding="utf-8")) == wanted


def test_the_samples_of_a_check_are_what_it_prints(capsys):
    text = (ROOT / "docs" / "learners-guide.md").read_text(encoding="utf-8")
    (failed,) = re.findall(r'```text\ncheck\("stable-softmax", my_softmax\)\n\n(.+?)\n```', text, re.DOTALL)
    (passed,) = re.findall(r"in plain text one line: `(.+?)`", text)
    begun, rest = failed.split(" ...\n")
    said = str(refused())
    assert said.startswith(begun)
    assert said.splitlines()[1:] == rest.splitlines()
    capsys.readouterr()
    check("stable-softmax", lambda scores, axis: weights_of_last(scores.swapaxes(axis, -1), -1).swapaxes(axis, -1))
    assert capsys.readouterr().out == f"{passed}\n"


def test_the_pictures_show_what_the_cards_say():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r'"(docs/images/\w+\.png)"', text))
    assert {f"docs/images/{path.name}" for path in (ROOT / "docs" / "images").iterdir()} == named
    for light in {name for name in named if "_dark" not in name}:
        with Image.open(ROOT / light) as first, Image.open(ROOT / light.replace(".png", "_dark.png")) as second:
            assert first.size == second.size
            assert (first.width <= 820) == ("_narrow" in light), "a telephone has its own"
    looks, both, machine = PICTURE.findall(text)
    alive, red = re.fullmatch(r"(.+)\. (Task .+)", both).groups()
    assert machine.startswith("The machine of attention")
    assert "“it” gives 94 %" in looks
    assert alive.startswith(f"The formula of {ALIVE} as a card")
    assert f"“{MISTAKE}” pressed: 3 of 3 results differ" in alive
    assert MISTAKE in [form.name for form in life_of(ALIVE).forms]
    title, mistake = re.fullmatch(r"Task (.+): not right yet\. This is the mistake “(.+)”, .*", red).groups()
    verdict = refused().verdict
    assert title == f"{numbers.task_number(verdict.task)}, {verdict.title}"
    assert mistake == verdict.mistake.replace("`", "")


def test_it_fits_a_screen_but_for_what_is_folded():
    shown = re.sub(r"<details>.*</details>", "", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(PICTURE.sub("", shown).split()) < 330
    assert re.findall(r"\]\(([\w/.-]+)", shown) != []
    assert [link for link in re.findall(r"\]\(([\w/.-]+)", shown) if not (ROOT / link).exists()] == []

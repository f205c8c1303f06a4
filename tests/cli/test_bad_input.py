"""Bad input to every command: one clear line, exit code 2, nothing written."""

import pytest

from tests.classroom import toy
from tests.cli.conftest import refused, tree


def test_check_names_every_bad_file_before_it_runs_any(toy_course, attn_course):
    toy.write(toy_course / "work" / "ex_97_toy.ipynb", toy.cells({}))
    before = tree(toy_course)
    first, second = refused(attn_course("check", "work/ex_97_toy.ipynb", "a.ipynb", "b.ipynb"), toy_course, before, lines=2)
    assert "a.ipynb: no such file" in first
    assert "b.ipynb: no such file" in second


def test_a_damaged_record_is_refused_not_overwritten(toy_course, attn_course):
    toy.write(toy_course / "work" / "ex_97_toy.ipynb", toy.cells({}))
    (toy_course / "work" / ".progress.json").write_text("{")
    before = tree(toy_course)
    for words in (["check"], ["progress"]):
        (line,) = refused(attn_course(*words), toy_course, before)
        assert "work/.progress.json must be the JSON that attn-course wrote" in line


@pytest.mark.parametrize("target", ["no/such/folder/a.json", "work", "work/ex_97_toy.ipynb", ""])
@pytest.mark.parametrize("command", ["check", "progress", "doctor"])
def test_a_json_file_that_cannot_be_written_is_refused_before_any_work(command, target, toy_course, attn_course):
    toy.write(toy_course / "work" / "ex_97_toy.ipynb", toy.cells({}))
    (line,) = refused(attn_course(command, "--json", target), toy_course, tree(toy_course))
    assert "--json" in line


NONSENSE = """check --tiemout 3|check --timeout|check --timeout soon|progress surplus|progress --json|doctor surplus|--verison
formulas surplus|formulas --chapter -1|notebooks biuld|notebooks build|notebooks build --forced|notebooks check|notebooks check 97
lab --port http|lab --prot 8888"""
REFUSED = {  # words of a command line, and words of its complaint; the toy course has no sources
    "Did you mean 'check'?": ["chek"],
    "work holds no notebooks yet: attn-course lab copies the exercises there": ["check"],
    "": NONSENSE.replace("\n", "|").split("|"),
    "--timeout must be a positive number of seconds": [f"check --timeout {number}" for number in ("0", "-1", "nan", "inf")],
    "--chapter: there is no chapter": ["formulas --chapter two", "formulas --chapter 99"],
    "there is no topic or trap": ["formulas --topic Q7", "formulas --topic="],
    "it belongs to chapter devices": ["formulas --topic M3 --chapter softmax"],
    "--chapters: names none": [f"{command} --chapters ," for command in ("release --out new", "nbgrader prepare new")],
    "--chapters: there is no chapter 99; there are": [
        f"{command} --chapters 99" for command in ("release --out new", "nbgrader prepare new", "grade in --out new")
    ],
    "--chapters: there is no chapter sofmax": ["release --out new --chapters sofmax", "nbgrader prepare new --chapters sofmax"],
    "full is there already": ["release --out full"],
    "nowhere: is no folder of submissions": ["grade nowhere --out new", "similarity nowhere"],
    "Missing option '--out'": ["grade in"],
    "must not lie in the folder of the submissions": ["grade in --out in"],
    "is not empty and holds no class run": ["grade in --out full"],
    "--due: wanted a time such as": ["grade in --out new --due soon"],
    "Invalid value for '--jobs'": ["grade in --out new --jobs 0"],
    "Invalid value for '--seed'": ["grade in --out new --seed -1"],
    "--jobs and --scheduler exclude each other": ["grade in --out new --jobs 2 --scheduler tcp://x:1"],
    "threshold must lie in (0, 1]": [f"similarity in --threshold {share}" for share in ("0", "1.5", "nan")],
    "--out: wanted a .html file": ["similarity in --out page.txt", "similarity in --out no/page.html"],
    "--providers: on this device there are ours, sdpa, eager; got 'flush'": ["bench --providers flush"],
    "--lengths: there are cases of": ["bench --lengths 9"],
    "--directions: there are forward, backward, decode; got 'up'": ["bench --directions up"],
    "--report-from: there is no file no/lines": ["bench --report-from no/lines"],
    "--tiles: there is no file no/tiles": ["bench --tiles no/tiles"],
    "--json: there is no directory": ["bench --json no/out.json"],
    "--out: there is no directory": ["bench --out no/lines"],
}


@pytest.mark.parametrize(("line", "complaint"), [(line, complaint) for complaint, lines in REFUSED.items() for line in lines])
def test_a_command_line_that_makes_no_sense_gets_one_line(line, complaint, toy_course, attn_course, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    for folder in ("in/ann", "full"):
        (toy_course / folder).mkdir(parents=True)
        toy.write(toy_course / folder / "02_softmax.ipynb", toy.cells({}))
    (said,) = refused(attn_course(*line.split(" ")), toy_course, tree(toy_course))
    assert complaint in said


@pytest.mark.parametrize(
    "words", [["check"], ["progress"], ["notebooks", "build"], ["notebooks", "check"], ["doctor"], ["lab"]], ids=" ".join
)
def test_a_folder_outside_of_any_course_is_refused(words, tmp_path, monkeypatch, attn_course):
    monkeypatch.setattr("attn_course.commands.course.is_course", lambda folder: False)
    monkeypatch.chdir(tmp_path)
    (line,) = refused(attn_course(*words), tmp_path, {})
    assert "no course here" in line

"""Hand-ins as Canvas and Moodle give them out, and marks in the tables that they take back."""

import stat
import unicodedata
import zipfile

import pytest

from attn_course.classroom.desk import Papers
from attn_course.classroom.downloads import SubmissionsError, of_file, of_folder
from attn_course.classroom.gradebook import read_gradebook
from attn_course.classroom.roster import merged, read_roster
from attn_course.classroom.submission import MAX_BYTES
from attn_course.classroom.times import parse_time
from attn_course.tasks import all_tasks, get_task
from tests.classroom import platforms
from tests.classroom.stand_in import notebook

POINTS = [task.points for task in all_tasks("softmax")]
REACHED = {student: sum(POINTS[int(number) - 1] for number in right.split()) for student, right in platforms.RIGHT.items()}
NUMBER = {each[0]: each[5] for each in platforms.SIX}


def papers(room, assignment=None, **files):
    return Papers({name: (file, (room / file).read_text(encoding="utf-8")) for name, file in files.items()}, assignment)


def scaled(student):
    return round(100 * REACHED[student] / sum(POINTS), 2)


@pytest.mark.parametrize(("unpacked", "with_roster"), [(False, True), (True, False)])
def test_canvas_gets_its_gradebook_back_with_marks_and_nothing_else_changed(room, unpacked, with_roster):
    archive = platforms.canvas_zip(room / "submissions.zip", room / "workshop")
    if unpacked:
        zipfile.ZipFile(archive).extractall(room / "unpacked")
    platforms.canvas_gradebook(room / "gradebook.csv")
    platforms.roster(room / "roster.csv")
    given = papers(room, "Week 3", gradebook="gradebook.csv", **({"roster": "roster.csv"} if with_roster else {}))
    done = room.grade(submissions="unpacked" if unpacked else "submissions.zip", papers=given)
    assert {each.student for each in done.marked} == ({each[0] for each in platforms.SIX} if with_roster else set(NUMBER.values()))
    assert {each.student: each.points for each in done.marked if each.status == "graded"} == {
        student if with_roster else NUMBER[student]: points for student, points in REACHED.items()
    }
    before, after = (platforms.table(path) for path in (room / "gradebook.csv", room / "out" / "canvas.csv"))
    marks = {row["ID"]: row.pop(platforms.CANVAS_COLUMN) for row in after}
    for row in before:
        row.pop(platforms.CANVAS_COLUMN)
    assert after == before
    assert {number: float(mark) for number, mark in marks.items() if mark and number} == {NUMBER[s]: scaled(s) for s in REACHED}
    assert (marks[NUMBER["fay"]], marks["5999"]) == ("", "")
    assert f"canvas.csv: marks out of {sum(POINTS)} are scaled to the platform's 100 points" in done.found.notes
    assert [each.late for each in done.marked if each.is_late] == ["Canvas marks it as late"]


def test_moodle_gets_its_worksheet_back_with_marks_and_comments(room):
    platforms.moodle_folder(room / "in")
    platforms.moodle_worksheet(room / "worksheet.csv")
    platforms.roster(room / "roster.csv")
    done = room.grade(papers=papers(room, gradebook="worksheet.csv", roster="roster.csv"))
    before, after = (platforms.table(path) for path in (room / "worksheet.csv", room / "out" / "moodle.csv"))
    marks, comments = ([row.pop(column) for row in after] for column in ("Grade", "Feedback comments"))
    for row in before:
        del row["Grade"], row["Feedback comments"]
    assert after == before
    assert marks == [str(scaled(each[0])).removesuffix(".0") if each[0] in REACHED else "" for each in platforms.SIX]
    assert comments[1].startswith(f"chapter 2: {REACHED['bo']} of {sum(POINTS)} points (points missing in 2.3, 2.4")
    assert comments[5] == ""
    late = [(each.student, each.late) for each in done.marked if each.is_late]
    assert late == [("dora", "Moodle says: Submitted for grading - 2 hours late")]


@pytest.mark.parametrize("platform", ["canvas", "moodle"])
def test_without_a_table_of_the_platform_one_is_made_for_it(room, platform):
    platforms.roster(room / "roster.csv")
    if platform == "canvas":
        platforms.canvas_zip(room / "in.zip", room / "workshop")
    else:
        platforms.moodle_folder(room / "in")
    room.grade(submissions="in.zip" if platform == "canvas" else "in", papers=papers(room, roster="roster.csv"))
    found = platforms.table(room / "out" / f"{platform}.csv")
    if platform == "canvas":
        assert [*found[0]][:5] == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section"]  # in this order Canvas wants them
        assert [*found[0].values()] == ["    Points Possible", "", "", "", "", str(sum(POINTS))]
        assert {row["ID"]: [*row.values()][-1] for row in found[1:]} == {NUMBER[s]: str(points) for s, points in REACHED.items()} | {
            NUMBER["fay"]: ""  # an apology
        }
    else:
        assert {row["Identifier"]: (row["Grade"], row["Maximum Grade"]) for row in found} == {
            f"Participant {each[6]}": (str(REACHED[each[0]]), str(sum(POINTS))) for each in platforms.SIX if each[0] in REACHED
        }
        assert "Last modified (grade)" in found[0]


def test_whose_word_a_late_mark_of_a_platform_is(room):
    platforms.moodle_folder(room / "in")
    platforms.moodle_worksheet(room / "worksheet.csv")
    without = room.grade(due=parse_time("2026-11-20")).found.notes
    assert without == ("no worksheet says which of Moodle's 5 hand-ins are late: give it with --gradebook",)
    given = room.grade("given", due=parse_time("2026-11-20"), papers=papers(room, gradebook="worksheet.csv")).found.notes
    assert not any("worksheet says" in note or "timestamp.txt" in note for note in given)
    platforms.canvas_zip(room / "in.zip", room / "workshop")
    assert any(
        "6 hand-ins are late is what Canvas says" in note
        for note in room.grade("canvas", submissions="in.zip", due=parse_time("2026-11-20")).found.notes
    )


@pytest.mark.parametrize(
    ("name", "number", "file", "late"),
    [
        ("lovelaceada_12345_67890_02_softmax.ipynb", "12345", "02_softmax.ipynb", False),
        ("lovelaceada_LATE_12345_67890_ex_02_softmax-1.ipynb", "12345", "ex_02_softmax-1.ipynb", True),
        ("müllerdora_5_6_a_7_8_b.ipynb", "5", "a_7_8_b.ipynb", False),
        ("Ada L_5_assignsubmission_file_Bo_6_assignsubmission_file_x.ipynb", "5", "Bo_6_assignsubmission_file_x.ipynb", False),
        ("ada_5_66_bo_6_77_x.ipynb", "5", "bo_6_77_x.ipynb", False),  # a file's own name makes nobody somebody else
        ("anon_aB3xY_67890_02_softmax.ipynb", "", "02_softmax.ipynb", False),
        ("LATE_anon_aB3xY_67890_02_softmax.ipynb", "", "02_softmax.ipynb", True),
        ("Ada Lovelace_90011_assignsubmission_file_02_softmax.ipynb", "90011", "02_softmax.ipynb", False),
    ],
)
def test_the_name_of_a_downloaded_file_says_whose_it_is(name, number, file, late):
    found = of_file(name)
    assert (found.owner.number, found.file, bool(found.late)) == (number, file, late)
    assert not found.owner.label.startswith("LATE")


def test_other_names_are_no_platforms(room):
    assert [of_file(name) for name in ("02_softmax.ipynb", "ex_02_softmax.ipynb", "notes.txt", "a_1_b.ipynb")] == [None] * 4
    assert [of_folder(name).owner.platform for name in ("ada", "ada_5", "Ada L_5_assignsubmission_file")] == ["", "", "moodle"]
    room.hand_in("ada")
    (room / "in" / "2026_11_20_download.log").write_text("x")  # dated, and nobody's
    assert room.grade().found.students == ("ada",)


def test_names_that_do_not_tell_are_not_guessed(room):
    """Two of one name at Canvas, and one who has the name but not the number of somebody on the roster."""
    (room / "roster.csv").write_text("id,name,canvas\nada,Ada Lovelace,\nbo,Bo Ek,77\nchen,Chen Wei,\n")
    for name in ("lovelaceada_1_10", "lovelaceada_2_11", "ekbo_78_12", "weichen_3_13"):
        notebook(room / "in" / f"{name}_02_softmax.ipynb")
    found = room.grade(papers=papers(room, roster="roster.csv")).found
    assert found.students == ("ada", "bo", "chen", "ekbo_78", "lovelaceada_1", "lovelaceada_2")
    assert [each.student for each in found.hand_ins] == ["chen", "ekbo_78", "lovelaceada_1", "lovelaceada_2"]
    assert "lovelaceada_1 and lovelaceada_2 may be ada of the roster: the name does not tell" in found.notes
    assert "not on the roster, and graded all the same (3): ekbo_78, lovelaceada_1, lovelaceada_2" in found.notes


def test_a_folder_may_be_called_by_id_mail_or_name(room):
    (room / "roster.csv").write_text("id;name;email;remark\nada;Ada Lovelace;a@b.example;x\nbo;Bo Ek;bo@b.example;\nchen;Chen Wei;;\n")
    for name in ("ada", "BO@b.example", "Wei, Chen", "Dora"):
        room.hand_in(name)
    found = room.grade(papers=papers(room, roster="roster.csv")).found
    assert [each.student for each in found.hand_ins] == ["Dora", "ada", "bo", "chen"]


def test_two_files_of_one_student_are_one_student(room):
    for number in (10, 11):
        notebook(room / "in" / f"ekbo_78_{number}_02_softmax.ipynb", right="1" if number == 11 else "")
    assert [(each.student, each.place, each.status, each.points) for each in room.grade().marked] == [
        ("ekbo_78", "ekbo_78/02_softmax.ipynb", "duplicate", 0),
        ("ekbo_78", "ekbo_78/02_softmax.ipynb (2)", "graded", POINTS[0]),
    ]


def archive_of(room, members):
    with zipfile.ZipFile(room / "in.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            archive.writestr(name, content)


def test_nothing_of_an_archive_is_written_outside_or_without_end(room):
    fine = notebook(room / "fine.ipynb", right="1").read_bytes()
    link = zipfile.ZipInfo("ekbo_1_2_link.ipynb")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    outside = ("../escaped_1_2_a.ipynb", "/tmp/escaped_1_2_b.ipynb", "x/../../escaped_1_2_c.ipynb", "C:\\escaped_1_2_d.ipynb")
    bomb = "weichen_3_4_02_softmax.ipynb"
    archive_of(
        room,
        [("ekbo_1_2_02_softmax.ipynb", fine), (link, "/etc/passwd"), (bomb, bytes(2 * MAX_BYTES)), *((name, fine) for name in outside)],
    )
    before = set(room.folder.parent.rglob("*escaped*"))
    done = room.grade(submissions="in.zip")
    assert [(each.student, each.status) for each in done.marked] == [("ekbo_1", "graded"), ("weichen_3", "not judged")]
    assert "is too large" in done.marked[1].notes[0]
    assert set(room.folder.parent.rglob("*escaped*")) == before
    assert sum("points outside of it" in note for note in done.found.notes) == len(outside)
    assert sum("is a link" in note for note in done.found.notes) == 1


@pytest.mark.parametrize("content", [b"no archive", b"", b"PK\x03\x04 cut short", [], ["notes.txt"], ["02_softmax.ipynb"]])
def test_an_archive_that_cannot_be_read_or_is_of_nobody_is_one_clear_line_with_its_name(room, content):
    if isinstance(content, bytes):
        (room / "in.zip").write_bytes(content)
        complaint = r"in\.zip: is neither a folder nor a zip archive that can be read"
    else:
        archive_of(room, [(name, "{}") for name in content])
        complaint = r"in\.zip: holds no student's folder; wanted in\.zip/<student>/<notebook>\.ipynb"
    with pytest.raises(SubmissionsError, match=complaint) as raised:
        room.grade(submissions="in.zip")
    assert "attn-hand-ins" not in str(raised.value)
    assert not (room / "out").exists()


@pytest.mark.parametrize(
    ("limit", "complaint"), [("MOST_FILES", "it holds 3 files; at most 2"), ("MOST_BYTES", "it holds more than 0 GiB of notebooks")]
)
def test_an_archive_that_holds_too_much_is_refused(room, monkeypatch, limit, complaint):
    monkeypatch.setattr(f"attn_course.classroom.downloads.{limit}", 2)
    archive_of(room, [(f"ekbo_1_{number}_02_softmax.ipynb", "{}" * 9) for number in range(3)])
    with pytest.raises(SubmissionsError, match=rf"in\.zip: cannot be unpacked: {complaint}"):
        room.grade(submissions="in.zip")


def test_what_could_not_be_judged_is_no_zero_at_the_platform_until_the_teacher_decides(room):
    platforms.moodle_folder(room / "in")
    platforms.moodle_worksheet(room / "worksheet.csv")
    (room / "in" / "Chen Wei_90013_assignsubmission_file" / "ex_02_softmax.ipynb").write_bytes(b"")
    given = papers(room, gradebook="worksheet.csv")
    room.grade(papers=given)
    assert platforms.table(room / "out" / "moodle.csv")[2]["Grade"] == ""
    (room / "decisions.csv").write_text("student,what,points,comment\nchen@uni.example,2,0,never came\nfay@uni.example,2,11,oral\n")
    room.grade(resume=True, papers=papers(room, overrides="decisions.csv"))
    grades = [(row["Grade"], row["Feedback comments"]) for row in platforms.table(room / "out" / "moodle.csv")]
    assert [grades[2][0], grades[5][0]] == ["0", str(round(1100 / sum(POINTS), 2))]
    assert "the teacher's decision: 11 in place of 0 points; oral" in grades[5][1]


def test_an_archive_of_students_folders_or_packed_once_more_is_read_too(room):
    fine = notebook(room / "fine.ipynb", right="1").read_bytes()
    archive_of(room, [("submitted/ada/02_softmax.ipynb", fine), ("submitted/bo/02_softmax.ipynb", fine), ("__MACOSX/x", "")])
    assert room.grade(submissions="in.zip").found.students == ("ada", "bo")
    archive_of(room, [("download/ekbo_1_2_02_softmax.ipynb", fine)])
    assert room.grade("again", submissions="in.zip").found.students == ("ekbo_1",)


MAC = {  # students by the names in a zip as macOS packs a folder
    "Canvas": {"adams_11": "submissions/adams_11_101_", "baker_12": "submissions/baker_12_102_"},
    "Moodle": {who: f"hw/{who}_assignsubmission_file/" for who in ("Ada Adams_11", "Bo Baker_12")},
    "folders": {"adams": "hw2/adams/", "baker": "hw2/baker/"},
}


@pytest.mark.parametrize(("layout", "unpacked"), [*((layout, False) for layout in MAC), ("Canvas", True), ("Moodle", True)])
def test_a_class_packed_anew_on_a_mac_is_the_class(room, layout, unpacked):
    """Each file lies also below __MACOSX, as ._file; and what Windows and macOS leave in folders is there."""
    fine = notebook(room / "fine.ipynb", right="1").read_bytes()
    names = [f"{start}ex_14_notation.ipynb" for start in MAC[layout].values()]
    left = [f"{names[0].partition('/')[0]}/{name}" for name in (".DS_Store", "Thumbs.db", "desktop.ini")]
    beside = [f"__MACOSX/{folder}/._{file}" for folder, _, file in (name.rpartition("/") for name in [*names, *left])]
    archive_of(room, [*((name, fine) for name in names), *((name, b"x") for name in [*left, *beside])])
    if unpacked:
        zipfile.ZipFile(room / "in.zip").extractall(room / "in")
    done = room.grade(submissions="in" if unpacked else "in.zip")
    assert done.found.students == tuple(MAC[layout])
    assert [(each.student, each.notebook) for each in done.found.hand_ins] == [(who, "ex_14_notation.ipynb") for who in MAC[layout]]
    assert not [note for note in done.found.notes if "worksheet" not in note]
    assert (room / "out" / "canvas.csv").exists() == (layout == "Canvas")


def test_names_in_utf8_without_the_flag_that_says_so_are_the_rosters(room):
    """macOS packs such: `müller` was taken for `m├╝ller`, a stranger."""
    fine = notebook(room / "fine.ipynb", right="1").read_bytes()
    plain = "muXXller/02_softmax.ipynb"
    with zipfile.ZipFile(room / "in.zip", "w") as archive:
        archive.writestr(plain, fine)
        archive.writestr("ren\u00e9/02_softmax.ipynb", fine)  # with the flag
    packed = (room / "in.zip").read_bytes()
    for spelt in ("mu\u0308ller", "m\u00fcXller"):
        assert len(spelt.encode()) == len("muXXller")
        (room / "in.zip").write_bytes(packed.replace(b"muXXller", spelt.encode()))
        assert zipfile.ZipFile(room / "in.zip").namelist()[0].partition("/")[0] != spelt
        (room / "roster.csv").write_text(f"id\n{spelt}\nrene\u0301\n", encoding="utf-8")
        done = room.grade(spelt, submissions="in.zip", papers=papers(room, roster="roster.csv"))
        assert done.found.students == (unicodedata.normalize("NFC", spelt), "ren\u00e9")
        assert [each.status for each in done.marked] == ["graded", "graded"]
        assert done.found.notes == ()


TWO_WAYS = [("m\u00fcller", "mu\u0308ller"), ("mu\u0308ller", "m\u00fcller")]


@pytest.mark.parametrize(("on_disk", "on_paper"), TWO_WAYS)
def test_a_name_with_its_dots_apart_is_the_same_wherever_two_are_joined(room, on_disk, on_paper):
    room.hand_in(on_disk, right="1")
    notebook(room / "in" / f"weiche\u0301_3_13_{'02_softmax'}.ipynb", right="1")
    (room / "roster.csv").write_text(f"id,name\n{on_paper},\nchen,Ch\u00e9 Wei\n", encoding="utf-8")
    (room / "decisions.csv").write_text(f"student,what,points\n{on_paper},2.2,1\n", encoding="utf-8")
    given = papers(room, roster="roster.csv", overrides="decisions.csv")
    done = room.grade(papers=given)
    assert done.found.students == ("chen", "m\u00fcller")
    assert not any("roster" in note for note in done.found.notes)
    assert [(each.student, each.points, len(each.decided)) for each in done.marked] == [
        ("chen", POINTS[0], 0),
        ("m\u00fcller", POINTS[0] + 1, 1),
    ]


@pytest.mark.parametrize(("one", "other"), TWO_WAYS)
def test_a_gradebook_and_the_numbers_of_a_student_know_both_spellings(one, other):
    book = read_gradebook(f"Student,ID,SIS User ID,Section,{one} (7)\n{one},5,{one},,\n", "g.csv", other)
    assert book.ids(book.students[0]) == ["5", "m\u00fcller"]
    roster = merged(read_roster(f"id\n{other}\n", "r.csv"), book.students, "canvas", book.ids)
    assert roster.by_id["m\u00fcller"].canvas == "5"
    task = get_task("entropy-by-hand")
    assert task.variant(one).numbers == task.variant(other).numbers


OTHER = "is no notebook: wanted a file that ends in .ipynb"


@pytest.mark.parametrize("unpacked", [False, True])
@pytest.mark.parametrize("layout", ["Canvas", "Moodle", "folders"])
def test_who_handed_in_no_notebook_has_a_row_that_says_what_it_was(room, layout, unpacked):
    inside = {"Canvas": "{0}_{1}_10{1}_{2}", "Moodle": "{0}_{1}_assignsubmission_file/{2}", "folders": "{0}/{2}"}[layout]
    fine = notebook(room / "fine.ipynb", right="1").read_bytes()
    handed_in = [
        ("ada", 1, "02_softmax.ipynb", fine),
        ("ada", 1, "data.csv", b"1"),
        ("bo", 2, "02_softmax.html", b"<p>"),
        ("chen", 3, "my work.pdf", b"x"),
    ]
    archive_of(room, [(inside.format(who, n, file), content) for who, n, file, content in handed_in])
    if unpacked:
        zipfile.ZipFile(room / "in.zip").extractall(room / "in")
    done = room.grade(submissions="in" if unpacked else "in.zip")
    rows = platforms.table(room / "out" / "summary.csv")
    assert [(row["student"][:2], row["points"] != "0", row["remarks"]) for row in rows] == [
        ("ad", True, ""),
        ("bo", False, "1 not judged"),
        ("ch", False, "1 missing; 1 not judged"),
    ]
    said = {each.student[:2]: each.notes[0] for each in done.marked if each.status == "not judged"}
    assert said == {"bo": f"02_softmax.html {OTHER}", "ch": f"my work.pdf {OTHER}"}
    if not unpacked:
        assert "02_softmax.html" in done.found.notes[0]
        assert "bo" in done.found.notes[0]

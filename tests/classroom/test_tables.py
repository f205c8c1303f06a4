"""The teacher's tables: what is wrong with one is said by line, column, what was wanted and what came."""

import pytest

from attn_course.classroom.desk import Papers, read_desk
from attn_course.classroom.gradebook import Mark, filled, read_gradebook
from attn_course.classroom.tables import TableError, cell, parse_table, points, read_text, uncell

CANVAS = "Student,ID,SIS Login ID,Section,{}\n    Points Possible,,,,10\n"
MOODLE = "Identifier,Full name,Grade,Maximum Grade,Last modified (grade)\n"
HEAD = "student,what,points,comment,due\n"


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_table_is_read_as_spreadsheets_write_it(delimiter, end):
    lines = ["\ufeffid,name", '1,"x, y; z"', "", '2,"two\nlines"', "3"]
    text = end.join(line.replace(",", delimiter) if '"' not in line else line.replace(",", delimiter, 1) for line in lines)
    table = parse_table(text, "t.csv")
    assert [(line, *cells) for line, cells in table.lines] == [(2, "1", "x, y; z"), (4, "2", "two\nlines"), (6, "3", "")]
    assert (table.delimiter, table.marked) == (delimiter, True)


@pytest.mark.parametrize(
    ("kind", "text", "complaint"),
    [
        ("roster", "", "roster.csv: is empty; wanted a row with the names of the columns"),
        ("roster", "id\n", "roster.csv: names no student"),
        ("roster", "name\nAda\n", "roster.csv, line 1: wanted a column 'id'; got 'name'"),
        ("roster", "id,name,ID\n1,a,2\n", "roster.csv, line 1: wanted each column once; got 'id' 2 times"),
        ("roster", "id,name\n1,a,b\n", "roster.csv, line 2: wanted 2 cells, as many as there are columns; got 3"),
        ("roster", 'id,name\n1,"a\n', "roster.csv, line 2: is not CSV: unexpected end of data"),
        ("roster", "id,name\n,a\n", "roster.csv, line 2, column 'id': wanted an id for each student; got ''"),
        ("roster", "id\n../a\n", "line 2, column 'id': wanted an id that can name a folder, without slashes; got '../a'"),
        ("roster", "id\na\n\nb\na\n", "roster.csv, line 5, column 'id': wanted another one than in line 2; got 'a'"),
        ("roster", "id,canvas\na,5\nb,5\n", "roster.csv, line 3, column 'canvas': wanted another one than in line 2; got '5'"),
        (
            "roster",
            "id,due\na,tomorrow\n",
            "roster.csv, line 2, column 'due': wanted a time such as '2026-11-20 23:59 UTC'; got 'tomorrow'",
        ),
        ("points", "task,points\nsoftmax,3\n", "column 'task': wanted a task, such as stable-softmax or its number; got 'softmax'"),
        ("points", "task,points\n2.1,three\n", "points.csv, line 2, column 'points': wanted points, such as 3 or 2.5; got 'three'"),
        ("points", "task,points\n2.1,1\nstable-softmax,2\n", "line 3, column 'task': wanted each task once, not again after line 2"),
        ("points", "task,point\n2.1,1\n", "points.csv, line 1: wanted a column 'points'; got 'task', 'point'"),
        (
            "overrides",
            "student,what,point\n",
            "overrides.csv, line 1: wanted columns out of student, what, points, comment, due; got 'point'",
        ),
        ("overrides", HEAD + "ada,2.99,1,,\n", "overrides.csv, line 2, column 'what': wanted a task (stable-softmax or its number)"),
        ("overrides", HEAD + "ada,,1,,\n", "line 2, column 'what': wanted the task or the chapter that the points are for; got ''"),
        ("overrides", HEAD + "ada,2.1,,,2026-12-01\n", "column 'due': wanted no extension for a single task"),
        ("overrides", HEAD + "ada,2.1,,,\n", "overrides.csv, line 2: wanted points, a comment or a due time; got none of them"),
        ("gradebook", "a,b\n1,2\n", "gradebook.csv, line 1: wanted a gradebook of Canvas (Student, ID, …, Section) or a grading worksheet"),
        (
            "gradebook",
            CANVAS.format("W 2 (7),W 3 (8)"),
            "wanted one assignment, named by --assignment; got no name, there are 'W 2 (7)', 'W 3",
        ),
        ("gradebook", CANVAS.format("Final Score"), "wanted one assignment, named by --assignment; got no name, there are none"),
        ("gradebook", CANVAS.format("W (7)") + "A,5,,,\nB,5,,,\n", "gradebook.csv, line 4: wanted each student once; got 5 a second time"),
        ("gradebook", CANVAS.format("W (7)") + "A,..,,,\n", "gradebook.csv, line 3, column 'ID': wanted the number of a student; got '..'"),
        ("gradebook", MOODLE + "Participant x,A,,10,\n", "line 2, column 'Identifier': wanted a participant's number; got 'Participant x'"),
        ("gradebook", MOODLE.replace("Maximum Grade", "Scale"), "the assignment is graded on a scale; wanted one that is graded in points"),
        ("gradebook", "Identifier,Grade\n", "wanted a column 'Last modified (grade)', without which Moodle takes no worksheet back"),
    ],
)
def test_what_is_wrong_with_a_table_is_one_clear_line(kind, text, complaint):
    with pytest.raises(TableError) as raised:
        read_desk(Papers({kind: (f"{kind}.csv", text)}))
    assert complaint in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_table_that_is_no_text_says_where(tmp_path):
    (tmp_path / "t.csv").write_bytes("id,name\n1,Müller\n".encode("cp1252"))
    with pytest.raises(TableError, match=r"t\.csv, line 2: is not UTF-8; save it as “CSV UTF-8”"):
        read_text(tmp_path / "t.csv")
    with pytest.raises(TableError, match=r"u\.csv: cannot be read: No such file"):
        read_text(tmp_path / "u.csv")


def test_excused_students_and_locked_grades_are_left_and_said():
    text = CANVAS.format("W (7)").replace("SIS Login ID,", "SIS User ID,SIS Login ID,").replace(",,,,10", ",,,,,10")
    book = read_gradebook(text + 'A,5,,,,EX\nB,6,,,,"2,5"\nC,7,,,,\n', "g.csv", "7")
    filled_in, notes = filled(book, {"5": Mark(5, 10, student="ada"), "6": Mark(5, 10, student="bo"), "8": Mark(5, 10, student="di")})
    assert filled_in.splitlines()[2:] == ["A,5,,,,EX", "B,6,,,,5", "C,7,,,,"]
    assert notes == [
        "canvas.csv: 1 student without a mark (nothing handed in, or not judged), for whom the platform keeps what it has: 7",
        "canvas.csv: 1 student that the platform excuses or does not ask stay so: ada",
        "canvas.csv: 1 student without a row: di",
    ]
    sheet = read_gradebook(
        "Identifier,Grade,Maximum Grade,Grade can be changed,Last modified (grade),Feedback comments\nParticipant 5,,20,No,-,good\n",
        "w.csv",
    )
    filled_in, notes = filled(sheet, {"5": Mark(5, 10, "d_k < 3", "ada")})
    assert filled_in.splitlines()[1] == "Participant 5,10,20,No,-,good; d_k &lt; 3"
    assert "moodle.csv: 1 student whose grade Moodle has locked, so that it will pass over them: ada" in notes


POINTS = "1,000.00=1000|1.000,00=1000|1,000=1000|1 000,50=1000.5|1\u202f000=1000|1'000.00=1000|1000=1000|12,500.5=12500.5|2,5=2.5|2.50=2.5"
POINTS += "|0,125=0.125|0.125=0.125|100.00=100|7.=7|0=0"
NO_POINTS = ["1.000", "12.500", "1,00,000", "1,000,00", "1.000.00", "-1", "+3", "1e3", "nan", "inf", "three", "1 00", "1,000,000.00", "."]


@pytest.mark.parametrize("pair", POINTS.split("|"))
def test_points_are_read_as_people_write_them(pair):
    text, _, number = pair.partition("=")
    assert points(text) == points(f" {text} ") == float(number)


@pytest.mark.parametrize("text", NO_POINTS)
def test_what_is_no_number_of_points_or_may_be_two_is_refused(text):
    with pytest.raises(ValueError, match="wanted points, such as 3"):
        points(text)


def book_of(platform, most):
    if platform == "canvas":
        return read_gradebook(f"Student;ID;Section;W (7)\n    Points Possible;;;{most}\nA;5;;\n", "g.csv")
    return read_gradebook(MOODLE.replace(",", ";") + f"Participant 5;A;;{most};\n", "g.csv")


@pytest.mark.parametrize("platform", ["canvas", "moodle"])
@pytest.mark.parametrize("most", ["1,000.00", "1.000,00", "1,000", "1000"])
def test_marks_are_scaled_to_a_thousand_points_however_they_are_written(platform, most):
    table, notes = filled(book_of(platform, most), {"5": Mark(5, 10)})
    assert ";500" in table.splitlines()[-1]
    assert notes == [f"{platform}.csv: marks out of 10 are scaled to the platform's 1000 points"]


@pytest.mark.parametrize("platform", ["canvas", "moodle"])
@pytest.mark.parametrize("most", ["1.000", "a thousand", "1,00,000"])
def test_a_largest_mark_that_cannot_be_read_is_refused_before_anything_is_graded(platform, most):
    with pytest.raises(TableError, match=r"^g\.csv, line 2, column '.*': wanted the largest mark as a number .* got "):
        book_of(platform, most)


def test_a_table_keeps_its_delimiter_and_its_mark_and_without_a_largest_one_is_not_scaled():
    book = read_gradebook("\ufeff" + CANVAS.format("W (7)").replace(",", ";") + "A;5;;;\n", "g.csv")
    assert filled(book, {"5": Mark(5, 10)})[0] == "\ufeffStudent;ID;SIS Login ID;Section;W (7)\n    Points Possible;;;;10\nA;5;;;5\n"
    for platform in ("canvas", "moodle"):
        assert ";5" in filled(book_of(platform, ""), {"5": Mark(5, 10)})[0]
    for text in ("=1", "+x", " @a", "ada", "'quoted", ""):
        assert uncell(cell(text)) == text  # the apostrophe that our tables add is taken away again

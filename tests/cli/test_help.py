"""Help, version, and the exit codes of the command line itself."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from attn_course import __version__, cli
from attn_course.commands.terminal import Failure

GROUPS = {group.name: group.typer_instance.registered_commands for group in cli.app.registered_groups}
COMMANDS = [*GROUPS, *(command.callback.__name__ for command in cli.app.registered_commands)]
COMMANDS += [f"{name} {command.name or command.callback.__name__}" for name, commands in GROUPS.items() for command in commands]


def test_help_lists_every_command_in_its_group_and_the_version_is_that_of_the_package(attn_course):
    said = attn_course("--help")
    assert said.code == 0
    assert attn_course().out == said.out
    learners, authors = said.out.split("For authors")
    for name in ("lab", "check", "progress", "cards", "formulas", "notation", "model", "doctor"):
        assert f"│ {name} " in learners.split("For learners")[1]
    assert "│ notebooks " in authors
    assert attn_course("--version") == (0, f"attn-course {__version__}\n", "")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(command, attn_course):
    said = attn_course(*command.split(), "--help")
    assert (said.code, said.err) == (0, "")
    assert f"Usage: attn-course {command} " in said.out
    assert max(map(len, said.out.splitlines())) <= 80
    if command not in GROUPS:
        assert "Examples:" in said.out
        assert f"\n  attn-course {command}" in said.out.split("Examples:")[1]


@pytest.fixture
def broken_command(monkeypatch):
    """Make `attn-course progress` raise what a test chooses."""

    def break_it(error):
        def raise_it(*_: object):
            raise error

        monkeypatch.setattr("attn_course.commands.progress._chapters", raise_it)

    return break_it


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (Failure("the kernel did not start"), 1, "attn-course: the kernel did not start"),
        (KeyError("surprise"), 1, "attn-course: KeyError: 'surprise' (--debug shows where)"),
        (RuntimeError(""), 1, "attn-course: RuntimeError: no message (--debug shows where)"),
        (RuntimeError("first\nsecond"), 1, "attn-course: RuntimeError: first (--debug shows where)"),
        (KeyboardInterrupt(), 130, "attn-course: interrupted"),
    ],
)
def test_an_error_is_one_line_and_a_code_but_with_debug_it_is_raised(error, code, line, broken_command, attn_course):
    broken_command(error)
    assert attn_course("progress") == (code, "", line + "\n")
    if not isinstance(error, KeyboardInterrupt):
        with pytest.raises(type(error)):
            attn_course("--debug", "progress")


def test_flags_after_two_dashes_are_left_alone():
    words = ["lab", "--debug", "--", "--debug"]
    assert cli._take(words, "--debug")
    assert words == ["lab", "--", "--debug"]
    assert not cli._take(words, "--debug")


def test_the_installed_command_and_the_module_do_the_same():
    installed = shutil.which("attn-course", path=Path(sys.executable).parent)
    assert installed is not None
    for command in ([sys.executable, "-m", "attn_course.cli"], [installed]):
        done = subprocess.run([*command, "chek"], capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("attn-course: No such command 'chek'.")


def test_output_into_a_pipe_that_closes_is_quiet():
    command = f'"{sys.executable}" -m attn_course.cli formulas --latex'
    done = subprocess.run(f"{command} | {sys.executable} -c 'pass'", shell=True, capture_output=True, text=True)
    assert done.stderr == ""

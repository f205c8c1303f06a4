"""`attn-course doctor`: is everything here that the course needs, and how to mend what is not."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from attn_course.commands.course import find_course
from attn_course.commands.terminal import check_json_target, console, option, write_json
from attn_course.numbers import counted

if TYPE_CHECKING:
    from attn_course.commands.doctor_checks import Finding

_COLOUR = {"ok": "green", "note": "yellow", "problem": "bold red"}


def doctor(
    json_file: Annotated[str | None, option("--json", "FILE", "Write the findings as JSON instead; - prints them.")] = None,
) -> None:
    """Examine this installation: versions, kernel, torch, GPU, Triton, notebooks, disk.

    Each line is ok, a note (nothing is broken) or a problem, with the way to mend it. Exit code: 0 if there is no
    problem, 1 if there is one.

    Examples:

        attn-course doctor
        attn-course doctor --json -
    """
    check_json_target(json_file)
    root = find_course()
    from attn_course.commands.doctor_checks import examine

    err = console(stderr=True)
    with err.status("examining ..."):
        findings = examine(root)
    sound = all(finding.status != "problem" for finding in findings)
    if json_file:
        write_json(json_file, {"version": 1, "sound": sound, "findings": [asdict(finding) for finding in findings]})
    if json_file != "-":
        show(findings)
    raise typer.Exit(0 if sound else 1)


def show(findings: "Sequence[Finding]") -> None:
    """Print one line for each finding, and under it how to mend it."""
    from rich.table import Table
    from rich.text import Text

    out = console()
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for finding in findings:
        text = Text(finding.text).append(f"\n{finding.mend}" if finding.mend else "", "cyan")
        table.add_row(Text(finding.status, _COLOUR[finding.status]), Text(finding.name, "bold"), text)
    out.print(table)
    problems = sum(finding.status == "problem" for finding in findings)
    out.print(counted(problems, "problem") if problems else "no problem", style="bold red" if problems else "green")

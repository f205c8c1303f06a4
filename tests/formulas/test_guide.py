"""The examples of docs/formulas.md, which is the meaning of formulas, one by one."""

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from attn_course import formulas
from attn_course.equations import Equation, EquationError, get_equation
from attn_course.formulas import Malformed, Refuted, formula_of, judge

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "formulas.md"
NUMPY = """abs arange array convolve cumsum exp eye hstack inf maximum nan ones outer repeat sin sum tri"""
KNOWN = {name: getattr(np, name) for name in NUMPY.split()} | {"inv": np.linalg.inv, "norm": np.linalg.norm, "float": float, "bool": bool}
KNOWN |= {name: getattr(formulas, name) for name in formulas.__all__}


def examples() -> Iterator[tuple[str, dict | Equation, str, str, str]]:
    """The section, the givens, or the equation, what is said of the formula, the formula, and words of the message."""
    for section in GUIDE.read_text(encoding="utf-8").split("\n## "):
        for block in re.findall(r"```formulas\n(.*?)```", section, flags=re.DOTALL):
            rng = np.random.default_rng(3)
            drawn, givens = {"normal": lambda *shape, rng=rng: rng.normal(size=shape)}, {}
            for line in filter(None, block.splitlines()):
                if line.startswith("let "):
                    exec(line.removeprefix("let "), KNOWN | drawn, drawn)
                elif found := re.match(r"(holds|refuted|malformed) +(.*?)(?: {4,}(.*))?$", line):
                    yield section.splitlines()[0], givens, *found.groups(default="")
                elif line.startswith("equation "):
                    _, label, latex = line.split(maxsplit=2)
                    givens = get_equation(label)
                    givens.check(latex)
                else:
                    told = (part.partition(" = ")[::2] for part in line.split(" ; "))
                    givens = {name.strip(): eval(value, KNOWN | drawn) for name, value in told}


def judged(latex: str, givens: dict | Equation) -> tuple[str, str]:
    """What becomes of a formula, or of another wording of an equation; of the givens it takes those that it names."""
    try:
        if isinstance(givens, Equation):
            givens.check(latex)
            return "holds", ""
        judge(formula_of(latex, givens), givens)
    except (Malformed, Refuted, EquationError) as error:
        if unused := re.match(r"(\S+) is given and nowhere used\n", str(error)):
            return judged(latex, {name: given for name, given in givens.items() if name != unused[1]})
        return type(error).__name__.lower(), str(error)
    return "holds", ""


@pytest.mark.parametrize("section", dict.fromkeys(example[0] for example in examples()))
def test_every_example_is_what_the_guide_says(section):
    wrong = []
    for _, givens, said, latex, words in (example for example in examples() if example[0] == section):
        found, message = judged(latex, givens)
        if found != said or words not in message:
            wrong.append(f"{latex}: {found} {message}")
    assert not wrong, "\n".join(wrong)

"""The machine of "Break the machine" as a script: each formula of `formulas` written as JavaScript."""

import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from attn_course import sentence
from attn_course.formulas.javascript import ALGEBRA
from attn_course.game.formulas import DONE, HEAD, PARTS, TWINS, UPDATE, Part, Rule, Twin
from attn_course.game.levels import LEVELS, solved
from attn_course.game.rules import AHEAD, written

HERE = Path(__file__).parent
ENGINE = HERE / "engine.js"
SHIPPED = ("id", "lamp", "title", "hint", "note", "story", "start", "locked", "par")  # what the page says and holds of a level
USUAL = ("heads",)  # what is locked, where a level says nothing else
TOKENS = ("the", "cat", "sat", "it")


@cache
def javascript() -> str:
    """Return the script: it defines MACHINE."""
    data = {
        "TOKENS": _json(TOKENS),
        "FEATURES": _json(sentence.FEATURES),
        "INPUTS": _json([{key: value for key, value in one.items() if key != "value"} for one in inputs()]),
        "PARTS": _listed(map(_part, PARTS)),
        "TWINS": _listed(map(_twin, TWINS)),
        "UPDATE": _rules(UPDATE),
        "DONE": _rule(DONE),
        "LEVELS": _listed(_json({key: level[key] for key in SHIPPED if level[key] not in ("", USUAL)}) for level in levels()),
    }
    consts = "".join(f"const {name} = {value};\n" for name, value in data.items())
    inside = "\n".join([ALGEBRA.read_text(encoding="utf-8"), consts, ENGINE.read_text(encoding="utf-8")])
    return f"const MACHINE = (() => {{\n{inside}}})();\n"


def _json(thing: Any) -> str:
    return json.dumps(thing, ensure_ascii=False, separators=(",", ":"))


def _listed(lines: Iterable[str]) -> str:
    return f"[\n{''.join(f'  {line},' + chr(10) for line in lines)}]"


def _rule(rule: Rule) -> str:
    loops = "" if rule.loops == HEAD else f"loops: {_json(rule.loops)}, "
    return f"{{ {loops}value: {written(rule).javascript()} }}"


def _rules(rules: Mapping[str, Rule]) -> str:
    return f"{{ {', '.join(f'{name}: {_rule(rule)}' for name, rule in rules.items())} }}"


def _part(part: Part) -> str:
    about = {"name": part.name, "title": part.title, "role": part.role, "axes": part.axes}
    return f"{_json(about | {'html': written(part.rule).html(part.left)})[:-1]}, rule: {_rule(part.rule)} }}"


def _twin(twin: Twin) -> str:
    wrong = twin.update or twin.rules
    part = "Z" if twin.update else next(iter(wrong))
    left = next(one.left for one in PARTS if one.name == part)
    shown = _joined(twin.update) if twin.update else written(wrong[part]).html(left)
    beside = _joined(UPDATE) if twin.update else twin.beside and written(twin.beside).html(left)
    about = {"id": twin.id, "part": part, "title": twin.title, "html": shown}
    about |= {"beside": beside} if beside else {}
    about |= {"tested": twin.tested} if twin.tested != "Z" else {}
    return f"{_json(about)[:-1]}, rules: {_rules(twin.rules)}{f', update: {_rules(twin.update)}' if twin.update else ''} }}"


def _joined(update: Mapping[str, Rule]) -> str:
    """Return what differs in an update that goes wrong: the largest score does not."""
    return ",   ".join(written(rule).html() for name, rule in update.items() if name != "m")


def levels() -> list[dict[str, Any]]:
    """Return all levels, each with its `answer`, the changes that expose its twin, and how many these are, `par`."""
    found = []
    for level in LEVELS:
        answer = [{"name": name, "place": place, "value": value} for name, place, value in solved(level)]
        found.append({**vars(level), "id": level.twin, "par": len(answer), "answer": answer})
    return found


def inputs() -> list[dict[str, Any]]:
    """Return what can be edited, with four tokens of the sentence and its two heads."""
    matrices = {
        "X": ("the tokens", "neutral", sentence.X[[sentence.TOKENS.index(token) for token in TOKENS]]),
        "W_Q": ("for queries", "query", np.hstack(list(sentence.W_QUERY))),
        "W_K": ("for keys", "key", np.hstack(list(sentence.W_KEY))),
        "W_V": ("for values", "value", np.hstack(list(sentence.W_VALUE))),
        "W_O": ("for outputs", "output", sentence.W_OUTPUT),
    }
    found: list[dict[str, Any]] = [
        {"name": name, "title": title, "role": role, "value": value.astype(int).tolist()} for name, (title, role, value) in matrices.items()
    ]
    found.append({"name": "mask", "title": "the mask", "role": "neutral", "choices": list(AHEAD), "value": "causal"})
    found.append({"name": "heads", "title": "heads", "role": "neutral", "choices": [1, 2], "value": 2})
    return found

"""The attention viewer: any model's weights, head by head, with what the weights bring beside them; in a notebook and on a page."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from IPython.display import display

from attn_course.figures.explorable import Explorable, joined_html, script_text, whole_page
from attn_course.figures.words import number

HERE = Path(__file__).parent
PARTS = 10_000  # weights are kept to four digits
ZERO = 0xA1  # the letter of weight 0, as viewer.js reads it: a text holds a number in two bytes or three, and packs well
MOST = 3_000_000  # weights of one viewer: a notebook of some megabytes
SUM_MAY_DIFFER = 0.02  # rows of bfloat16 sum to 1 so far
LISTED = 8
TITLE = "Attention viewer"


@dataclass(frozen=True)
class Text:
    """One text and its attention: weights (layers, heads, len, len), and norms (layers, heads, len) or None."""

    tokens: list[str]
    weights: np.ndarray
    norms: np.ndarray | None

    @property
    def name(self) -> str:
        """The beginning of the text."""
        words = " ".join("".join(self.tokens).split())
        return words if len(words) <= 60 else f"{words[:59]}…"


def attention_viewer(tokens: Sequence[str], weights: Any, values: Any = None, **where: Any) -> None:
    """Show the attention of a model on a text: each head's map, a query's row over the text, and all heads small.

    `tokens`: the pieces of the text. `weights`: (layers, heads, len, len), of one layer (heads, len, len), or of one head (len, len);
    row by row what a query gives to each key: arrays, tensors, or a list of layers as `output.attentions` of transformers is, with
    a batch of one. `values`: what each key brings where its weight is 1, as vectors (layers, heads, len, width) or as their norms
    (layers, heads, len): the values, or better the values times their head's part of W_O. The viewer then shows weight times norm
    too, as a share of the row (Kobayashi et al., 2020, arXiv:2004.10102).

    `layers`, `heads`: numbers of those in `weights`, if these are some of the model's. `layer`, `head`, `query`: where it opens, the
    first two by these numbers, the query by its place, -1 being the last token. `title`: what stands above.

    Weights are kept to four digits and norms to three; shares are computed from these. Raises ValueError if shapes do not fit,
    a number is not finite, a row sums neither to 1 nor to 0, or there are more than 3,000,000 weights: show some layers then.

    >>> import numpy as np
    >>> attention_viewer(["it", " is"], np.array([[1, 0], [0.25, 0.75]]))
    [explorable] Attention viewer, layers: 1, heads: 1, tokens: 2. Layer 0, head 0, the query “is” gives “is” 0.75 and “it” 0.25.
    """
    display(viewer([text_of(tokens, weights, values)], **where))


def attention_page(tokens: Sequence[str], weights: Any, values: Any = None, **where: Any) -> str:
    """Return the viewer as a whole HTML page that needs nothing beside it; see `attention_viewer`."""
    return whole_page(where.get("title", TITLE), viewer([text_of(tokens, weights, values)], **where)._repr_html_())


def text_of(tokens: Sequence[str], weights: Any, values: Any = None) -> Text:
    """Return what is shown of one text, once it is known to fit; see `attention_viewer`."""
    pieces = [_readable(token) for token in tokens]
    given = array = _array(weights)
    if array.ndim == 5 and array.shape[1] == 1:
        array = array[:, 0]
    own_axes = array.ndim
    array = array[(None,) * (4 - own_axes)] if 2 <= own_axes < 4 else array
    if array.ndim != 4 or array.shape[2] != array.shape[3] or 0 in array.shape:
        raise ValueError(f"weights must have the shape (layers, heads, len, len), without layers or heads too; got {given.shape}")
    if len(pieces) != array.shape[3]:
        raise ValueError(f"tokens must be as many as the columns of weights, {array.shape[3]}; got {len(pieces)}")
    if array.size > MOST:
        raise ValueError(f"weights must be {MOST:,} numbers at most; got {array.size:,}: show some of the layers or heads, or less text")
    _require_numbers("weights", array)
    sums = array.sum(axis=-1)
    wrong = (np.abs(sums - 1) > SUM_MAY_DIFFER) & (sums != 0)  # a query that may attend to nothing has weights 0
    if wrong.any():
        layer, head, query = (int(place) for place in np.argwhere(wrong)[0])
        raise ValueError(f"rows of weights must sum to 1, over the keys; got {sums[layer, head, query]:.3f} in [{layer}, {head}, {query}]")
    return Text(pieces, array, None if values is None else _norms(values, array, own_axes))


def _norms(values: Any, weights: np.ndarray, own_axes: int) -> np.ndarray:
    given = found = _array(values)
    if found.ndim == own_axes:
        found = np.linalg.norm(found, axis=-1)
    wanted = weights.shape[:3]
    if found.ndim != own_axes - 1 or found[(None,) * (3 - found.ndim)].shape != wanted:
        raise ValueError(f"values must have the shape {wanted} or, as vectors, {(*wanted, 'width')}, as weights have it; got {given.shape}")
    found = found.reshape(wanted)
    _require_numbers("values", found)
    return found


def _array(given: Any) -> np.ndarray:
    """Arrays, tensors, and lists of these as one array of float64."""
    if isinstance(given, list | tuple):
        parts = [_array(each) for each in given]
        if len(shapes := {part.shape for part in parts}) > 1:
            raise ValueError(f"weights and values must have the same shape in each layer; got {', '.join(map(str, sorted(shapes)))}")
        return np.array(parts)
    if hasattr(given, "detach"):  # a tensor, of a type that NumPy may not have
        given = given.detach().double().cpu().numpy()
    return np.asarray(given, dtype=np.float64)


def _require_numbers(argument: str, array: np.ndarray) -> None:
    if not (np.isfinite(array) & (array >= 0)).all():
        place = tuple(int(index) for index in np.argwhere(~(np.isfinite(array) & (array >= 0)))[0])
        raise ValueError(f"{argument} must be finite and 0 or more; got {array[place]} in {list(place)}")


def _readable(token: str) -> str:
    """A token as tokenizers write it, with its space and its line break."""
    if not isinstance(token, str):
        raise ValueError(f"tokens must be texts; got {token!r}")
    return token.replace("Ċ", "\n").replace("</w>", " ").replace("Ġ", " ").replace("▁", " ")


def viewer(
    texts: Sequence[Text],
    *,
    layers: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
    layer: int | None = None,
    head: int | None = None,
    query: int = -1,
    title: str = TITLE,
) -> Explorable:
    """Return the card of one text, or of several between which a reader chooses; see `attention_viewer`."""
    first = texts[0]
    numbers = _numbers("layers", layers, first.weights.shape[0]), _numbers("heads", heads, first.weights.shape[1])
    places = _place("layer", layer, numbers[0]), _place("head", head, numbers[1])
    if not -len(first.tokens) <= query < len(first.tokens):
        raise ValueError(f"query must be a place among {len(first.tokens)} tokens; got {query}")
    at = (*places, query % len(first.tokens))
    data = {
        "texts": [_data(text) for text in texts],
        "layers": numbers[0],
        "heads": numbers[1],
        **dict(zip(("layer", "head", "query"), at, strict=True)),
    }
    given = script_text(data)
    slug = f"viewer-{sha256(given.encode()).hexdigest()[:8]}"  # two viewers of one page: each finds its own numbers
    controls, look, script = (HERE.joinpath(f"viewer.{kind}").read_text(encoding="utf-8") for kind in ("html", "css", "js"))
    common = HERE.joinpath("explorable.js").read_text(encoding="utf-8")
    where = f"Layer {numbers[0][at[0]]}, head {numbers[1][at[1]]}, the query {_quoted(first, at[2])}"
    row = first.weights[at]
    order = [int(key) for key in np.argsort(-row, kind="stable")[:LISTED] if row[key] > 0]
    html = joined_html(
        slug,
        slug,
        controls.replace("{title}", escape(title)),
        look,
        _still(first, at, order, where),
        f'const DATA = "DATA";\n{common}\n{script}',
    ).replace("'DATA'", given, 1)
    said = " and ".join(f"{_quoted(first, key)} {number(row[key])}" for key in order[:2]) or "nothing any weight"
    counts = f"layers: {len(numbers[0])}, heads: {len(numbers[1])}, tokens: {len(first.tokens)}"
    return Explorable(html, f"{title}, {counts}. {where} gives {said}.")


def _numbers(name: str, given: Sequence[int] | None, count: int) -> list[int]:
    numbers = [*range(count)] if given is None else [int(each) for each in given]
    if len(numbers) != count:
        raise ValueError(f"{name} must be as many numbers as weights have {name}, {count}; got {numbers}")
    return numbers


def _place(name: str, given: int | None, known: list[int]) -> int:
    if given is not None and given not in known:
        raise ValueError(f"{name} must be one of {', '.join(map(str, known))}; got {given}")
    return 0 if given is None else known.index(given)


def _data(text: Text) -> dict[str, Any]:
    """What viewer.js finds of a text. Of a weight kept to four digits the first three are those of the weight itself."""
    rounded = np.rint(text.weights * (PARTS / 10)).astype(int) * 10
    letters = np.clip(np.rint(text.weights * PARTS).astype(int), rounded - 4, rounded + 4).clip(0) + ZERO
    norms = None if text.norms is None else text.norms.reshape(-1, len(text.tokens))
    return {
        "name": text.name,
        "tokens": text.tokens,
        "weights": letters.astype("<u4").tobytes().decode("utf-32-le"),
        "norms": None if norms is None else [[float(f"{norm:.3g}") for norm in row] for row in norms],
    }


def _quoted(text: Text, place: int) -> str:
    token = text.tokens[place]
    seen = token.replace(" ", "␣").replace("\n", "↵").replace("\t", "⇥")
    return f"“{token.strip() or seen}”"


def _still(text: Text, at: tuple[int, ...], order: Sequence[int], where: str) -> str:
    """The row where it opens, as a table for pages that run no scripts."""
    norms = None if text.norms is None else text.norms[at[:2]]
    head = "".join(f'<th scope="col">{words}</th>' for words in ("key", "weight", "", *(["norm"] if norms is not None else [])))
    rows = "".join(
        f'<tr><th scope="row">{escape(_quoted(text, key))}</th><td>{number(text.weights[(*at, key)], 3)}</td>'
        f"<td>{'█' * round(20 * text.weights[(*at, key)])}</td>{'' if norms is None else f'<td>{norms[key]:.3g}</td>'}</tr>\n"
        for key in order
    )
    caption = escape(f"{where}: the keys with most weight")
    return f'<table class="attn-table"><caption>{caption}</caption><thead><tr>{head}</tr></thead>\n<tbody>{rows}</tbody></table>\n'

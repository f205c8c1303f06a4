"""A language model for a notebook: text and arrays in and out, every head to be read, silenced, or run by a function of the reader's."""

import functools
import inspect
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attn_course.gpu.ops import attention
from attn_course.language.getting import HOW, ModelMissing, checked, model_path
from attn_course.language.stored import is_recording, question_of, record, stored
from attn_course.language.tokenizer import pieces, tokenizer_of
from attn_course.modules import Transformer, hooked
from attn_course.modules.gguf import read_gguf

Attend: TypeAlias = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
ENDS = (0, 2)  # the tokens <|endoftext|> and <|im_end|>
A_STEP = ("The cat sat because it was tired.", 13)  # whose queries, keys and values are stored: text and layer


@dataclass(frozen=True)
class Layer:
    """The matrices of one layer's attention, to be used as `x @ w` with positions as rows; heads stand side by side.

    `gain`: of the RMS norm that comes before, entry by entry. Query and key features 2i and 2i + 1 of a head are turned together.
    """

    w_query: Float[np.ndarray, "d_model heads_d_k"]
    w_key: Float[np.ndarray, "d_model kv_heads_d_k"]
    w_value: Float[np.ndarray, "d_model kv_heads_d_v"]
    w_output: Float[np.ndarray, "heads_d_v d_model"]
    gain: Float[np.ndarray, " d_model"]


def _answered(method: Callable[..., Any]) -> Callable[..., Any]:
    """Let a method of a model that is not here give the stored answer, and write down what one that is here says (stored.RECORD)."""
    signature = inspect.signature(method)

    @functools.wraps(method)
    def answer(self: "LanguageModel", *args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(self, *args, **kwargs)
        changes = {name: value for name in ("silent", "exchanged") if (value := getattr(self, name))}
        question = question_of(method.__name__, dict([*bound.arguments.items()][1:]) | changes)
        if self.network is None:
            if method.__name__ in ("write", "next_tokens"):
                self._try_attend()
            return stored(question)
        found = method(self, *args, **kwargs)
        if is_recording():
            if self.attend is None:
                record(question, found)
            else:  # what a reader's function makes of it is not the model's answer
                replace(self, _attend=None)._a_step()
        return found

    return answer


@dataclass(eq=False)
class LanguageModel:
    """SmolLM2-135M-Instruct, or the answers of it that are stored with the course where its file is missing.

    30 layers of 9 query heads on 3 key heads, d_model 576, d_k 64, rotary positions; layers and heads count from 0. Most of its numbers
    have 4 bits in the file, those of the table of tokens 8; it computes in float32.

    The attribute `attend` may be set to a function of NumPy arrays: `write` and `next_tokens` then call it in every layer, for one token at
    a time, with queries (9, 1, 64), keys and values (9, n, 64), float64, queries and keys already rotated, each key head three times; it
    returns (9, 1, 64). Where only stored answers are here it is tried on one stored step instead.

    `network`: the `Transformer` of `attn_course.modules`, with places for hooks; None where only stored answers are here.
    """

    network: Transformer | None = field(repr=False)
    tokenizer: Any = field(repr=False)
    silent: tuple[tuple[int, int], ...] = ()
    exchanged: tuple[tuple[str, str, tuple[int, ...]], ...] = ()
    _attend: Attend | None = field(default=None, repr=False)

    @property
    def attend(self) -> Attend | None:
        """The reader's function; None is the course's own attention."""
        return self._attend

    @attend.setter
    def attend(self, function: Attend | None) -> None:
        if function is not None and not callable(function):
            raise TypeError(f"attend must be a function of query, key and value; got {type(function).__name__}")
        self._attend = function

    @property
    def n_layers(self) -> int:
        """How many layers there are: 30."""
        return 30 if self.network is None else len(self.network.blocks)

    @property
    def n_heads(self) -> int:
        """How many query heads a layer has: 9."""
        return 9 if self.network is None else int(self._attentions[0].n_heads)

    @property
    def is_here(self) -> bool:
        """Whether the model itself is here, and not its stored answers only."""
        return self.network is not None

    def silenced(self, *heads: tuple[int, int]) -> "LanguageModel":
        """Return the model with heads (layer, head) that pass on zeros.

        Raises ValueError if there is no such head.
        """
        for layer, head in heads:
            if not (0 <= layer < self.n_layers and 0 <= head < self.n_heads):
                wanted = f"(layer, head) with layers 0 to {self.n_layers - 1} and heads 0 to {self.n_heads - 1}"
                raise ValueError(f"heads must be {wanted}; got {(layer, head)}")
        return replace(self, silent=tuple(sorted({*self.silent, *heads})))

    def exchange_values(self, word: str, other: str, layers: Collection[int]) -> "LanguageModel":
        """Return the model in which, in these layers, a word has the values that `other` would have in its place.

        The same heads are silent there. Queries and keys stay those of the text as it is, up to what the exchange changes in layers above.
        Both words must be single tokens, and the first one stand in the text just once.
        """
        return replace(self, exchanged=(*self.exchanged, (word, other, tuple(layers))))

    @_answered
    def tokens(self, text: str) -> list[str]:
        """Return the pieces that the model reads: a space belongs to the word behind it."""
        return pieces(self.tokenizer, self.ids(text).tolist())

    @_answered
    def write(self, text: str, tokens: int = 20, *, temperature: float = 0.0, seed: int = 0) -> str:
        """Return the text and what the model writes behind it, up to `tokens` tokens or the end that it sets itself.

        `temperature`: 0 takes the likeliest token; else it is drawn with softmax(logits / temperature). Raises ValueError if there
        is no text, or a number is negative; or as `attend` does.
        """
        if tokens < 0 or not temperature >= 0.0:
            raise ValueError(f"tokens and temperature must be 0 or more; got {tokens} and {temperature}")
        ids, random = self.ids(text), np.random.default_rng(seed)
        new: list[int] = []
        with torch.inference_mode(), self._changed(ids):
            cache = self._network.new_cache()
            logits = self._read(ids, cache)
            while len(new) < tokens:
                if temperature > 0.0:
                    logits = logits / temperature + torch.from_numpy(random.gumbel(size=logits.shape)).float()
                token = int(logits.argmax())
                if token in ENDS:
                    break
                new.append(token)
                if len(new) < tokens:
                    logits = self._network(torch.tensor([token]), cache=cache, last=True)[0]
        return text + self.tokenizer.decode(new)

    @_answered
    def next_tokens(self, text: str, count: int = 5, *, temperature: float = 1.0) -> dict[str, float]:
        """Return the likeliest next tokens with their probabilities, the likeliest first; ValueError if the temperature is not positive."""
        if not temperature > 0.0:
            raise ValueError(f"temperature must be positive; got {temperature}")
        ids = self.ids(text)
        with torch.inference_mode(), self._changed(ids):
            weights = (self._read(ids, self._network.new_cache()).double() / temperature).softmax(dim=-1)
        best = weights.topk(count)
        return dict(zip(pieces(self.tokenizer, best.indices.tolist()), best.values.tolist(), strict=True))

    @_answered
    def maps(self, text: str, layer: int | None = None) -> Float[np.ndarray, "*layers heads len len"]:
        """Return the weights of every head, or of those of one layer.

        maps(text)[13, 8, 4, 1] and maps(text, 13)[8, 4, 1] are what token 4 gives to token 1 in layer 13, head 8. Raises ValueError if
        there is no such layer.
        """
        if layer is not None and not 0 <= layer < self.n_layers:
            raise ValueError(f"layer must be 0 to {self.n_layers - 1}; got {layer}")
        found: list[Tensor] = []
        wanted = range(self.n_layers) if layer is None else (layer,)
        self._look(text, {f"blocks.{each}.attention.weights": found.append for each in wanted})
        return torch.stack(found).numpy() if layer is None else found[0].numpy()

    @_answered
    def residual(self, text: str) -> Float[np.ndarray, "depths len d_model"]:
        """Return the residual stream: what goes into layer 0, and what comes out of each of the 30 layers."""
        found: list[Tensor] = []
        self._look(text, {"embedded": found.append} | {f"blocks.{layer}.stream": found.append for layer in range(self.n_layers)})
        return torch.stack(found).numpy()

    def around_heads(self, layer: int, text: str) -> tuple[Float[np.ndarray, "len d_model"], Float[np.ndarray, "len d_model"]]:
        """Return what the heads of one layer read, behind the norm, and what they add to the stream.

        Raises ModelMissing where only stored answers are here.
        """
        found: list[Tensor] = []
        block: Any = self._network.blocks[layer]
        before = f"blocks.{layer - 1}.stream" if layer else "embedded"
        self._look(text, {before: found.append, f"blocks.{layer}.attended": found.append})
        return block.norm_attention(found[0]).detach().numpy(), found[1].numpy()

    def logits(self, text: str) -> Float[np.ndarray, "len n_tokens"]:
        """Return a score for each of the 49,152 tokens behind each token of the text."""
        return self._look(text, {}).numpy()

    def layer(self, number: int) -> Layer:
        """Return the matrices of one layer's attention.

        Raises ModelMissing where only stored answers are here.
        """
        state = self._network.blocks[number].state_dict()
        names = [f"attention.w_{role}" for role in ("query", "key", "value", "output")]
        return Layer(*(state[name].numpy().copy() for name in (*names, "norm_attention.weight")))

    @_answered
    def perplexity(
        self,
        text: str,
        *,
        start: int = 64,
        window: int | None = None,
        sinks: int = 0,
        scale: float | None = None,
        is_causal: bool = True,
        positions: Collection[float] | None = None,
        frequencies: Collection[float] | None = None,
        temperature: float = 1.0,
        layers: Collection[int] | None = None,
    ) -> float:
        """Return e to the mean loss of each token behind the first `start`: among how many equally likely ones it is as hard to guess.

        `window`: how many tokens a query sees, its own included; `sinks`: how many of the first it sees besides. `scale`: factor of
        the scores; 1 / sqrt(64) if left out. `is_causal`: False lets every token see those behind it. `positions`: where the tokens
        stand; `frequencies`: radians for each position of the 32 pairs of features; `temperature`: divides the scores, as YaRN
        does, Eq. yarn-sharpens-weights. `layers`: those that are changed, all if left out; `positions` count in every layer. Raises
        ValueError if the text has not more than `start` tokens, or the window is empty.
        """
        ids = self.ids(text)
        if not 0 < start < len(ids):
            raise ValueError(f"text must have more than start = {start} tokens, and start be 1 or more; got {len(ids)} tokens")
        width = len(ids) if window is None else window
        if width < 1:
            raise ValueError(f"window must be 1 or more, its own token included; got {window}")
        order = torch.arange(len(ids))
        near = (order[:, None] - order < width) | (order < sinks)
        changes = {"frequencies": frequencies, "temperature": temperature}

        def attend(query: Tensor, key: Tensor, value: Tensor, **options: Any) -> Tensor:
            result: Tensor = attention(query, key, value, **options | {"mask": near, "is_causal": is_causal})
            return result

        with torch.inference_mode(), self._changed(ids, attend=attend, scale=scale, layers=layers, **changes):
            where = None if positions is None else torch.as_tensor([*positions], dtype=torch.float64)
            logits = self._network(ids, positions=where)[start - 1 : -1]
        return float(torch.nn.functional.cross_entropy(logits, ids[start:]).exp())

    @property
    def _attentions(self) -> list[Any]:
        return [block.attention for block in self._network.blocks]

    @property
    def _network(self) -> Transformer:
        if self.network is None:
            raise ModelMissing(f"the language model is needed for this: {HOW}")
        return self.network

    def ids(self, text: str) -> Tensor:
        """Return the numbers of the tokens of a text; ValueError if it has none, ModelMissing where only stored answers are here."""
        if self.tokenizer is None:
            raise ModelMissing(f"the language model is needed for this: {HOW}")
        ids = self.tokenizer.encode(text).ids
        if not ids:
            raise ValueError("text must have a token at least; got none")
        return torch.tensor(ids)

    def _read(self, ids: Tensor, cache: Any) -> Tensor:
        """The logits behind a text: read at once, or token by token by the reader's function."""
        parts = ids.split(1 if self.attend else len(ids))
        return [self._network(part, cache=cache, last=True)[0] for part in parts][-1]

    def _look(self, text: str, hooks: Mapping[str, Callable[[Tensor], Any]]) -> Tensor:
        ids = self.ids(text)
        with torch.inference_mode(), self._changed(ids, attend=attention), hooked(self._network, hooks):
            logits: Tensor = self._network(ids)
        return logits

    @contextmanager
    def _changed(
        self,
        ids: Tensor,
        *,
        attend: Callable[..., Any] | None = None,
        scale: float | None = None,
        layers: Collection[int] | None = None,
        **changes: Any,
    ) -> Iterator[None]:
        """Put into the network what this view of it changes, and what one call does; take it out again."""
        hooks = self._hooks(ids)
        function = attend or (_in_torch(self.attend) if self.attend else attention)
        blocks = [block for number, block in enumerate(self._attentions) if layers is None or number in layers]
        before = [{**vars(block)} for block in blocks]
        try:
            for block in blocks:
                block.attend, block.options = function, block.options | {"scale": scale}
                for name, value in changes.items():
                    setattr(block, name, getattr(block, name) if value is None else value)
            with hooked(self._network, hooks):
                yield
        finally:
            for block, attributes in zip(blocks, before, strict=True):
                vars(block).update(attributes)

    def _hooks(self, ids: Tensor) -> dict[str, Callable[[Tensor], Any]]:
        exchanges: dict[str, _Exchange] = {}
        silence: dict[str, Callable[[Tensor], Any]] = {}
        for layer in {layer for layer, _ in self.silent}:
            heads = [head for number, head in self.silent if number == layer]
            silence[f"blocks.{layer}.attention.heads"] = functools.partial(_without, heads)
        for word, other, layers in self.exchanged:
            place, replaced = self._replaced(ids, word, other)
            values: dict[int, Tensor] = {}
            watch = {f"blocks.{layer}.attention.value": functools.partial(values.__setitem__, layer) for layer in layers}
            with hooked(self._network, silence | watch):
                self._network(replaced)
            for layer in layers:
                name = f"blocks.{layer}.attention.value"
                exchanges[name] = _Exchange(place, values[layer][:, place], exchanges.get(name))
        return silence | exchanges

    def _replaced(self, ids: Tensor, word: str, other: str) -> tuple[int, Tensor]:
        """The place of a word among the tokens, and the tokens with another one there."""
        read = pieces(self.tokenizer, ids.tolist())
        places = [place for place, piece in enumerate(read) if piece.strip() == word]
        new = self.tokenizer.encode(read[places[0]].replace(word, other)).ids if len(places) == 1 else []
        if len(new) != 1:
            raise ValueError(f"word must be a token that stands in the text once, and other a token too; got {word!r}, {other!r} in {read}")
        replaced = ids.clone()
        replaced[places[0]] = new[0]
        return places[0], replaced

    @_answered
    def _a_step(self) -> list[np.ndarray]:
        """Query, keys, values and output of the last token of A_STEP, as `attend` gets them, and as it should answer."""
        found: list[np.ndarray] = []
        text, number = A_STEP
        ids = self.ids(text)

        def attend(query: Tensor, key: Tensor, value: Tensor, **options: Any) -> Tensor:
            output: Tensor = attention(query, key, value, **options)
            found[:] = [*_for_readers(query[:, -1:], key, value), output[:, -1:].numpy()]
            return output

        with torch.inference_mode(), self._changed(ids, attend=attend, layers=(number,)):
            self._network(ids)
        return found

    def _try_attend(self) -> None:
        """Where the model is not here, a reader's function must at least agree with it on the stored arrays of one step.

        Raises ModelMissing if it does not: then nobody can say here what it would write.
        """
        if self.attend is None:
            return
        query, key, value, wanted = stored(question_of("_a_step", {}))
        found = _in_torch(self.attend)(*map(torch.from_numpy, (query, key, value)))
        if not np.allclose(found, wanted, atol=1e-4):
            layer = A_STEP[1]
            raise ModelMissing(
                f"attend differs from the model's attention in layer {layer}; only the model can say what it writes with it: {HOW}"
            )


def _without(heads: list[int], found: Tensor) -> Tensor:
    return found.index_fill(-2, torch.tensor(heads), 0.0)


class _Exchange:
    """A hook that gives one position other values, behind an earlier one, while the text passes by in one part or in many."""

    def __init__(self, place: int, values: Tensor, earlier: "_Exchange | None" = None) -> None:
        self.behind, self.values, self.earlier = place, values, earlier

    def __call__(self, found: Tensor) -> Tensor:
        found = found if self.earlier is None else self.earlier(found)
        place, self.behind = self.behind, self.behind - found.shape[-2]
        if not 0 <= place < found.shape[-2]:
            return found
        changed = found.clone()
        changed[..., place, :] = self.values
        return changed


def _for_readers(query: Tensor, key: Tensor, value: Tensor) -> list[np.ndarray]:
    """Float64 arrays with a key head for each query head."""
    groups = query.shape[-3] // key.shape[-3]
    return [query.double().numpy(), *(rows.repeat_interleave(groups, dim=-3).double().numpy() for rows in (key, value))]


def _in_torch(function: Attend) -> Callable[..., Tensor]:
    """A reader's function as a layer calls it.

    Raises ValueError if it returns anything but numbers of the shape of the query.
    """

    def attend(query: Tensor, key: Tensor, value: Tensor, **_: Any) -> Tensor:
        output = np.asarray(function(*_for_readers(query, key, value)))
        if output.shape != (*query.shape[:-1], value.shape[-1]) or output.dtype.kind != "f" or not np.isfinite(output).all():
            wanted = f"finite floating-point numbers of shape {(*query.shape[:-1], value.shape[-1])}"
            raise ValueError(f"attend must return {wanted}; got {output.dtype} of shape {output.shape}, {_finite(output)}")
        return torch.from_numpy(np.ascontiguousarray(output)).to(query)

    return attend


def _finite(output: np.ndarray) -> str:
    return "all finite" if output.dtype.kind != "f" or np.isfinite(output).all() else "not all finite"


@functools.cache
def _loaded(path: Path) -> LanguageModel:
    gguf = read_gguf(path)
    return LanguageModel(Transformer.from_gguf(gguf), tokenizer_of(gguf))


def language_model() -> LanguageModel:
    """Return SmolLM2, loaded once in a process (4 to 10 s, 1.1 GB); where its file is not here, print so and answer from what is stored."""
    try:
        model = _loaded(checked(model_path()))
    except ModelMissing as error:
        print(f"{error}. Until then its answers are stored ones, and a function of yours is tried on one stored step.")
        return LanguageModel(None, None)
    return replace(model)

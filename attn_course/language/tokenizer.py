"""SmolLM2's tokenizer, made from the words and merges of its own file: byte-level pairs, each digit by itself."""

from collections.abc import Sequence
from typing import Any

from attn_course.modules.gguf import Gguf

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")


def tokenizer_of(gguf: Gguf) -> Any:
    """Return a `tokenizers.Tokenizer`: `encode(text).ids`, `decode(ids)`."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    made = Tokenizer(models.BPE(vocab={token: number for number, token in enumerate(gguf.tokens)}, merges=gguf.merges))
    digits, pieces = pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.pre_tokenizer = pre_tokenizers.Sequence([digits, pieces])
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([*SPECIAL])
    return made


def pieces(tokenizer: Any, ids: Sequence[int]) -> list[str]:
    """Return the text of each token by itself; a token that is part of a character is shown as a replacement sign."""
    return [tokenizer.decode([number], skip_special_tokens=False) for number in ids]

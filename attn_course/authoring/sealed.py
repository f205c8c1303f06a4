"""Built files on disk: what they say of their own making, and whether anyone touched them since."""

import hashlib
import json
from dataclasses import dataclass, fields
from pathlib import Path

NO_SEAL = "0" * 64


@dataclass(frozen=True)
class Record:
    """What a built notebook keeps in its metadata, under "attn_course".

    `source`: path of the source relative to the notebook. `sha256`: fingerprint of the source and of the package files its code
    needs. `run_sha256`: the same for code cells alone: while it stays, the stored outputs stay good. `built_sha256`: seal: hash
    of the whole file, outputs included, with this entry zeroed.
    """

    source: str = ""
    sha256: str = ""
    run_sha256: str = ""
    built_sha256: str = NO_SEAL


def record_of(text: str) -> Record:
    """Return the record in a notebook's text; an empty one if the text is no notebook of ours."""
    try:
        found = json.loads(text)["metadata"]["attn_course"]
        return Record(**{field.name: str(found.get(field.name, "")) for field in fields(Record)})
    except (ValueError, LookupError, TypeError, AttributeError):
        return Record()


def seal(text: str) -> str:
    """Return the text of a notebook whose seal is zeroed, with the right seal."""
    return _with_seal(text, NO_SEAL, hashlib.sha256(text.encode()).hexdigest())


def is_untouched(text: str) -> bool:
    """Return whether a notebook's text is, to the byte, what a build wrote."""
    stored = record_of(text).built_sha256
    return seal(_with_seal(text, stored, NO_SEAL)) == text


def read_text(path: Path) -> str | None:
    """Return a file's text with LF line ends, or None if there is no such file; bytes that are no UTF-8 are replaced."""
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else None


def _with_seal(text: str, old: str, new: str) -> str:
    return text.replace(f'"built_sha256": "{old}"', f'"built_sha256": "{new}"')

"""Times as teachers and nbgrader write them."""

from datetime import UTC, datetime, time
from zoneinfo import ZoneInfo


def parse_time(text: str, *, last_of_day: bool = False) -> datetime:
    """Return the time that a text means, in UTC.

    `text`: as nbgrader writes it, "2026-11-20 23:59:00.000000 UTC" or with a zone such as Europe/Berlin, or ISO 8601. Without a
    zone it is UTC. `last_of_day`: what a day without a time means: its last second, rather than its first. Raises ValueError if
    the text is no time.

    >>> parse_time("2026-11-20 23:59 Europe/Berlin").isoformat()
    '2026-11-20T22:59:00+00:00'
    >>> parse_time("2026-11-20", last_of_day=True).isoformat()
    '2026-11-20T23:59:59+00:00'
    """
    words = text.split()
    try:
        zone = ZoneInfo(words.pop()) if len(words) > 1 and words[-1][0].isalpha() else None
        when = datetime.fromisoformat("T".join(words[:2]) + "".join(words[2:]))
        if last_of_day and len(words) == 1 and len(words[0]) <= len("2026-11-20"):
            when = datetime.combine(when, time(23, 59, 59))
    except (ValueError, LookupError):  # LookupError: a zone nobody knows
        raise ValueError(f"wanted a time such as '2026-11-20 23:59 UTC'; got {text.strip()!r}") from None
    return (when.replace(tzinfo=zone or UTC) if when.tzinfo is None else when).astimezone(UTC)

"""Numbers for the labels of made-up lessons."""

from typing import Any


def toy_numbers(**labels: list[str]) -> dict[str, dict[str, Any]]:
    """What numbers.json would hold: lessons by slug with their labels, counted from 1.

    >>> toy_numbers(early=["first", "second"])["labels"]
    {'early': {'first': '1.1', 'second': '1.2'}}
    """
    counted = {
        slug: {label: f"{lesson}.{place}" for place, label in enumerate(known, 1)} for lesson, (slug, known) in enumerate(labels.items(), 1)
    }
    slugs = {slug: {"number": lesson, "title": slug.title()} for lesson, slug in enumerate(labels, 1)}
    return {"labels": counted, "tasks": {slug: {} for slug in labels}, "slugs": slugs}

"""The lessons in a column, with arcs down to those that use their equations: readable at the width of a phone, and each name a link."""

from collections.abc import Mapping, Sequence
from html import escape

WIDTH, ROW, LEFT = 372, 24, 222  # pixels; where the arcs begin
SHORT, LONG = 14.0, 140.0  # how far an arc goes to the right: one to the next lesson, and the longest


def arcs(lessons: Sequence[tuple[str, str]], links: Mapping[tuple[int, int], int]) -> str:
    """Return the drawing as SVG.

    `lessons`: name and address of each. `links`: (place of the lesson that is used, place of one below it that uses it) -> how often.
    """
    longest = max((lower - upper for upper, lower in links), default=1)
    lines = []
    for (upper, lower), count in sorted(links.items(), key=lambda item: -item[1]):
        rows = lower - upper
        reach = SHORT + (LONG - SHORT) * (rows - 1) / max(1, longest - 1)
        way = f"M{LEFT} {_level(upper)}A{reach:.0f} {rows * ROW / 2:.0f} 0 0 1 {LEFT} {_level(lower)}"
        lines.append(f'<path d="{way}" data-ends="{upper} {lower}" stroke-width="{0.5 + 0.5 * count:.1f}"/>')
    for place, (name, address) in enumerate(lessons):
        used = sum(count for (upper, _), count in links.items() if upper == place)
        lines.append(
            f'<circle cx="{LEFT}" cy="{_level(place)}" r="3.5"/><a href="{escape(address)}" data-place="{place}">'
            f'<text y="{_level(place) + 5}">{escape(name)}</text></a>'
        )
        if used:
            lines.append(f'<text class="map-used" x="{LEFT - 12}" y="{_level(place) + 5}">{used} ×</text>')
    said = "The lessons, with arcs from each down to those that use its equations."
    return f'<svg class="map-arcs" viewBox="0 0 {WIDTH} {ROW * len(lessons)}" role="group" aria-label="{said}">{"".join(lines)}</svg>'


def _level(place: int) -> int:
    return ROW // 2 + ROW * place

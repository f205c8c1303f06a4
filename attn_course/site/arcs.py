"""The lessons in a column, with arcs down to those that use their equations: as broad as the page, and each name a link."""

from collections.abc import Mapping, Sequence
from html import escape

ROW, LEFT = 24, 232  # pixels; where the arcs begin
SHORT, LONG = 10, 99  # how far an arc goes to the right, in percent of what is there: one to the next lesson, and the longest


def arcs(lessons: Sequence[tuple[str, str]], links: Mapping[tuple[int, int], int]) -> str:
    """Return the drawing as SVG.

    `lessons`: name and address of each. `links`: (place of the lesson that is used, place of one below it that uses it) -> how often.
    """
    longest = max((lower - upper for upper, lower in links), default=1)
    ways, names, height = [], [], ROW * len(lessons)
    often = [sum(count for (upper, _), count in links.items() if upper == place) for place in range(len(lessons))]
    busiest = often.index(max(often, default=0)) if often else 0
    for (upper, lower), count in sorted(links.items(), key=lambda item: -item[1]):
        rows = lower - upper
        reach = SHORT + (LONG - SHORT) * (rows - 1) / max(1, longest - 1)
        way = f"M0 {_level(upper)}A{reach:.0f} {rows * ROW / 2:.0f} 0 0 1 0 {_level(lower)}"
        kind = ' class="busy"' * (upper == busiest)
        ways.append(f'<path d="{way}" data-ends="{upper} {lower}"{kind} stroke-width="{0.5 + 0.5 * count:.1f}"/>')
    for place, (name, address) in enumerate(lessons):
        names.append(
            f'<circle cx="{LEFT}" cy="{_level(place)}" r="3.5"/><a href="{escape(address)}" data-place="{place}">'
            f'<text y="{_level(place) + 5}">{escape(name)}</text></a>'
        )
        if used := often[place]:
            names.append(f'<text class="map-used" x="{LEFT - 12}" y="{_level(place) + 5}">{used} ×</text>')
    said = "The lessons, with arcs from each down to those that use its equations."
    broad = f'<svg x="{LEFT}" width="100%" height="{height}" viewBox="0 0 100 {height}" preserveAspectRatio="none">{"".join(ways)}</svg>'
    return (
        f'<svg class="map-arcs" height="{height}" style="--left: {LEFT}px" role="group" aria-label="{said}">{broad}{"".join(names)}</svg>'
    )


def _level(place: int) -> int:
    return ROW // 2 + ROW * place

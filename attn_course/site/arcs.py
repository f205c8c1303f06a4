"""The lessons in a column, with arcs down to those that use their equations: as broad as the page, and each name a link."""

from collections.abc import Mapping, Sequence
from html import escape

ROW, USED, HEAD = 24, 288, 30  # pixels: of a lesson; where it is said how often it is used; of the name of a part
SHORT, LONG = 10, 99  # how far an arc goes to the right, in percent of what is there: one to the next lesson, and the longest


def arcs(lessons: Sequence[tuple[str, str]], links: Mapping[tuple[int, int], int], parts: Mapping[int, str]) -> str:
    """Return the drawing as SVG; the arcs of the lesson that is used most are lit.

    `lessons`: name and address of each. `links`: (place of the lesson that is used, place of one below it that uses it) -> how often.
    `parts`: place of the lesson that a part begins with -> its name; arcs have the colour of the part that they come from.
    """
    longest = max((lower - upper for upper, lower in links), default=1)
    often, busiest = used(links, len(lessons)), most_used(links, len(lessons))
    part = [max(0, sum(begin <= place for begin in parts) - 1) for place in range(len(lessons))]
    levels = [ROW * place + ROW // 2 + HEAD * (part[place] + bool(parts)) for place in range(len(lessons))]
    height = levels[-1] + ROW // 2
    ways, names = [], []
    for (upper, lower), count in sorted(links.items(), key=lambda item: (-item[1], item[0])):
        reach = SHORT + (LONG - SHORT) * (lower - upper - 1) / max(1, longest - 1)
        way = f"M0 {levels[upper]}A{reach:.0f} {(levels[lower] - levels[upper]) / 2:.0f} 0 0 1 0 {levels[lower]}"
        kind = f"part-{part[upper]}{' busy' * (upper == busiest)}"
        ways.append(f'<path d="{way}" data-ends="{upper} {lower}" class="{kind}" stroke-width="{0.75 + 0.75 * count:.1f}"/>')
    for place, (name, address) in enumerate(lessons):
        y = levels[place]
        if place in parts:
            names.append(f'<text class="map-part" y="{y - ROW + 6}">{escape(parts[place])}</text>')
        names.append(
            f'<circle class="part-{part[place]}" cy="{y}" r="4"/><a href="{escape(address)}" data-place="{place}">'
            f'<text y="{y + 5}">{escape(name)}</text></a>'
        )
        if often[place]:
            names.append(f'<text class="map-used" x="{USED}" y="{y + 5}">{often[place]} ×</text>')
    said = "The lessons, with arcs from each down to those that use its equations."
    broad = f'<svg width="100%" height="{height}" viewBox="0 0 100 {height}" preserveAspectRatio="none">{"".join(ways)}</svg>'
    return f'<svg class="map-arcs" height="{height}" role="group" aria-label="{said}"><g class="map-ways">{broad}</g>{"".join(names)}</svg>'


def used(links: Mapping[tuple[int, int], int], lessons: int) -> list[int]:
    """How often each lesson is used by another."""
    return [sum(count for (upper, _), count in links.items() if upper == place) for place in range(lessons)]


def most_used(links: Mapping[tuple[int, int], int], lessons: int) -> int:
    """The place of the lesson that is used most."""
    often = used(links, lessons)
    return often.index(max(often))

"""Grouped bar charts as inline SVG, with an interval on each bar that has one."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from markupsafe import Markup

from medtest.report.charts.figures import SERIES, Bar
from medtest.report.charts.svg import FAINT, GRID, INK, closed, line, open_svg, text, upright


def bar_panel(
    title: str,
    groups: Sequence[str],
    series: Sequence[tuple[str, Sequence[Bar]]],
    *,
    y_name: str,
    high: float = 1.0,
    colours: Sequence[str] = SERIES,
    width: int = 360,
    height: int = 210,
) -> Markup:
    """Return one panel of bars.

    Args:
        title: Heading.
        groups: Labels below the groups.
        series: Name and bars of each series, one bar per group; NaN for a gap.
        y_name: Name of the y axis.
        high: Upper end of the y axis; the lower end is 0.
        colours: Colours of the series.
        width: In user units.
        height: In user units.
    """
    left, right, top, bottom = 50, 8, 26, 28
    parts = [open_svg(width, height, title), text(4, 15, title, bold=True)]
    inner = height - top - bottom

    def down(value: float) -> float:
        return top + inner * (1 - min(max(value, 0.0), high) / high)

    for step in range(5):
        value = high * step / 4
        parts.append(line(left, down(value), width - right, down(value), GRID))
        parts.append(text(left - 5, down(value) + 4, f"{value:.3g}", anchor="end", size=10, colour=FAINT))
    parts.append(upright(13, top + inner / 2, y_name))
    room = (width - left - right) / max(len(groups), 1)
    each = 0.8 * room / max(len(series), 1)
    for place, group in enumerate(groups):
        start = left + room * place + 0.1 * room
        parts.append(text(start + 0.4 * room, height - bottom + 15, group, anchor="middle", size=10, colour=FAINT))
        for number, (name, bars) in enumerate(series):
            bar = bars[place]
            if bar.value != bar.value:
                continue
            x, y = start + each * number, down(bar.value)
            has_interval = bar.low == bar.low
            words = f"{name}, {group}: {bar.value:.3f}"
            words += f" ({bar.low:.3f} to {bar.high:.3f})" if has_interval else ""
            parts.append(
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(each - 1, 1):.1f}" height="{top + inner - y:.1f}" '
                f'fill="{colours[number % len(colours)]}"><title>{escape(words)}</title></rect>'
            )
            if has_interval:
                middle = x + each / 2
                parts.append(line(middle, down(bar.low), middle, down(bar.high), INK, 1.2))
    return closed(parts)

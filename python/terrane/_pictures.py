"""Pictures for notebooks: SVG and HTML, without scripts and without dependencies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._views import Stats, Tree

_WIDTH = 720
_ROW = 26
_LEFT = 78
_BARS = 440
# One hue for each run, readable for people who are colour-blind (Okabe and Ito).
_COLOURS = ("#0072b2", "#56b4e9", "#009e73", "#e69f00", "#cc79a7", "#d55e00")
_STYLE = "font-family:ui-monospace,monospace;font-size:12px"


def size(count: float) -> str:
    """Returns a number of bytes with its unit.

    >>> size(1536), size(10)
    ('1.50 KiB', '10 B')
    """
    if count < 1024:
        return f"{count:.0f} B"
    for unit in ("KiB", "MiB", "GiB", "TiB"):
        count /= 1024
        if count < 1024 or unit == "TiB":
            break
    digits = 2 if count < 10 else 1 if count < 100 else 0
    return f"{count:.{digits}f} {unit}"


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="currentColor">{escape(text)}</text>'


def _bar(y: float, width: float, parts: Sequence[tuple[int, str]], capacity: int) -> str:
    """Draws a frame whose width is the capacity, and a segment for each run."""
    full = max(capacity, sum(count for count, _ in parts), 1)
    out = (
        f'<rect x="{_LEFT}" y="{y:.1f}" width="{width:.1f}" height="{_ROW - 8}" fill="none" '
        f'stroke="currentColor" stroke-opacity="0.4"/>'
    )
    x = float(_LEFT)
    for number, (count, title) in enumerate(parts):
        length = width * count / full
        colour = _COLOURS[number % len(_COLOURS)]
        out += (
            f'<rect x="{x:.2f}" y="{y:.1f}" width="{max(length - 0.5, 0.5):.2f}" height="{_ROW - 8}" '
            f'fill="{colour}"><title>{escape(title)}</title></rect>'
        )
        x += length
    return out


def tree(view: Tree) -> str:
    """Draws a line for the memtable and for each level; a segment is a run."""
    rows: list[tuple[str, int, list[tuple[int, str]], str]] = []
    memory = [(view.memtable_bytes, f"{view.memtable_entries:,} entries")] if view.memtable_entries else []
    label = f"{size(view.memtable_bytes)}, {view.memtable_entries:,} entries"
    rows.append(("memtable", view.buffer_bytes, memory, label))
    for level in view.levels:
        parts = [(run.size_bytes, f"{size(run.size_bytes)} in {len(run.tables)} tables") for run in level.runs]
        runs = f"{len(level.runs)} run" + ("s" if len(level.runs) != 1 else "")
        label = f"{size(level.size_bytes)}, {runs}, {level.entries:,} entries" if parts else "empty"
        rows.append((f"level {level.level}", level.capacity_bytes or level.size_bytes, parts, label))
    # A constant growth factor is a constant step.
    scales = [math.log2(max(capacity, sum(count for count, _ in parts), 2)) for _, capacity, parts, _ in rows]
    low, high = min(scales) - 2, max(scales)
    height = _ROW * (len(rows) + 1) + 6
    out = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
        f'viewBox="0 0 {_WIDTH} {height}" style="{_STYLE}" role="img">'
        f"<title>Tree of keyspace {escape(view.keyspace)}</title>"
    )
    out += _text(0, 14, f"{view.keyspace}: {view.design}")
    for number, ((name, capacity, parts, label), scale) in enumerate(zip(rows, scales, strict=True)):
        y = _ROW * (number + 1) + 2
        width = _BARS * max((scale - low) / (high - low), 0.1)
        out += _text(0, y + 14, name) + _bar(y, width, parts, capacity)
        out += _text(_LEFT + width + 8, y + 14, label)
    return out + "</svg>"


def _or_dash(number: float | None, decimals: int) -> str:
    return "-" if number is None else f"{number:.{decimals}f}"


def stats(all: Stats) -> str:
    """Returns the metrics that are not zero as a table."""
    rows = [
        ("write amplification", _or_dash(all.write_amplification, 2)),
        ("read amplification", _or_dash(all.read_amplification, 2)),
    ]
    names = type(all).__mro__[1].__dataclass_fields__  # type: ignore[attr-defined]
    for name in names:
        value = getattr(all, name)
        if value:
            is_bytes = "bytes" in name
            rows.append((name.replace("_", " "), size(value) if is_bytes else f"{value:,}"))
    body = "".join(f"<tr><td>{escape(name)}</td><td>{escape(value)}</td></tr>" for name, value in rows)
    latencies = "".join(
        f"<tr><td>{escape(name)}</td><td>{one.count:,}</td><td>{_or_dash(one.p50, 1)}</td>"
        f"<td>{_or_dash(one.p99, 1)}</td><td>{_or_dash(one.max, 1)}</td></tr>"
        for name, one in all.latencies.items()
        if one.count
    )
    out = f"<details open><summary>terrane.Stats</summary><table>{body}</table></details>"
    if latencies:
        head = "<tr><th>µs</th><th>count</th><th>p50</th><th>p99</th><th>max</th></tr>"
        out += f"<table>{head}{latencies}</table>"
    return out


def lines(
    title: str, x: Sequence[float], series: dict[str, Sequence[float]], unit: str, height: int = 160
) -> str:
    """Draws curves over time, as small as a cell of a notebook."""
    top = max((max(values, default=0.0) for values in series.values()), default=0.0) or 1.0
    end = max(x, default=1.0) or 1.0
    out = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
        f'viewBox="0 0 {_WIDTH} {height}" style="{_STYLE}" role="img"><title>{escape(title)}</title>'
    )
    out += _text(0, 14, title) + _text(_LEFT - 6, 34, f"{top:,.4g}", "end") + _text(_LEFT - 6, height - 20, "0", "end")
    out += _text(_WIDTH - 20, height - 4, f"{end:,.0f} {unit}", "end")
    out += (
        f'<path d="M{_LEFT} 26V{height - 22}H{_WIDTH - 20}" fill="none" stroke="currentColor" '
        f'stroke-opacity="0.4"/>'
    )
    for number, (name, values) in enumerate(series.items()):
        points = " ".join(
            f"{_LEFT + (_WIDTH - 20 - _LEFT) * at / end:.1f},{height - 22 - (height - 50) * value / top:.1f}"
            for at, value in zip(x, values, strict=True)
        )
        colour = _COLOURS[number % len(_COLOURS)]
        out += f'<polyline points="{points}" fill="none" stroke="{colour}"><title>{escape(name)}</title></polyline>'
    return out + "</svg>"

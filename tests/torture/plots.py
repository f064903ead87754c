"""Lines over time, one panel for each, as one SVG."""

from collections.abc import Mapping, Sequence
from html import escape

_WIDTH, _HEIGHT, _LEFT, _PANEL, _TOP = 860, 96, 230, 130, 52

_STYLE = """
    text { font: 13px system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; fill: #24292f }
    .small { font-size: 11.5px; fill: #57606a }
    .title { font-size: 15px; font-weight: 600 }
    .panel { fill: #f6f8fa; stroke: #d0d7de }
    .line { fill: none; stroke: #0969da; stroke-width: 1.5 }
    @media (prefers-color-scheme: dark) {
        text { fill: #e6edf3 }
        .small { fill: #9da7b3 }
        .panel { fill: #161b22; stroke: #30363d }
        .line { stroke: #58a6ff }
    }"""


def drawn(title: str, seconds: Sequence[float], series: Mapping[str, Sequence[float]]) -> str:
    """Every panel begins at nought, so that what looks flat is flat."""
    height = _TOP + _PANEL * len(series)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">',
        f"<title>{escape(title)}</title>",
        f"<style>{_STYLE}\n</style>",
        f'<text class="title" x="16" y="28">{escape(title)}</text>',
        *(_panel(name, seconds, values, _TOP + _PANEL * row) for row, (name, values) in enumerate(series.items())),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _panel(name: str, seconds: Sequence[float], values: Sequence[float], top: int) -> str:
    width, highest = _WIDTH - _LEFT - 16, max(values) * 1.1 or 1.0
    points = " ".join(
        f"{_LEFT + width * second / seconds[-1]:.1f},{top + _HEIGHT * (1 - value / highest):.1f}"
        for second, value in zip(seconds, values, strict=True)
    )
    return "\n".join(
        [
            f'<text x="16" y="{top + 20}">{escape(name)}</text>',
            f'<text class="small" x="16" y="{top + 40}">first {values[0]:,.1f}, last {values[-1]:,.1f}</text>',
            f'<text class="small" x="16" y="{top + 58}">highest {max(values):,.1f}</text>',
            f'<rect class="panel" x="{_LEFT}" y="{top}" width="{width}" height="{_HEIGHT}"/>',
            f'<polyline class="line" points="{points}"/>',
            f'<text class="small" x="{_LEFT + width}" y="{top + _HEIGHT + 14}" text-anchor="end">'
            f"{seconds[-1] / 60:.1f} minutes</text>",
        ]
    )

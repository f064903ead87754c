"""Renders docs/explanation/performance.svg, and writes the table in performance.md, from bench/results.json.

    python -m bench.chart

Each row has its own track with the goal in the middle, because ratios of 0.15 and 1.2 have no common scale. The bar
should end where the track is green. The dots are the rounds.
"""

from html import escape

from bench import report
from bench.rounds import Bound, Outcome, Row

CHART = report.ROOT / "docs" / "explanation" / "performance.svg"

_WIDTH, _TRACK_X, _TRACK_WIDTH, _ROW_HEIGHT, _TOP = 960, 370, 330, 44, 66
# The goal is in the middle of the track; twice the goal or more ends at its edge.
_END_OF_TRACK = 2.0

_STYLE = """
    text { font: 13px system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; fill: #24292f }
    .small { font-size: 11.5px; fill: #57606a }
    .title { font-size: 15px; font-weight: 600 }
    .value { font-weight: 600 }
    .track { fill: #eaeef2 }
    .wanted { fill: #c7e8d0 }
    .met { fill: #2da44e }
    .within { fill: #bf8700 }
    .missed { fill: #cf222e }
    .round { fill: #ffffff; stroke: #24292f; stroke-width: 1 }
    .goal { stroke: #24292f; stroke-width: 2 }
    @media (prefers-color-scheme: dark) {
        text { fill: #e6edf3 }
        .small { fill: #9da7b3 }
        .track { fill: #2d333b }
        .wanted { fill: #1f4a2f }
        .goal { stroke: #e6edf3 }
        .round { fill: #0d1117; stroke: #e6edf3 }
    }"""

_CLASSES = {Outcome.MET: "met", Outcome.WITHIN_NOISE: "within", Outcome.MISSED: "missed"}


def write_chart_and_table() -> None:
    context, rows = report.load()
    CHART.write_text(render_svg(rows))
    report.PAGE.write_text(report.replace_table(report.PAGE.read_text(), context, rows))


def render_svg(rows: list[Row]) -> str:
    height = _TOP + len(rows) * _ROW_HEIGHT + 12
    middle = _TRACK_X + _TRACK_WIDTH / 2
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">',
        "<title>Bench results compared with their goals</title>",
        f"<style>{_STYLE}\n</style>",
        '<text class="title" x="16" y="26">Ours against a reference in the same run</text>',
        '<text class="small" x="16" y="46">A bar should end where its track is green. The dots are the rounds.</text>',
        f'<text class="small" x="{middle:.0f}" y="52" text-anchor="middle">goal</text>',
        *(_render_row(row, _TOP + number * _ROW_HEIGHT) for number, row in enumerate(rows)),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _render_row(row: Row, top: int) -> str:
    goal_x, bar_y = _x_position(row, row.goal.figure), top + 8
    wanted_x, wanted_width = (
        (goal_x, _TRACK_X + _TRACK_WIDTH - goal_x)
        if row.goal.bound is Bound.AT_LEAST
        else (_TRACK_X, goal_x - _TRACK_X)
    )
    text_x = _TRACK_X + _TRACK_WIDTH + 16
    result_text = f"{report.format_value(row, row.value)} ± {report.format_noise(row)}, {row.outcome}"
    return "\n".join(
        [
            f'<text x="16" y="{top + 15}">{escape(row.name)}</text>',
            f'<text class="small" x="16" y="{top + 30}">{escape(_format_comparison(row))}</text>',
            f'<rect class="track" x="{_TRACK_X}" y="{bar_y}" width="{_TRACK_WIDTH}" height="16" rx="3"/>',
            f'<rect class="wanted" x="{wanted_x:.1f}" y="{bar_y}" width="{wanted_width:.1f}" height="16" rx="3"/>',
            f'<rect class="{_CLASSES[row.outcome]}" x="{_TRACK_X}" y="{bar_y + 4}" '
            f'width="{_x_position(row, row.value) - _TRACK_X:.1f}" height="8" rx="2"/>',
            *(
                f'<circle class="round" cx="{_x_position(row, each):.1f}" cy="{bar_y + 8}" r="2.5"/>'
                for each in row.values_of(row.goal.part)
            ),
            f'<line class="goal" x1="{goal_x:.1f}" y1="{bar_y - 4}" x2="{goal_x:.1f}" y2="{bar_y + 20}"/>',
            f'<text class="value" x="{text_x}" y="{top + 15}">{escape(result_text)}</text>',
            f'<text class="small" x="{text_x}" y="{top + 30}">goal: {escape(report.format_goal(row))}</text>',
        ]
    )


def _format_comparison(row: Row) -> str:
    ours, reference = report.format_number(row.median("ours")), report.format_number(row.median("reference"))
    return f"{ours} {row.unit}, against {reference}: {row.against}"


def _x_position(row: Row, value: float) -> float:
    share = max(0.0, min(value / row.goal.figure, _END_OF_TRACK)) / _END_OF_TRACK
    return _TRACK_X + _TRACK_WIDTH * share


if __name__ == "__main__":
    write_chart_and_table()

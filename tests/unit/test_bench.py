"""docs/explanation/performance.md and its chart show the latest results of the bench."""

from bench import chart, report
from bench.table import MEASUREMENTS


def test_results_have_every_row_with_its_goal_and_at_least_5_rounds() -> None:
    _, rows = report.load()

    assert [(each.name, each.unit, each.against, each.goal) for each in rows] == [
        (each.name, each.unit, each.against, each.goal) for each in MEASUREMENTS
    ]
    # Lines of code have no noise.
    assert all(len(each.rounds) >= 5 for each in rows if each.unit != "lines")


def test_chart_shows_the_results() -> None:
    _, rows = report.load()
    assert chart.CHART.read_text() == chart.render_svg(rows)


def test_table_in_the_docs_shows_the_results() -> None:
    context, rows = report.load()
    page = report.PAGE.read_text()
    assert report.replace_table(page, context, rows) == page


def test_docs_explain_every_row() -> None:
    page = report.PAGE.read_text()
    for each in MEASUREMENTS:
        assert page.count(f"\n| {each.name} |") == 2, each.name

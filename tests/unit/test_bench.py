"""The bench says so when a goal is missed, and what is in the docs is what was measured."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

import bench.__main__ as program
from bench import chart, report
from bench.against import measurements
from bench.code_lines import code_lines
from bench.layers import by_function, by_layer, read_stacks, within_ours
from bench.rounds import Bound, Goal, Outcome, Round, Row, row_from
from bench.table import MEASUREMENTS, Measurement

AT_LEAST = Goal(Bound.AT_LEAST, 0.7)
AT_MOST = Goal(Bound.AT_MOST, 1.2)


def row(goal: Goal, *ratios: float) -> Row:
    return Row("a row", "requests/s", "nothing", goal, [Round(ratio, 1.0) for ratio in ratios])


def test_a_row_is_the_median_of_its_rounds() -> None:
    assert row(AT_LEAST, 0.1, 0.8, 0.9, 0.75, 0.7).value == 0.75


def test_noise_is_how_far_a_round_usually_is_from_the_median() -> None:
    # Distances of 0.2, 0.1, 0, 0.1 and, where a neighbour was busy, 4.
    assert row(AT_LEAST, 0.8, 0.9, 1.0, 1.1, 5.0).noise == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("measured", "outcome"),
    [
        (row(AT_LEAST, 0.70, 0.70, 0.70), Outcome.MET),
        (row(AT_LEAST, 0.64, 0.68, 0.72), Outcome.WITHIN_NOISE),
        (row(AT_LEAST, 0.67, 0.68, 0.69), Outcome.MISSED),
        (row(AT_MOST, 1.20, 1.20, 1.20), Outcome.MET),
        (row(AT_MOST, 1.18, 1.22, 1.26), Outcome.WITHIN_NOISE),
        (row(AT_MOST, 1.21, 1.22, 1.23), Outcome.MISSED),
    ],
)
def test_a_goal_is_missed_when_the_row_is_beyond_it_by_more_than_the_noise(measured: Row, outcome: Outcome) -> None:
    assert measured.outcome is outcome


def test_a_goal_can_be_for_the_difference() -> None:
    slower = Row("a row", "ms", "nothing", Goal(Bound.AT_MOST, 500, "more"), [Round(700, 180)])

    assert slower.value == 520
    assert slower.outcome is Outcome.MISSED


def test_a_goal_can_be_for_the_figure_itself() -> None:
    measured = Row("a row", "MB", "nothing", Goal(Bound.AT_MOST, 400, "ours"), [Round(180, 90), Round(420, 90)])

    assert measured.outcome is Outcome.MET
    assert (report.value_text(measured, measured.value), report.goal_text(measured)) == ("300 MB", "at most 400 MB")


def test_a_row_is_read_back_as_it_was_written() -> None:
    written = row(AT_MOST, 1.0, 1.1, 1.3)
    assert row_from(json.loads(json.dumps(written.as_json()))) == written


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the program writes what it found."""
    monkeypatch.setattr(report, "RESULTS", tmp_path / "results.json")
    monkeypatch.setattr(report, "PAGE", tmp_path / "performance.md")
    monkeypatch.setattr(chart, "CHART", tmp_path / "performance.svg")
    report.PAGE.write_text(
        "# Performance\n\n<!-- made by `make bench` from bench/results.json -->\n<!-- until here -->\n"
    )
    return tmp_path


def measuring(monkeypatch: pytest.MonkeyPatch, *rows: Row, needs_dynamodb: bool = False) -> None:
    def measured(each: Row) -> Measurement:
        return Measurement(each.name, each.unit, each.against, each.goal, lambda _: each.rounds, needs_dynamodb)

    monkeypatch.setattr(program, "MEASUREMENTS", [measured(each) for each in rows])


MISSED = row(AT_LEAST, 0.5, 0.5, 0.5)
WITHIN_NOISE = row(AT_LEAST, 0.64, 0.68, 0.72)


@pytest.mark.usefixtures("folder")
def test_a_missed_goal_makes_the_exit_status_1(monkeypatch: pytest.MonkeyPatch) -> None:
    measuring(monkeypatch, WITHIN_NOISE, MISSED)
    assert program.main([]) == 1


@pytest.mark.usefixtures("folder")
def test_a_goal_missed_by_less_than_the_noise_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    measuring(monkeypatch, WITHIN_NOISE)
    assert program.main([]) == 0


def test_everything_is_written_whether_or_not_goals_are_missed(
    monkeypatch: pytest.MonkeyPatch, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    measuring(monkeypatch, MISSED)
    program.main([])

    assert (
        json.loads((folder / "results.json").read_text())["rows"][0]["rounds"] == [{"ours": 0.5, "reference": 1.0}] * 3
    )
    assert "| a row |" in (folder / "performance.md").read_text()
    assert "a row" in (folder / "performance.svg").read_text()
    assert "missed" in capsys.readouterr().out


def test_rows_measured_alone_leave_the_results_of_the_others(
    monkeypatch: pytest.MonkeyPatch, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    measuring(monkeypatch, MISSED, replace(WITHIN_NOISE, name="another"))
    program.main([])
    capsys.readouterr()
    measuring(monkeypatch, replace(MISSED, rounds=[]), replace(MISSED, name="another"))

    assert program.main(["OTHER"]) == 1
    printed = capsys.readouterr().out
    assert "another" in printed
    assert "a row" not in printed
    rows = json.loads((folder / "results.json").read_text())["rows"]
    assert [(each["name"], each["rounds"][0]["ours"]) for each in rows] == [("a row", 0.5), ("another", 0.5)]


def test_no_row_of_such_a_name_is_wrong_usage(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    measuring(monkeypatch, MISSED)

    assert program.main(["typo"]) == 2
    assert not (folder / "results.json").exists()


def test_a_row_that_cannot_be_measured_is_not_met(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    measuring(monkeypatch, WITHIN_NOISE, needs_dynamodb=True)
    monkeypatch.setattr("tests.engines.dynamodb_local.is_available", lambda: False)

    assert program.main([]) == 1
    assert not (folder / "results.json").exists()


def test_another_checkout_needs_an_environment_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main(["--against", str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"error: {tmp_path} has no .venv/bin/inbox; run `make install` there\n"


def test_every_request_is_compared_with_another_checkout_in_speed_and_in_cpu() -> None:
    rows = [(each.name, each.unit, each.goal.bound) for each in measurements(Path("elsewhere"))]

    assert rows[:2] == [
        ("POST /events", "requests/s", Bound.AT_LEAST),
        ("POST /events: CPU", "ms", Bound.AT_MOST),
    ]
    assert len(rows) == 8


def test_blank_lines_comments_and_docstrings_are_no_code() -> None:
    source = '"""Module."""\n\nimport os  # why\n\n# Comment\ndef name() -> str:\n    """One\n    two."""\n'
    source += "    return (\n        os.name\n    )\n"

    assert code_lines(source) == 5


def test_the_results_have_every_row_with_its_goal_and_at_least_5_rounds() -> None:
    _, rows = report.load()

    assert [(each.name, each.unit, each.against, each.goal) for each in rows] == [
        (each.name, each.unit, each.against, each.goal) for each in MEASUREMENTS
    ]
    # Lines of code have no noise.
    assert all(len(each.rounds) >= 5 for each in rows if each.unit != "lines")


def test_the_goals_are_those_that_were_set() -> None:
    ratios = [each.goal for each in MEASUREMENTS if each.goal.part == "ratio"]

    assert [goal.figure for goal in ratios if goal.bound is Bound.AT_LEAST] == [0.7, 0.6, 0.6, 0.7, 0.7, 1.6, 1.0, 0.8]
    assert [goal.figure for goal in ratios if goal.bound is Bound.AT_MOST] == [1.2, 1.2, 0.15, 0.15, 1.1, 0.5]
    assert [each.goal.figure for each in MEASUREMENTS if each.goal.part == "ours"] == [400, 10, 100]


def test_the_chart_is_drawn_from_the_results() -> None:
    _, rows = report.load()
    assert chart.CHART.read_text() == chart.drawn(rows)


def test_the_table_in_the_docs_is_that_of_the_results() -> None:
    context, rows = report.load()
    page = report.PAGE.read_text()
    assert report.page_with_table(page, context, rows) == page


def test_the_docs_say_of_every_row_what_it_compares() -> None:
    page = report.PAGE.read_text()
    for each in MEASUREMENTS:
        assert page.count(f"\n| {each.name} |") == 2, each.name


def test_a_stack_counts_for_the_layer_that_it_ended_in() -> None:
    stacks = read_stacks(
        'process 1:"python";handle (gunicorn/workers/gthread.py:1);view (inbox/api/events.py:5);uuid4 (uuid.py:7) 3\n'
        'process 1:"python";handle (gunicorn/workers/gthread.py:2) 2\n'
    )

    assert by_layer(stacks) == {"our API and use cases": 3, "gunicorn": 2}
    assert by_function(stacks) == {"uuid4 (uuid.py)": 3, "handle (gunicorn/workers/gthread.py)": 2}
    assert within_ours(stacks) == {"view (inbox/api/events.py)": 3}

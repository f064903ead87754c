"""The Grafana dashboard: its queries use existing metrics and labels, and each panel is described."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.exposition import every_metric

FOLDER = Path(__file__).parents[2] / "deploy" / "grafana"
README = (FOLDER / "README.md").read_text()
DASHBOARD: dict[str, Any] = json.loads((FOLDER / "polling-inbox.json").read_text())
PANELS: list[dict[str, Any]] = DASHBOARD["panels"]
DATA_PANELS = [panel for panel in PANELS if panel["type"] != "row"]

VARIABLES = {"datasource", "job", "instance"}
# Labels that Prometheus adds.
SCRAPE_LABELS = {"job", "instance", "le"}
SUFFIXES = ("_bucket", "_count", "_sum")


def expressions_of(panel: dict[str, Any]) -> list[str]:
    return [target["expr"] for target in panel["targets"]]


def metric_of(name: str) -> str:
    """Returns the metric of a series, which has a suffix if the metric is a histogram."""
    metrics = every_metric()
    if name in metrics:
        return name
    (found,) = [name.removesuffix(each) for each in SUFFIXES if name.endswith(each)] or [""]
    assert metrics[found].type == "histogram", name
    return found


def check_query(expression: str) -> set[str]:
    """Returns the metrics of an expression. Checks that they and the labels exist."""
    names = set(re.findall(r"\binbox_\w+", expression))
    labels = {each for name in names for sample in every_metric()[metric_of(name)].samples for each in sample.labels}
    used_labels = {each for group in re.findall(r"\bby \(([^)]*)\)", expression) for each in group.split(", ")}
    used_labels |= set(re.findall(r"(\w+)(?:=~|!~|!=|=)\"", expression))
    assert used_labels <= labels | SCRAPE_LABELS, expression
    assert expression.count("(") == expression.count(")")
    assert expression.count("{") == expression.count("}")
    return {metric_of(name) for name in names}


def test_dashboard_uses_every_metric_and_no_unknown_one() -> None:
    assert {name for panel in DATA_PANELS for each in expressions_of(panel) for name in check_query(each)} == set(
        every_metric()
    )


def test_quantiles_are_computed_from_buckets() -> None:
    quantiles = [each for panel in DATA_PANELS for each in expressions_of(panel) if "histogram_quantile" in each]
    assert len(quantiles) >= 5
    for each in quantiles:
        assert re.fullmatch(
            r"histogram_quantile\(0\.\d+, sum by \(le\b[^)]*\) \(rate\(inbox_\w+_bucket\{.*\)\)\)", each
        )


def test_every_panel_has_title_description_and_unit() -> None:
    assert len({panel["title"] for panel in PANELS}) == len(PANELS)
    for panel in DATA_PANELS:
        assert panel["title"]
        assert panel["description"].endswith(".")
        assert panel["fieldConfig"]["defaults"]["unit"]
        assert expressions_of(panel)
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])
        assert all(target["legendFormat"] for target in panel["targets"])


def test_every_panel_uses_the_selected_source_and_job() -> None:
    assert {each["name"] for each in DASHBOARD["templating"]["list"]} == VARIABLES
    for panel in DATA_PANELS:
        sources = [panel["datasource"], *(target["datasource"] for target in panel["targets"])]
        assert {source["uid"] for source in sources} == {"${datasource}"}
        for expression in expressions_of(panel):
            selectors = re.findall(r"inbox_\w+\{([^}]*)\}", expression)
            assert len(selectors) == len(re.findall(r"\binbox_\w+", expression))
            assert all('job=~"$job", instance=~"$instance"' in each for each in selectors)
            # Grafana derives this range from the scrape interval.
            assert set(re.findall(r"\}\[([^]]+)\]", expression)) <= {"$__rate_interval"}


@pytest.fixture(scope="module")
def documents() -> list[dict[str, Any]]:
    """Returns the YAML blocks of the README."""
    return [yaml.safe_load(each) for each in re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)]


def test_readme_has_a_scrape_job(documents: list[dict[str, Any]]) -> None:
    ((job,),) = [each["scrape_configs"] for each in documents if "scrape_configs" in each]
    assert job["metrics_path"] == "/metrics"
    assert job["static_configs"][0]["targets"] == ["127.0.0.1:8080"]


def test_alert_rules_of_the_readme_use_existing_metrics(documents: list[dict[str, Any]]) -> None:
    ((group,),) = [each["groups"] for each in documents if "groups" in each]
    assert len(group["rules"]) >= 4
    for rule in group["rules"]:
        assert check_query(rule["expr"])
        assert rule.keys() == {"alert", "expr", "for", "annotations"}
        assert rule["annotations"]["summary"].endswith(".")


def test_queries_of_the_docs_use_existing_metrics() -> None:
    page = (FOLDER.parents[1] / "docs" / "how-to" / "monitor.md").read_text().partition("## What to look at")[2]
    queries = re.findall(r"^\| [^|]+ \| `([^`]+)`", page, re.MULTILINE)
    assert len(queries) >= 5
    for each in queries:
        assert check_query(each)

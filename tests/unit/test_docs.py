"""The docs match the code: settings, commands, problems, routes, limits, metrics, dependencies and links."""

import re
import tomllib
from dataclasses import fields
from pathlib import Path

import click

from inbox.api.problem_types import PROBLEMS
from inbox.api.schemas.events import MAX_BATCH
from inbox.api.schemas.history import DEFAULT_LISTED, MAX_LISTED
from inbox.api.schemas.inboxes import MAX_PATTERNS
from inbox.api.schemas.polling import DEFAULT_POLL, MAX_POLL, MAX_RECEIPTS, MAX_WAIT
from inbox.api.schemas.tenants import DEFAULT_PAGE, MAX_PAGE
from inbox.app import Shared, create_app
from inbox.cli import inbox
from inbox.domain.inboxes import MAX_INBOXES
from inbox.domain.keys import MAX_KEYS, MAX_OVERLAP_SECONDS
from inbox.domain.tenants import MAX_RATE_LIMIT
from inbox.settings import Settings, variable_of
from inbox.store.factory import open_store
from tests.exposition import every_metric

ROOT = Path(__file__).parents[2]


def read_page(name: str) -> str:
    return (ROOT / "docs" / name).read_text()


def find_first_cells(text: str) -> list[str]:
    """Returns the code in the first column of the tables."""
    return re.findall(r"^\| `([^`]+)`", text, re.MULTILINE)


def test_every_setting_is_described_with_its_default() -> None:
    rows = dict(re.findall(r"^\| `(INBOX_\w+)` \| ([^|]+) \|", read_page("reference/settings.md"), re.MULTILINE))
    assert set(rows) == {variable_of(each.name) for each in fields(Settings)}
    for each in fields(Settings):
        if each.name not in ("workers", "log_format", "api_key", "authorizer_secret", "table_prefix", "url"):
            assert f"`{getattr(Settings(), each.name)}`" in rows[variable_of(each.name)], each.name


def commands_of(command: click.Command, words: str) -> dict[str, click.Command]:
    """Returns the command, or all commands of the group, by the words that run it."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        found: dict[str, click.Command] = {}
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            found |= commands_of(inner, f"{words} {name}")
        return found
    return {words: command}


def test_every_command_is_described_with_its_options() -> None:
    described = {
        " ".join(re.findall(r"^inbox(?: [a-z]+)+", usage)): usage
        for usage in find_first_cells(read_page("reference/commands.md"))
        if usage.startswith("inbox ")
    }
    commands = commands_of(inbox, "inbox")
    assert set(described) == set(commands)
    for words, command in commands.items():
        options = {name for each in command.params for name in each.opts if name.startswith("--")}
        assert options == set(re.findall(r"--[a-z-]+", described[words])), words


def test_every_make_target_is_described() -> None:
    targets = set(re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE)) - {"help"}
    described = {
        usage.removeprefix("make ")
        for usage in find_first_cells(read_page("reference/commands.md"))
        if usage.startswith("make ")
    }
    assert targets == described


def test_every_problem_is_described_with_its_status() -> None:
    rows = re.findall(r"^\| (\d{3}) \| `/problems/([a-z-]+)` \|", read_page("reference/http.md"), re.MULTILINE)
    assert {(int(status), slug) for status, slug in rows} == {(each.status, each.slug) for each in PROBLEMS.values()}


def test_every_route_is_described(tmp_path: Path) -> None:
    settings = Settings(store=f"sqlite:///{tmp_path}/inbox.db")
    store = open_store(settings)
    parameter = re.compile("<(?:uuid:)?(?:(?:event|key|tenant)_)?([a-z]+)>")
    routes = {
        f"{method} " + parameter.sub(r"{\1}", rule.rule)
        for rule in create_app(settings, store, Shared()).url_map.iter_rules()
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
        if "<path:" not in rule.rule
    }
    store.close()
    headings = re.findall(r"^## ([A-Z]+ /\S*)$", read_page("reference/http.md"), re.MULTILINE)
    rows = re.findall(r"^\| (`[A-Z]+ /[^|]*`) \|", read_page("reference/http.md"), re.MULTILINE)
    assert routes == {*headings, *(call for row in rows for call in re.findall("`([^`]+)`", row))}


def test_limits_are_the_documented_ones() -> None:
    http = read_page("reference/http.md")
    assert f"| `limit` | 1 to {MAX_POLL}, default {DEFAULT_POLL} |" in http
    assert f"| `limit` | 1 to {MAX_LISTED}, default {DEFAULT_LISTED};" in http
    assert f"| `wait` | 0 to {MAX_WAIT}, default 0 |" in http
    assert f'["…"]}}`, 1 to {MAX_RECEIPTS} of them' in http
    assert f"1 to {MAX_PATTERNS} patterns" in http
    assert f"A tenant can have {MAX_INBOXES}," in http
    assert f"array of 1 to {MAX_BATCH} events" in http
    assert f"A tenant can have up to {MAX_KEYS} active keys" in http
    assert f"(0 to {MAX_OVERLAP_SECONDS}, default one day)" in http
    assert f"`pageSize` 1 to {MAX_PAGE}, default {DEFAULT_PAGE};" in http
    assert f"at most {MAX_RATE_LIMIT:,}: `null`" in http


def test_every_metric_is_described_with_its_type_and_labels() -> None:
    described = {
        name: (kind, set(re.findall("`([a-z]+)`", labels)))
        for name, kind, labels in re.findall(
            r"^\| `(inbox_\w+)` \| (\w+) \| ([^|]*)\|", read_page("reference/metrics.md"), re.MULTILINE
        )
    }
    assert described == {
        name: (family.type, {label for sample in family.samples for label in sample.labels} - {"le"})
        for name, family in every_metric().items()
    }


def test_every_dependency_is_justified() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = {re.split("[<>=]", each)[0] for each in project["dependencies"]}
    section = read_page("explanation/architecture.md").partition("## Dependencies")[2].partition("For development")[0]
    described = set(re.findall(r"^\| ([a-z0-9_-]+)(?: \([a-z]+\))? \|", section, re.MULTILINE))
    assert described - {"package"} == needed | {"swagger-ui"}


def test_every_attack_of_the_threat_model_names_an_existing_test() -> None:
    attacks = read_page("explanation/security.md").partition("## The attacks")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (?!attack )[^|]+\|[^|]+\|(.+)\|$", attacks, re.MULTILINE)
    assert len(rows) > 50
    for row in rows:
        ((file, test),) = re.findall(r"^ `(tests/\S+)::(test_\w+)` $", row)
        assert f"def {test}(" in (ROOT / file).read_text(), test


def test_every_link_leads_to_a_file_and_a_heading() -> None:
    pages = [
        *ROOT.glob("*.md"),
        *ROOT.glob("zapier/*.md"),
        *(file for folder in ("docs", "deploy", "inbox") for file in (ROOT / folder).rglob("*.md")),
    ]
    broken = [
        f"{file.relative_to(ROOT)}: {target}"
        for file in pages
        for target in re.findall(r"\]\(([^)\s]+)\)", file.read_text())
        if "://" not in target and not link_exists(file, target)
    ]
    assert broken == []


def link_exists(page: Path, target: str) -> bool:
    path, _, anchor = target.partition("#")
    file = page.parent / path if path else page
    return file.exists() and (not anchor or anchor in anchors_of(file.read_text()))


def anchors_of(text: str) -> set[str]:
    """Returns the anchors that GitHub makes from the headings."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_picture_exists_and_every_picture_of_the_console_is_shown() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    shown = {
        (page.parent / target).resolve()
        for page in pages
        for target in re.findall(r'(?:src|srcset)="([^"]+)"', page.read_text())
    }
    assert {file for file in shown if not file.is_file()} == set()
    assert set((ROOT / "docs" / "images").iterdir()) <= shown


def test_the_readme_shows_the_lines_that_a_first_start_prints() -> None:
    from inbox.cli.serve import _FIRST_COMMANDS

    printed = _FIRST_COMMANDS.format(url="http://127.0.0.1:8080", tenant="demo", key="ibx_…")
    readme = (ROOT / "README.md").read_text()
    lines = [line for line in printed.splitlines() if line.startswith("curl ")]
    assert len(lines) == 2
    for line in lines:
        assert f"$ {line}\n" in readme

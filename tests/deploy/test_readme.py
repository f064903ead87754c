"""Follows deploy/README.md command by command on an AWS emulator: from an empty account to a polled event."""

import json
import re
import shutil
from itertools import pairwise
from operator import eq, ge
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.deploy import stacks
from tests.deploy.conftest import CHECKOUT
from tests.engines import cloud
from tests.engines.aws import client
from tests.recipes import pages, session
from tests.recipes.pages import Command, Page
from tests.service import INBOX, Service, bearer

# AWS's command line reads the state of a stack every 30 seconds.
COMMAND_SECONDS = 120
# Git does not track these files, or the page's commands write to them.
_NOT_IN_A_CLONE = {".cache", "build", "data", "deploy", "dist"}
_URL_LINE = "$ export INBOX_URL=https://inbox.example.com\n"
_DOCKER = '#!/bin/sh\necho "$@" >>{log}\n[ "$1" != login ] || cat >/dev/null\n'


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    folder = tmp_path / "clone"
    folder.mkdir()
    # A copy, because the page changes deploy/environments.
    shutil.copytree(CHECKOUT / "deploy", folder / "deploy")
    for each in CHECKOUT.iterdir():
        if each.name not in _NOT_IN_A_CLONE:
            (folder / each.name).symlink_to(each)
    return folder


def make_environment(folder: Path, url: str) -> dict[str, str]:
    """Returns variables with AWS's command line on the path, and a `docker` that logs its arguments."""
    programs = folder / "bin"
    programs.mkdir()
    docker = programs / "docker"
    docker.write_text(_DOCKER.format(log=folder / "docker.log"))
    docker.chmod(0o755)
    aws = cloud.program("awscli", "aws")
    variables = session.make_environment("", "", folder)
    del variables["INBOX_URL"], variables["INBOX_API_KEY"]
    return variables | {
        "PATH": f"{programs}:{aws.parent}:{variables['PATH']}",
        **_make_credentials(url),
    }


def _make_credentials(url: str) -> dict[str, str]:
    return {"AWS_ENDPOINT_URL": url, "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}


def use_environment_of_task(service: Service, url: str, family: str) -> dict[str, Any]:
    """Gives the service the environment of a container, which the emulator does not run. Returns the container."""
    definition = client("ecs", url).describe_task_definition(taskDefinition=family)["taskDefinition"]
    containers: list[dict[str, Any]] = definition["containerDefinitions"]
    (container,) = containers
    service.variables = {each["name"]: each["value"] for each in container["environment"]} | _make_credentials(url)
    return container


def read_page() -> list[Page]:
    """Returns the page in three parts: until it waits for the tasks, until it deletes the stacks, and the rest.

    The second part reads the service's URL from the variable SERVICE_URL.
    """
    text = (CHECKOUT / "deploy" / "README.md").read_text()
    assert text.count(_URL_LINE) == 1
    text = text.replace(_URL_LINE, "$ export INBOX_URL=$SERVICE_URL\n")
    steps = pages.steps_of("deploy/README.md", text)
    starts = [0]
    for words in ("aws ecs wait", "delete-stack"):
        (start,) = [number for number, step in enumerate(steps) if isinstance(step, Command) and words in step.line]
        starts.append(start)
    return [Page("deploy/README.md", (), steps[start:end]) for start, end in pairwise([*starts, len(steps)])]


def matches(pattern: str, line: dict[str, Any]) -> bool:
    """Returns True if a CloudWatch metric filter matches a log line. Supports only the syntax of our templates."""
    (clauses,) = re.findall(r"\{ (.+) \}", pattern)
    for clause in clauses.split(" && "):
        name, operator, operand = re.fullmatch(r"\$\.(\w+) (=|>=) (\S+)", clause).groups()  # type: ignore[union-attr]
        compare = {"=": eq, ">=": ge}[operator]
        if name not in line or not compare(line[name], json.loads(operand)):
            return False
    return True


def check_metric_filters(url: str, service: Service) -> None:
    """Checks that the metric filters match the log lines that the service writes."""
    patterns = {
        name: each["FilterPattern"]
        for template in ("monitoring", "backlog")
        for name, each in stacks.resolve_all(template).of_type("AWS::Logs::MetricFilter").items()
    }
    lines = [json.loads(line) for line in service.log.read_text().splitlines()]
    assert (
        sum(matches(patterns["RequestsFilter"], line) for line in lines) == sum("route" in line for line in lines) > 0
    )
    sent = [line for line in lines if matches(patterns["PostFilter"], line)]
    assert len(sent) > 0
    assert all((line["method"], line["route"]) == ("POST", "/events") and line["ms"] > 0 for line in sent)
    assert not any(matches(patterns["ServerErrorsFilter"], line) for line in lines)
    assert matches(patterns["ServerErrorsFilter"], sent[0] | {"status": 503})

    container = use_environment_of_task(service, url, "inbox-dev-backlog")
    backlog = json.loads(service.run(*container["command"][1:]).stdout)
    assert matches(patterns["MetricFilter"], backlog)
    assert backlog["oldest_undelivered_seconds"] == 0


def check_gateway(url: str, service: Service, key: str) -> None:
    """Checks that the stack's Lambda accepts a valid key only. The emulator forwards requests to our service."""
    gateway = client("apigatewayv2", url)
    (api,) = gateway.get_apis()["Items"]
    for each in gateway.get_integrations(ApiId=api["ApiId"])["Items"]:
        gateway.update_integration(ApiId=api["ApiId"], IntegrationId=each["IntegrationId"], IntegrationUri=service.url)
    for path, headers, status in (
        ("/me", bearer(key), 200),
        ("/me", bearer("ibx_" + "0" * 49), 403),
        ("/me", {}, 401),
        ("/healthz", {}, 200),
        ("/problems/not-found", {}, 200),
    ):
        host = {"Host": f"{api['ApiId']}.execute-api.localhost"}
        response = requests.get(f"{url}{path}", headers=headers | host, timeout=30)
        assert response.status_code == status, (path, response.text)


@pytest.mark.usefixtures("cloud_tools")
def test_every_command_of_the_page_works(clone: Path, tmp_path: Path, service: Service) -> None:
    with cloud.running() as url:
        variables = make_environment(tmp_path, url)
        set_up, use_and_operate, tear_down = read_page()
        session.follow(set_up, clone, variables, COMMAND_SECONDS)
        container = use_environment_of_task(service, url, "inbox-dev")
        assert re.fullmatch(r"\S+/polling-inbox:[0-9a-f]{7,}", container["image"])
        docker = (tmp_path / "docker.log").read_text()
        assert f"--tag {container['image']} .\n" in docker
        assert docker.endswith(f"push {container['image']}\n")
        service.start_process([INBOX, "serve"], service.folder)
        key = service.create_key("gateway")
        session.follow(use_and_operate, clone, variables | {"SERVICE_URL": service.url}, COMMAND_SECONDS)
        check_metric_filters(url, service)
        check_gateway(url, service, key)
        session.follow(tear_down, clone, variables, COMMAND_SECONDS)
        assert client("dynamodb", url).list_tables()["TableNames"] == [
            "back-Events",
            "back-TenantApiKeys",
            "back-Tenants",
        ]

"""deploy/README.md, followed as it is written: from an empty account to a polled event, and all that comes after."""

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

# AWS's command line looks every 30 seconds whether a stack is done.
COMMAND_SECONDS = 120
# What a clone has not, or what would be written to.
_NOT_IN_A_CLONE = {".cache", "build", "data", "deploy", "dist"}
_ITS_URL = "$ export INBOX_URL=https://inbox.example.com\n"
_DOCKER = '#!/bin/sh\necho "$@" >>{log}\n[ "$1" != login ] || cat >/dev/null\n'


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    folder = tmp_path / "clone"
    folder.mkdir()
    # Its own environments, which the page changes.
    shutil.copytree(CHECKOUT / "deploy", folder / "deploy")
    for each in CHECKOUT.iterdir():
        if each.name not in _NOT_IN_A_CLONE:
            (folder / each.name).symlink_to(each)
    return folder


def somebodys_machine(folder: Path, url: str) -> dict[str, str]:
    """With AWS's command line, which has the rights of an administrator, and something that is called like Docker."""
    programs = folder / "bin"
    programs.mkdir()
    docker = programs / "docker"
    docker.write_text(_DOCKER.format(log=folder / "docker.log"))
    docker.chmod(0o755)
    aws = cloud.program("awscli", "aws")
    variables = session.environment("", "", folder)
    del variables["INBOX_URL"], variables["INBOX_API_KEY"]
    return variables | {
        "PATH": f"{programs}:{aws.parent}:{variables['PATH']}",
        **_rights(url),
    }


def _rights(url: str) -> dict[str, str]:
    return {"AWS_ENDPOINT_URL": url, "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}


def run_the_task(service: Service, url: str, family: str) -> dict[str, Any]:
    """The emulator runs none: the service gets the environment that its task definition has, and no other."""
    definition = client("ecs", url).describe_task_definition(taskDefinition=family)["taskDefinition"]
    (container,) = definition["containerDefinitions"]
    service.variables = {each["name"]: each["value"] for each in container["environment"]} | _rights(url)
    found: dict[str, Any] = container
    return found


def read_page(service: Service) -> list[Page]:
    """Up to the line that waits for the tasks, up to the one that removes everything, and that one."""
    text = (CHECKOUT / "deploy" / "README.md").read_text()
    assert text.count(_ITS_URL) == 1
    text = text.replace(_ITS_URL, f"$ export INBOX_URL={service.url}\n")
    steps = pages.steps_of("deploy/README.md", text)
    starts = [0]
    for words in ("aws ecs wait", "delete-stack"):
        (start,) = [number for number, step in enumerate(steps) if isinstance(step, Command) and words in step.line]
        starts.append(start)
    return [Page("deploy/README.md", (), steps[start:end]) for start, end in pairwise([*starts, len(steps)])]


def takes(pattern: str, line: dict[str, Any]) -> bool:
    """Whether a metric filter takes this line of a log: the part of the language of CloudWatch that is used here."""
    (clauses,) = re.findall(r"\{ (.+) \}", pattern)
    for clause in clauses.split(" && "):
        name, operator, operand = re.fullmatch(r"\$\.(\w+) (=|>=) (\S+)", clause).groups()  # type: ignore[union-attr]
        compare = {"=": eq, ">=": ge}[operator]
        if name not in line or not compare(line[name], json.loads(operand)):
            return False
    return True


def hold_filters_against_logs(url: str, service: Service) -> None:
    """What the metrics are made of is in the lines that are really written. The emulator takes any line."""
    patterns = {
        name: each["FilterPattern"]
        for template in ("monitoring", "backlog")
        for name, each in stacks.of_any(template).of_type("AWS::Logs::MetricFilter").items()
    }
    lines = [json.loads(line) for line in service.log.read_text().splitlines()]
    assert sum(takes(patterns["RequestsFilter"], line) for line in lines) == sum("route" in line for line in lines) > 0
    sent = [line for line in lines if takes(patterns["PostFilter"], line)]
    assert len(sent) > 0
    assert all((line["method"], line["route"]) == ("POST", "/events") and line["ms"] > 0 for line in sent)
    assert not any(takes(patterns["ServerErrorsFilter"], line) for line in lines)
    assert takes(patterns["ServerErrorsFilter"], sent[0] | {"status": 503})

    container = run_the_task(service, url, "inbox-dev-backlog")
    told = json.loads(service.run(*container["command"][1:]).stdout)
    assert takes(patterns["MetricFilter"], told)
    assert told["oldest_undelivered_seconds"] == 0


def ask_through_the_gateway(url: str, service: Service, key: str) -> None:
    """The Lambda of the stack lets a key in and others not. The emulator calls the service, as it was told to."""
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
        answer = requests.get(f"{url}{path}", headers=headers | host, timeout=30)
        assert answer.status_code == status, (path, answer.text)


@pytest.mark.usefixtures("cloud_tools")
def test_the_page_works_as_it_is_written(clone: Path, tmp_path: Path, service: Service) -> None:
    with cloud.running() as url:
        machine = somebodys_machine(tmp_path, url)
        until_the_tasks, until_the_end, tearing_down = read_page(service)
        session.follow(until_the_tasks, clone, machine, COMMAND_SECONDS)
        container = run_the_task(service, url, "inbox-dev")
        assert re.fullmatch(r"\S+/polling-inbox:[0-9a-f]{7,}", container["image"])
        docker = (tmp_path / "docker.log").read_text()
        assert f"--tag {container['image']} .\n" in docker
        assert docker.endswith(f"push {container['image']}\n")
        service.start_process([INBOX, "serve"], service.folder)
        key = service.create_key("gateway")
        session.follow(until_the_end, clone, machine, COMMAND_SECONDS)
        hold_filters_against_logs(url, service)
        ask_through_the_gateway(url, service, key)
        session.follow(tearing_down, clone, machine, COMMAND_SECONDS)
        assert client("dynamodb", url).list_tables()["TableNames"] == [
            "back-Events",
            "back-TenantApiKeys",
            "back-Tenants",
        ]

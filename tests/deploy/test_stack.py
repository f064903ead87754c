"""`deploy/stack` with wrong arguments, and with an `aws` that prints its arguments."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.deploy import stacks, templates
from tests.deploy.conftest import CHECKOUT
from tests.deploy.test_environments import TAGS

STACK = CHECKOUT / "deploy" / "stack"
# The folder of this Python, which has no `aws`.
PROGRAMS = Path(sys.executable).parent


def call(folder: Path, *words: str, stack: Path = STACK) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": f"{folder}:{PROGRAMS}"}
    return subprocess.run([stack, *words], env=environment, capture_output=True, text=True, timeout=60, check=False)


def aws(folder: Path, status: int = 0) -> Path:
    program = folder / "aws"
    program.write_text(f'#!/bin/sh\nfor word in "$@"; do echo "$word"; done\nexit {status}\n')
    program.chmod(0o755)
    return folder


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "usage: deploy/stack ENVIRONMENT TEMPLATE [Parameter=Value ...]"),
        (("dev",), "usage: deploy/stack ENVIRONMENT TEMPLATE [Parameter=Value ...]"),
        (("dev", "data", "Owner"), "usage: deploy/stack ENVIRONMENT TEMPLATE [Parameter=Value ...]"),
        (
            ("dev", "second-region", "Owner=Ada", "Imgae=1"),
            "second-region has no parameter Imgae, Owner. Its parameters: Environment.",
        ),
        (("dev", "data", "Environment=prod"), "Give the environment as the first argument"),
        (("nope", "data"), "Unknown environment nope. Choose one of dev, prod, sit."),
        (("dev", "../data"), "Unknown template ../data. Choose one of authorizer, backlog, bill, data,"),
    ],
)
def test_wrong_usage_is_reported_and_deploys_nothing(tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    refused = call(aws(tmp_path), *words)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith(message)


@pytest.mark.parametrize("environment", stacks.ENVIRONMENTS)
def test_stack_has_the_parameters_and_tags_of_its_environment(tmp_path: Path, environment: str) -> None:
    words = call(aws(tmp_path), environment, "data", "Owner=Ada Lovelace").stderr.splitlines()
    assert words[words.index("--stack-name") + 1] == f"inbox-{environment}-data"
    parameters, tags = words.index("--parameter-overrides"), words.index("--tags")
    given = dict(word.split("=", 1) for word in words[parameters + 1 : tags])
    assert given == stacks.environment(environment) | {"Owner": "Ada Lovelace"}
    tagged = dict(word.split("=", 1) for word in words[tags + 1 : words.index("--capabilities")])
    assert tagged.keys() == TAGS[environment]
    assert (tagged["Owner"], tagged["Component"]) == ("Ada Lovelace", "dynamodb")


def test_help_is_the_docstring(tmp_path: Path) -> None:
    helped = call(tmp_path, "--help")
    assert (helped.returncode, helped.stderr) == (0, "")
    assert "deploy/stack ENVIRONMENT TEMPLATE [Parameter=Value ...]" in helped.stdout


def test_failure_of_aws_is_exit_status_1(tmp_path: Path) -> None:
    refused = call(aws(tmp_path, status=3), "dev", "data")
    assert (refused.returncode, refused.stdout) == (1, "")


def test_missing_aws_is_reported(tmp_path: Path) -> None:
    refused = call(tmp_path, "dev", "data")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "`aws` was not found" in refused.stderr


@pytest.mark.parametrize(
    ("text", "message"), [('{"Owner": "Ada",}', "is not JSON"), ('{"MinTasks": 2}', "must be a string")]
)
def test_invalid_parameter_file_is_refused(tmp_path: Path, text: str, message: str) -> None:
    deploy = tmp_path / "deploy"
    shutil.copytree(STACK.parent, deploy)
    (deploy / "environments" / "dev.json").write_text(text)
    refused = call(aws(tmp_path), "dev", "data", stack=deploy / "stack")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert message in refused.stderr


def test_every_parameter_of_every_template_is_accepted(tmp_path: Path) -> None:
    for name in stacks.names():
        given = [f"{key}=1" for key in templates.read(stacks.path(name))["Parameters"] if key != "Environment"]
        assert call(aws(tmp_path), "dev", name, *given).returncode == 0

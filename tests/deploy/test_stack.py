"""deploy/stack, called wrongly and with an `aws` that only says how it was called."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.deploy import stacks, templates
from tests.deploy.conftest import CHECKOUT
from tests.deploy.test_environments import TAGS

STACK = CHECKOUT / "deploy" / "stack"
# Of this Python, and no `aws` in it.
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
    ("words", "told"),
    [
        ((), "usage: deploy/stack ENVIRONMENT TEMPLATE [Parameter=Value ...]"),
        (("dev",), "usage: deploy/stack ENVIRONMENT TEMPLATE [Parameter=Value ...]"),
        (("dev", "data", "Owner"), "usage: deploy/stack ENVIRONMENT TEMPLATE [Parameter=Value ...]"),
        (
            ("dev", "second-region", "Owner=Ada", "Imgae=1"),
            "second-region has no parameter Imgae, Owner: it has Environment.",
        ),
        (("dev", "data", "Environment=prod"), "The environment is the first word"),
        (("nope", "data"), "There is no environment nope: it is one of dev, prod, sit."),
        (("dev", "../data"), "There is no template ../data: it is one of authorizer, backlog, bill, data,"),
    ],
)
def test_wrong_usage_is_said_and_calls_nothing(tmp_path: Path, words: tuple[str, ...], told: str) -> None:
    refused = call(aws(tmp_path), *words)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith(told)


@pytest.mark.parametrize("environment", stacks.ENVIRONMENTS)
def test_a_stack_has_the_parameters_and_tags_of_its_environment(tmp_path: Path, environment: str) -> None:
    words = call(aws(tmp_path), environment, "data", "Owner=Ada Lovelace").stderr.splitlines()
    assert words[words.index("--stack-name") + 1] == f"inbox-{environment}-data"
    parameters, tags = words.index("--parameter-overrides"), words.index("--tags")
    given = dict(word.split("=", 1) for word in words[parameters + 1 : tags])
    assert given == stacks.environment(environment) | {"Owner": "Ada Lovelace"}
    tagged = dict(word.split("=", 1) for word in words[tags + 1 : words.index("--capabilities")])
    assert tagged.keys() == TAGS[environment]
    assert (tagged["Owner"], tagged["Component"]) == ("Ada Lovelace", "dynamodb")


def test_help_is_what_the_file_says_of_itself(tmp_path: Path) -> None:
    helped = call(tmp_path, "--help")
    assert (helped.returncode, helped.stderr) == (0, "")
    assert "deploy/stack ENVIRONMENT TEMPLATE [Parameter=Value ...]" in helped.stdout


def test_what_aws_refuses_is_no_success(tmp_path: Path) -> None:
    refused = call(aws(tmp_path, status=3), "dev", "data")
    assert (refused.returncode, refused.stdout) == (1, "")


def test_a_machine_without_aws_is_told_so(tmp_path: Path) -> None:
    refused = call(tmp_path, "dev", "data")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "There is no command `aws` here" in refused.stderr


@pytest.mark.parametrize(("text", "told"), [('{"Owner": "Ada",}', "is not JSON"), ('{"MinTasks": 2}', "in quotes too")])
def test_a_file_of_parameters_that_makes_no_sense_is_refused(tmp_path: Path, text: str, told: str) -> None:
    deploy = tmp_path / "deploy"
    shutil.copytree(STACK.parent, deploy)
    (deploy / "environments" / "dev.json").write_text(text)
    refused = call(aws(tmp_path), "dev", "data", stack=deploy / "stack")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert told in refused.stderr


def test_every_parameter_of_every_template_can_be_given(tmp_path: Path) -> None:
    for name in stacks.names():
        given = [f"{key}=1" for key in templates.read(stacks.path(name))["Parameters"] if key != "Environment"]
        assert call(aws(tmp_path), "dev", name, *given).returncode == 0

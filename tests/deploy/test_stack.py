"""`deploy/stack` with wrong arguments, and with a fake `aws`."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.deploy import stacks
from tests.deploy.conftest import CHECKOUT
from tests.deploy.test_environments import TAGS

STACK = CHECKOUT / "deploy" / "stack"
# The folder of this Python, which has no `aws`.
PYTHON_FOLDER = Path(sys.executable).parent


def run_stack(folder: Path, *words: str, stack: Path = STACK) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": f"{folder}:{PYTHON_FOLDER}"}
    return subprocess.run([stack, *words], env=environment, capture_output=True, text=True, timeout=60, check=False)


def create_fake_aws(folder: Path, status: int = 0) -> Path:
    """Creates an `aws` that prints its arguments, and returns its folder."""
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
    run = run_stack(create_fake_aws(tmp_path), *words)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.startswith(message)


@pytest.mark.parametrize("environment", stacks.ENVIRONMENTS)
def test_stack_has_the_parameters_and_tags_of_its_environment(tmp_path: Path, environment: str) -> None:
    words = run_stack(create_fake_aws(tmp_path), environment, "data", "Owner=Ada Lovelace").stderr.splitlines()
    assert words[words.index("--stack-name") + 1] == f"inbox-{environment}-data"
    parameters, tags = words.index("--parameter-overrides"), words.index("--tags")
    given = dict(word.split("=", 1) for word in words[parameters + 1 : tags])
    assert given == stacks.read_environment(environment) | {"Owner": "Ada Lovelace"}
    tagged = dict(word.split("=", 1) for word in words[tags + 1 : words.index("--capabilities")])
    assert tagged.keys() == TAGS[environment]
    assert (tagged["Owner"], tagged["Component"]) == ("Ada Lovelace", "dynamodb")


def test_help_is_the_docstring(tmp_path: Path) -> None:
    run = run_stack(tmp_path, "--help")
    assert (run.returncode, run.stderr) == (0, "")
    assert "deploy/stack ENVIRONMENT TEMPLATE [Parameter=Value ...]" in run.stdout


def test_failure_of_aws_is_exit_status_1(tmp_path: Path) -> None:
    run = run_stack(create_fake_aws(tmp_path, status=3), "dev", "data")
    assert (run.returncode, run.stdout) == (1, "")


def test_missing_aws_is_reported(tmp_path: Path) -> None:
    run = run_stack(tmp_path, "dev", "data")
    assert (run.returncode, run.stdout) == (1, "")
    assert "`aws` was not found" in run.stderr


@pytest.mark.parametrize(
    ("text", "message"), [('{"Owner": "Ada",}', "is not JSON"), ('{"MinTasks": 2}', "must be a string")]
)
def test_invalid_parameter_file_is_refused(tmp_path: Path, text: str, message: str) -> None:
    deploy = tmp_path / "deploy"
    shutil.copytree(STACK.parent, deploy)
    (deploy / "environments" / "dev.json").write_text(text)
    run = run_stack(create_fake_aws(tmp_path), "dev", "data", stack=deploy / "stack")
    assert (run.returncode, run.stdout) == (2, "")
    assert message in run.stderr


def test_every_parameter_of_every_template_is_accepted(tmp_path: Path) -> None:
    for name in stacks.template_names():
        given = [f"{key}=1" for key in stacks.read_template(name)["Parameters"] if key != "Environment"]
        assert run_stack(create_fake_aws(tmp_path), "dev", name, *given).returncode == 0

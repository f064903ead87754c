"""The Dockerfile's instructions, compared with the checkout; builds nothing."""

import pytest

from tests.deploy.conftest import CHECKOUT
from tests.deploy.dockerfile import parse_stages, read_variables

BUILD_STAGE, FINAL_STAGE = parse_stages((CHECKOUT / "Dockerfile").read_text())


def test_user_owns_the_volume_and_root_the_rest() -> None:
    user = FINAL_STAGE.only("USER").rest
    owners = {
        step.words[-1]: step.options.get("chown", "0:0") for step in FINAL_STAGE.steps if step.instruction == "COPY"
    }
    assert owners == {"/opt/inbox": "0:0", FINAL_STAGE.only("VOLUME").rest: user}
    number, group = user.split(":")
    assert int(number) > 0
    assert int(group) > 0


def test_exposed_port_equals_inbox_port() -> None:
    assert FINAL_STAGE.only("EXPOSE").rest == read_variables(FINAL_STAGE.only("ENV"), {"PATH": ""})["INBOX_PORT"]


def test_unknown_instruction_is_an_error() -> None:
    with pytest.raises(ValueError, match="unknown instruction: ADD"):
        parse_stages("FROM scratch\nADD https://example.com/file /\n")


def test_build_context_contains_only_the_copied_files() -> None:
    rules = [line for line in (CHECKOUT / ".dockerignore").read_text().splitlines() if not line.startswith("#")]
    copied = {word for step in BUILD_STAGE.steps if step.instruction == "COPY" for word in step.words[:-1]}
    assert rules[0] == "*"
    assert {rule.removeprefix("!") for rule in rules if rule.startswith("!")} == copied
    assert rules[-1] == "**/__pycache__"

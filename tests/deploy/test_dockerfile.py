"""The Dockerfile's instructions, compared with the checkout; builds nothing."""

import pytest

from tests.deploy.conftest import CHECKOUT
from tests.deploy.dockerfile import stages_of, variables

BUILD, RUN = stages_of((CHECKOUT / "Dockerfile").read_text())


def test_user_owns_the_volume_and_root_the_rest() -> None:
    user = RUN.only("USER").rest
    owners = {step.words[-1]: step.options.get("chown", "0:0") for step in RUN.steps if step.instruction == "COPY"}
    assert owners == {"/opt/inbox": "0:0", RUN.only("VOLUME").rest: user}
    number, group = user.split(":")
    assert int(number) > 0
    assert int(group) > 0


def test_exposed_port_equals_inbox_port() -> None:
    assert RUN.only("EXPOSE").rest == variables(RUN.only("ENV"), {"PATH": ""})["INBOX_PORT"]


def test_unknown_instruction_is_an_error() -> None:
    with pytest.raises(ValueError, match="unknown instruction: ADD"):
        stages_of("FROM scratch\nADD https://example.com/file /\n")


def test_build_context_has_only_the_copied_files() -> None:
    rules = [line for line in (CHECKOUT / ".dockerignore").read_text().splitlines() if not line.startswith("#")]
    copied = {word for step in BUILD.steps if step.instruction == "COPY" for word in step.words[:-1]}
    assert rules[0] == "*"
    assert {rule.removeprefix("!") for rule in rules if rule.startswith("!")} == copied
    assert rules[-1] == "**/__pycache__"

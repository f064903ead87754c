"""One service for each of gunicorn's parsers, and what has to hold whatever is sent to it."""

import json
from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from tests.torture.hostile.target import SECRET, Target, Tenant


@pytest.fixture(scope="session", params=["c", "python"])
def running(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    if request.param == "c" and not find_spec("gunicorn_h1c"):
        missing = pytest.fail if request.config.getoption("--all-engines") else pytest.skip
        missing("gunicorn's parser in C could not be built: is there a C compiler?")
    target = Target(tmp_path_factory.mktemp("hostile"), parser=request.param)
    yield target
    target.stop()


@pytest.fixture
def target(running: Target) -> Iterator[Target]:
    """Neither a key nor a payload is in the log, nothing is answered with 5xx, and the service goes on."""
    read = len(running.service.log.read_bytes())
    running.keys.clear()
    yield running
    assert running.ask("GET", "/readyz").status == 200
    log = running.service.log.read_bytes()[read:].decode()
    for secret in (SECRET, *(key[4:20] for key in running.keys)):
        assert secret not in log
    lines = [json.loads(line) for line in log.splitlines()]
    assert [line for line in lines if line["level"] == "error" or line.get("status", 0) >= 500] == []


@pytest.fixture
def victim(target: Target) -> Tenant:
    return target.tenant()


@pytest.fixture
def attacker(target: Target) -> Tenant:
    return target.tenant()

"""One service for all hostile requests, and checks after each test."""

import json
from collections.abc import Iterator

import pytest

from tests.torture.hostile.target import SECRET, Target, Tenant


@pytest.fixture(scope="session")
def running_target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    target = Target(tmp_path_factory.mktemp("hostile"))
    yield target
    target.service.kill()


@pytest.fixture
def target(running_target: Target) -> Iterator[Target]:
    """After the test, checks that no key or payload was logged, no response was a 5xx, and the service is ready."""
    log_start = len(running_target.service.log.read_bytes())
    running_target.keys.clear()
    yield running_target
    assert running_target.request("GET", "/readyz").status == 200
    log = running_target.service.log.read_bytes()[log_start:].decode()
    for secret in (SECRET, *(key[4:20] for key in running_target.keys)):
        assert secret not in log
    lines = [json.loads(line) for line in log.splitlines()]
    assert [line for line in lines if line["level"] == "error" or line.get("status", 0) >= 500] == []


@pytest.fixture
def victim(target: Target) -> Tenant:
    return target.create_tenant()


@pytest.fixture
def attacker(target: Target) -> Tenant:
    return target.create_tenant()

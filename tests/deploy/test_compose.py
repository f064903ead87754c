"""The compose files match the image and the settings, and grant no more than the service needs."""

import re
import tomllib
from dataclasses import fields
from typing import Any

import pytest
import yaml

from inbox.settings import Settings, read_settings, variable_of
from tests.deploy.conftest import CHECKOUT
from tests.deploy.dockerfile import parse_stages
from tests.engines.aws import aws_environment

EMBEDDED, DYNAMODB = "docker-compose.yml", "docker-compose.dynamodb.yml"
FINAL_STAGE = parse_stages((CHECKOUT / "Dockerfile").read_text())[-1]


def read_services(file: str) -> dict[str, Any]:
    services: dict[str, Any] = yaml.safe_load((CHECKOUT / file).read_text())["services"]
    return services


SERVICES = {f"{file}-{name}": service for file in (EMBEDDED, DYNAMODB) for name, service in read_services(file).items()}
OWN_SERVICES = {name: service for name, service in SERVICES.items() if "build" in service}
each_service = pytest.mark.parametrize("service", SERVICES.values(), ids=SERVICES)
each_own_service = pytest.mark.parametrize("service", OWN_SERVICES.values(), ids=OWN_SERVICES)


@each_service
def test_ports_are_on_loopback_and_containers_have_no_privileges(service: dict[str, Any]) -> None:
    assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert {"privileged", "user", "cap_add", "network_mode", "pid", "ipc"}.isdisjoint(service)


@each_service
def test_external_images_are_pinned(service: dict[str, Any]) -> None:
    assert ("build" in service) != bool(re.fullmatch(r"\S+:\d+\.\d+\.\d+", service["image"]))


@each_own_service
def test_file_system_is_read_only_except_tmp_and_the_volume(service: dict[str, Any]) -> None:
    assert service["build"] == "."
    assert service["read_only"] is True
    assert service["tmpfs"] == ["/tmp"]  # noqa: S108
    assert [mount.partition(":")[2] for mount in service.get("volumes", [])] in ([], [FINAL_STAGE.only("VOLUME").rest])


@each_own_service
def test_every_variable_is_a_setting_or_belongs_to_aws(service: dict[str, Any]) -> None:
    environment = service.get("environment", {})
    settings = {variable_of(each.name) for each in fields(Settings)}
    assert set(environment) <= settings | set(aws_environment(""))
    read_settings(environment, on_terminal=False)


@pytest.mark.parametrize("file", [EMBEDDED, DYNAMODB])
def test_published_port_is_that_of_the_image(file: str) -> None:
    (port,) = read_services(file)["inbox"]["ports"]
    assert port.split(":")[-1] == FINAL_STAGE.only("EXPOSE").rest
    # The compose file does not override the image's health check and command.
    assert {"healthcheck", "command", "entrypoint"}.isdisjoint(read_services(file)["inbox"])


def test_embedded_store_is_in_a_declared_volume() -> None:
    declared = yaml.safe_load((CHECKOUT / EMBEDDED).read_text())["volumes"]
    assert read_services(EMBEDDED)["inbox"]["volumes"] == ["data:/data"]
    assert set(declared) == {"data"}


def test_tables_are_created_before_the_service_starts() -> None:
    services = read_services(DYNAMODB)
    assert services["inbox"]["depends_on"] == {"tables": {"condition": "service_completed_successfully"}}
    assert services["tables"]["command"] == "inbox init"
    assert services["tables"]["depends_on"] == {"dynamodb": {"condition": "service_healthy"}}
    assert services["tables"]["environment"] == services["inbox"]["environment"]
    assert services["inbox"]["environment"]["AWS_ENDPOINT_URL_DYNAMODB"] == "http://dynamodb:8000"


def test_both_stages_pin_the_same_supported_python() -> None:
    bases = [stage.base for stage in parse_stages((CHECKOUT / "Dockerfile").read_text())]
    versions = [re.fullmatch(r"python:(3\.\d+)(\.\d+)(?:-slim)?-bookworm", base) for base in bases]
    assert len({found and found[1] + found[2] for found in versions}) == 1
    assert versions[-1] is not None
    assert "-slim" in bases[-1]
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    minimum = project["requires-python"].removeprefix(">=")
    assert [int(part) for part in versions[-1][1].split(".")] >= [int(part) for part in minimum.split(".")]

"""What every kind of test may use."""

import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

import botocore.session
import pytest
from playwright.sync_api import Browser

from inbox.metrics.folder import create_metrics_folder
from tests.deploy.recording import Recording
from tests.engines import browser, cloud, container, dynamodb_local, moto_server, programs, small_disk, zapier
from tests.engines.aws import aws_environment
from tests.engines.harnesses import DynamoDBHarness
from tests.engines.small_disk import SmallDisk
from tests.service import Service
from tests.torture import report

# The longest of all.
_FIRST = ("tests/torture/", "tests/zapier/", "tests/deploy/test_afternoon.py", "tests/deploy/test_image.py")

_MAY_BE_MISSING = (browser, cloud, container, dynamodb_local, programs, small_disk, zapier)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--torture", action="store_true", help="run the crash and concurrency tests at full length")
    parser.addoption("--all-engines", action="store_true", help="fail where something that tests run on is missing")
    parser.addoption("--node-red", action="store_true", help="run the recipe for Node-RED in the real one")


def pytest_configure(config: pytest.Config) -> None:
    # Not in xdist's workers: they inherit what it sets.
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recording())


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    # Not skipped but not there: a test of a program that was not asked for is no result.
    if collection_path.name == "test_node_red.py" and not config.getoption("--node-red"):
        return True
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # One that is left to the end keeps the other processes waiting. Among themselves they stay in any order.
    items.sort(key=lambda item: not item.nodeid.startswith(_FIRST))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [each for outcome in ("passed", "failed") for each in terminalreporter.getreports(outcome)]
    accounts = report.table(each for test in reports for each in test.user_properties)
    for line in [*accounts, *(line for test in reports for line in report.counts(test.nodeid, test.user_properties))]:
        terminalreporter.write_line(line)
    for engine in _MAY_BE_MISSING:
        if not engine.is_there():
            terminalreporter.write_line(engine.MISSING, red=True, bold=True)


def _need(engine: ModuleType, request: pytest.FixtureRequest) -> None:
    if not engine.is_there():
        if request.config.getoption("--all-engines"):
            pytest.fail(engine.MISSING)
        pytest.skip(engine.MISSING)


@pytest.fixture
def torture(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--torture"))


@pytest.fixture(scope="session", autouse=True)
def connections() -> Iterator[None]:
    """What the tests of one engine share is let go at the end."""
    yield
    DynamoDBHarness.let_go()


@pytest.fixture(scope="session", autouse=True)
def descriptions_of_services() -> Iterator[None]:
    """botocore reads them anew for every connection, which takes longer than many tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(botocore.session, "create_loader", cache(botocore.session.create_loader))
        yield


@pytest.fixture(scope="session", autouse=True)
def shared_memory() -> Iterator[None]:
    """Removes the metrics of killed services, as the next start of a service would."""
    yield
    # Its workers may still be ending. Services of other test processes keep theirs.
    for _ in range(20):
        with create_metrics_folder() as folder:
            others = [each for each in folder.parent.glob("inbox-metrics-*") if each != folder]
        if not others:
            break
        time.sleep(0.05)


@pytest.fixture(scope="session")
def moto_url() -> Iterator[str]:
    with moto_server.running() as url:
        yield url


@pytest.fixture(scope="session")
def dynamodb_local_url(request: pytest.FixtureRequest) -> Iterator[str]:
    _need(dynamodb_local, request)
    with dynamodb_local.running() as url:
        yield url


@pytest.fixture(scope="session")
def cloud_tools(request: pytest.FixtureRequest) -> None:
    """What stands in for AWS is there; nothing is started yet."""
    _need(cloud, request)


@pytest.fixture(scope="session")
def chromium(request: pytest.FixtureRequest) -> Iterator[Browser]:
    _need(browser, request)
    with browser.running() as chromium:
        yield chromium


@pytest.fixture(scope="session")
def zapier_folder(request: pytest.FixtureRequest) -> Path:
    """The integration, with Zapier's own code in place."""
    _need(zapier, request)
    return zapier.FOLDER


@pytest.fixture(scope="session")
def recipe_programs(request: pytest.FixtureRequest) -> None:
    """What recipes are written for; without it they are not tried."""
    _need(programs, request)


@pytest.fixture(scope="session")
def containers(request: pytest.FixtureRequest) -> None:
    """Without them the image is not tried."""
    _need(container, request)


@pytest.fixture
def on_moto(moto_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in aws_environment(moto_url).items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def on_dynamodb_local(dynamodb_local_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in aws_environment(dynamodb_local_url).items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def new_service(tmp_path: Path) -> Iterator[Callable[[], Service]]:
    services: list[Service] = []

    def create() -> Service:
        folder = tmp_path / f"service-{len(services)}"
        folder.mkdir()
        services.append(Service(folder))
        return services[-1]

    yield create
    for service in services:
        service.kill()


@pytest.fixture(scope="session")
def running_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One for many tests, each with a tenant of its own."""
    service = Service(tmp_path_factory.mktemp("service"))
    try:
        service.start()
        yield service
    finally:
        service.kill()


@pytest.fixture
def disk(service: Service, request: pytest.FixtureRequest) -> Iterator[SmallDisk]:
    """In a folder of the service, for what it is told to keep there."""
    _need(small_disk, request)
    folder = service.folder / "disk"
    folder.mkdir()
    with SmallDisk(folder) as disk:
        yield disk


@pytest.fixture
def service(new_service: Callable[[], Service]) -> Service:
    """Not started yet."""
    return new_service()


@pytest.fixture(params=["sqlite", "dynamodb_local"])
def on_each_engine(request: pytest.FixtureRequest, service: Service) -> Service:
    """Not started yet."""
    if request.param != "sqlite":
        service.keep_in_dynamodb(request.getfixturevalue(f"{request.param}_url"))
        assert service.run("init").returncode == 0
    return service

"""The two tiers of the suite, and the fixtures that every kind of test may use."""

import signal
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

import botocore.session
import pytest
from playwright.sync_api import Browser

from inbox.metrics.folder import create_metrics_folder
from tests.deploy.recorded_calls import CallRecording
from tests.engines import browser, cloud, container, dynamodb_local, moto_server, programs, small_disk, zapier
from tests.engines.aws import aws_environment
from tests.engines.harnesses import DynamoDBHarness
from tests.engines.small_disk import SmallDisk
from tests.service import Service
from tests.torture import summary

# `make test-all` runs these, `make test` everything else. A single test elsewhere is marked with `@pytest.mark.slow`.
_SLOW = (
    "tests/api/test_arbitrary_requests.py",
    "tests/browser/",
    "tests/deploy/test_readme.py",
    "tests/deploy/test_checkov.py",
    "tests/deploy/test_emulator.py",
    "tests/deploy/test_image.py",
    "tests/deploy/test_smoke.py",
    "tests/deploy/test_smoke_interrupted.py",
    "tests/e2e/test_generated_client.py",
    "tests/e2e/test_memory.py",
    "tests/e2e/test_proxies.py",
    "tests/recipes/",
    "tests/torture/",
    "tests/zapier/",
)
# These tests start first: a long test that starts last keeps one worker busy while the others have nothing to do.
_LONGEST = (
    "tests/zapier/",
    "tests/deploy/test_readme.py",
    "tests/deploy/test_image.py",
    "tests/torture/",
    "tests/e2e/",
)

_ENGINES = (browser, cloud, container, dynamodb_local, programs, small_disk, zapier)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--torture", action="store_true", help="run tests/torture at full length")
    parser.addoption("--require-engines", action="store_true", help="fail, not skip, if an engine is missing")
    parser.addoption("--node-red", action="store_true", help="also run the Node-RED recipe in a real Node-RED")


def pytest_configure(config: pytest.Config) -> None:
    if missing := [path for path in (*_SLOW, *_LONGEST) if not (config.rootpath / path).exists()]:
        raise pytest.UsageError(f"tests/conftest.py names files that do not exist: {', '.join(missing)}")
    # Background jobs of a shell and nohup ignore these signals, and programs that tests start would do so too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    # Not in xdist's workers, because they inherit the environment that it sets.
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(CallRecording())


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    # Ignored, not skipped, so that the summary of skipped tests does not list tests that only `make recipes` runs.
    if collection_path.name == "test_node_red.py" and not config.getoption("--node-red"):
        return True
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.startswith(_SLOW):
            item.add_marker("slow")
    items.sort(key=lambda item: not item.nodeid.startswith(_LONGEST))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [each for outcome in ("passed", "failed") for each in terminalreporter.getreports(outcome)]
    for line in summary.format_figures((test.nodeid, test.user_properties) for test in reports):
        terminalreporter.write_line(line)
    skipped = " ".join(str(test.longrepr) for test in terminalreporter.getreports("skipped"))
    for engine in _ENGINES:
        if engine.MISSING in skipped:
            terminalreporter.write_line(engine.MISSING, red=True, bold=True)


def _require(engine: ModuleType, request: pytest.FixtureRequest) -> None:
    if not engine.is_available():
        if request.config.getoption("--require-engines"):
            pytest.fail(engine.MISSING)
        pytest.skip(engine.MISSING)


@pytest.fixture
def torture(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--torture"))


@pytest.fixture(scope="session", autouse=True)
def connections() -> Iterator[None]:
    """Closes, after all tests, the connections that the tests of one engine share."""
    yield
    DynamoDBHarness.close_connections()


@pytest.fixture(scope="session", autouse=True)
def botocore_loader() -> Iterator[None]:
    """Shares one loader between connections: parsing botocore's service descriptions takes longer than a test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(botocore.session, "create_loader", cache(botocore.session.create_loader))
        yield


@pytest.fixture(scope="session", autouse=True)
def metrics_folders() -> Iterator[None]:
    """Removes, after all tests, the metrics folders of killed services, as the next start of a service would."""
    yield
    # Workers of a killed service may still be exiting. Running services of other test processes keep their folders.
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
    _require(dynamodb_local, request)
    with dynamodb_local.running() as url:
        yield url


@pytest.fixture(scope="module")
def new_dynamodb_local_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """An engine that only the tests of one file use."""
    _require(dynamodb_local, request)
    with dynamodb_local.running() as url:
        yield url


@pytest.fixture(scope="session")
def cloud_tools(request: pytest.FixtureRequest) -> None:
    """Requires the AWS emulator, AWS's command line and checkov; starts nothing."""
    _require(cloud, request)


@pytest.fixture(scope="session")
def chromium(request: pytest.FixtureRequest) -> Iterator[Browser]:
    _require(browser, request)
    with browser.running() as chromium:
        yield chromium


@pytest.fixture(scope="session")
def zapier_folder(request: pytest.FixtureRequest) -> Path:
    """The folder of the integration, with Zapier's own code installed."""
    _require(zapier, request)
    return zapier.FOLDER


@pytest.fixture(scope="session")
def recipe_programs(request: pytest.FixtureRequest) -> None:
    """Requires the programs that the recipes use."""
    _require(programs, request)


@pytest.fixture(scope="session")
def containers(request: pytest.FixtureRequest) -> None:
    """Requires a kernel that lets this user create containers."""
    _require(container, request)


@pytest.fixture
def on_moto(moto_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # moto shares this process and handles one request at a time, so on a busy machine a response may take longer than
    # the store's timeout. The store would then repeat a write that moto still carries out, and moto would execute both.
    monkeypatch.setattr("inbox.store.dynamodb.connection._READ_TIMEOUT_SECONDS", 60)
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
    """One service for all tests of this process; each test creates its own tenant."""
    service = Service(tmp_path_factory.mktemp("service"))
    try:
        service.start()
        yield service
    finally:
        service.kill()


@pytest.fixture
def disk(service: Service, request: pytest.FixtureRequest) -> Iterator[SmallDisk]:
    """A small file system inside the service's folder."""
    _require(small_disk, request)
    folder = service.folder / "disk"
    folder.mkdir()
    with SmallDisk(folder) as disk:
        yield disk


@pytest.fixture
def service(new_service: Callable[[], Service]) -> Service:
    """A service that is not started yet."""
    return new_service()


@pytest.fixture(params=["sqlite", "dynamodb_local"])
def service_on_each_engine(request: pytest.FixtureRequest, service: Service) -> Service:
    """A service that is not started yet."""
    if request.param != "sqlite":
        service.keep_in_dynamodb(request.getfixturevalue(f"{request.param}_url"))
        assert service.invoke("init").returncode == 0
    return service

"""The Dockerfile, replayed: what comes out boots as it says, read-only and without rights, and stops gracefully."""

import json
import signal
import sys
import tempfile
from pathlib import Path

import pytest

from tests.deploy.conftest import CHECKOUT
from tests.deploy.image_build import PYTHON, Replay
from tests.engines.container import Container
from tests.service import until


@pytest.mark.usefixtures("containers")
def test_what_is_built_runs_as_it_should() -> None:
    """All in one: several at once would each build it, which takes longer than everything else here."""
    # Not with pytest's own folders: those are kept for a while, and this is a few hundred megabytes.
    with tempfile.TemporaryDirectory() as folder:
        built = Replay(CHECKOUT, Path(folder))
        only_what_runs_is_in_it(built)
        every_module_is_compiled(built)
        it_is_unhealthy_where_nothing_answers(built)
        with container_of(built, built.stage.only("CMD").command) as running:
            it_boots(running, built)
            an_event_goes_through_it(running)
            it_is_process_1_of_a_user_who_may_nothing(running)
            it_writes_to_the_volume_and_nowhere_else(running, built)
            a_stop_is_graceful(running, built)


def container_of(built: Replay, command: list[str]) -> Container:
    """As `docker run --read-only --tmpfs /tmp` would start it."""
    user, _, _ = built.stage.only("USER").rest.partition(":")
    # Where a user has no entry in /etc/passwd its home is /.
    environment = built.image.environment | {"HOME": "/"}
    return Container(built.image.layer, command, environment, user, built.stage.only("VOLUME").words)


def only_what_runs_is_in_it(built: Replay) -> None:
    standard_library = f"{Path(json.__file__).parents[1].resolve()}/"
    written = {
        path
        for path in built.image.layer.written()
        if not path.startswith("/opt/inbox/") and not (path.startswith(standard_library) and path.endswith(".pyc"))
    }
    # Links of the root folder, such as /bin, are the base's.
    base = {str(PYTHON), *(f"/{entry.name}" for entry in Path("/").iterdir() if entry.is_symlink())}
    assert written - base == {"/data"}


def every_module_is_compiled(built: Replay) -> None:
    packages = next(built.image.layer.path("/opt/inbox/lib").glob("python3.*/site-packages"))
    version = packages.parent.name.removeprefix("python").replace(".", "")
    assert sys.implementation.cache_tag == f"cpython-{version}"
    ours = [module for package in ("inbox", "authorizer") for module in (packages / package).rglob("*.py")]
    assert len(ours) > 100
    for module in ours:
        assert (module.parent / "__pycache__" / f"{module.stem}.cpython-{version}.pyc").is_file()


def it_is_unhealthy_where_nothing_answers(built: Replay) -> None:
    with container_of(built, built.stage.only("HEALTHCHECK").command) as alone:
        assert alone.wait() == 1
        assert "Connection refused" in alone.log.read_text()


def it_boots(running: Container, built: Replay) -> None:
    def is_healthy() -> bool:
        assert running.is_running, running.log.read_text()
        return running.run(built.stage.only("HEALTHCHECK").command).returncode == 0

    until(is_healthy, 30)


def an_event_goes_through_it(running: Container) -> None:
    assert running.run(["inbox", "tenants", "create", "acme"]).returncode == 0
    key = running.run(["inbox", "keys", "create", "acme", "--scope", "all"]).stdout.strip()
    sent = running.run(["inbox", "send", "--key", key, '{"order": 1001.0}'])
    assert sent.returncode == 0, sent.stderr
    (event,) = running.run(["inbox", "poll", "--key", key]).stdout.splitlines()
    assert '"payload":{"order":1001.0}' in event
    assert json.loads(event)["id"] == json.loads(sent.stdout)["id"]
    smoke = [sys.executable, str(CHECKOUT / "deploy" / "smoke"), "http://127.0.0.1:8080"]
    assert running.run_beside(smoke, INBOX_API_KEY=key).returncode == 0


def it_is_process_1_of_a_user_who_may_nothing(running: Container) -> None:
    status = running.run(["cat", "/proc/1/status"]).stdout
    fields = dict(line.split(":\t", 1) for line in status.splitlines())
    assert fields["Uid"].split() == fields["Gid"].split() == 4 * ["10001"]
    assert int(fields["CapEff"], 16) == 0
    assert "/opt/inbox/bin/inbox\0serve" in running.run(["cat", "/proc/1/cmdline"]).stdout


def it_writes_to_the_volume_and_nowhere_else(running: Container, built: Replay) -> None:
    assert running.run(["ls", "/tmp"]).stdout == ""  # noqa: S108
    assert (built.image.layer.folder / "volumes" / "data" / "inbox.db").is_file()
    for place in ("/", "/opt/inbox", "/usr", "/etc"):
        refused = running.run(["touch", f"{place}/written"])
        assert "Read-only file system" in refused.stderr


def a_stop_is_graceful(running: Container, built: Replay) -> None:
    running.signal(signal.Signals[built.stage.only("STOPSIGNAL").rest])
    assert running.wait() == 0, running.log.read_text()

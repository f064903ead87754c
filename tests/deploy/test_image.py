"""The image built from the Dockerfile boots on a read-only file system without privileges, and stops gracefully."""

import json
import signal
import sys
import tempfile
from pathlib import Path

import pytest

from tests.deploy.conftest import CHECKOUT
from tests.deploy.image_build import PYTHON, ImageBuild
from tests.engines.container import Container
from tests.service import until


@pytest.mark.usefixtures("containers")
def test_built_image_runs_and_stops() -> None:
    """One test for all checks, since building the image takes longest."""
    # Not in tmp_path, which pytest keeps for three runs: this takes a few hundred megabytes.
    with tempfile.TemporaryDirectory() as folder:
        built = ImageBuild(CHECKOUT, Path(folder))
        check_contents(built)
        check_every_module_is_compiled(built)
        check_health_fails_without_a_service(built)
        with start_container(built, built.stage.only("CMD").command) as running:
            wait_until_healthy(running, built)
            send_and_poll_an_event(running)
            check_process_1_has_no_privileges(running)
            check_only_the_volume_is_writable(running, built)
            check_stop_is_graceful(running, built)


def start_container(built: ImageBuild, command: list[str]) -> Container:
    """Starts the image like `docker run --read-only --tmpfs /tmp`."""
    user, _, _ = built.stage.only("USER").rest.partition(":")
    # Container engines set this home for a user without an entry in /etc/passwd.
    environment = built.image.environment | {"HOME": "/"}
    return Container(built.image.layer, command, environment, user, built.stage.only("VOLUME").words)


def check_contents(built: ImageBuild) -> None:
    """Checks that the image adds /opt/inbox and /data only."""
    standard_library = f"{Path(json.__file__).parents[1].resolve()}/"
    written = {
        path
        for path in built.image.layer.written()
        if not path.startswith("/opt/inbox/") and not (path.startswith(standard_library) and path.endswith(".pyc"))
    }
    # Links in the root folder, such as /bin, come from the base image.
    in_base_image = {str(PYTHON), *(f"/{entry.name}" for entry in Path("/").iterdir() if entry.is_symlink())}
    assert written - in_base_image == {"/data"}


def check_every_module_is_compiled(built: ImageBuild) -> None:
    packages = next(built.image.layer.path("/opt/inbox/lib").glob("python3.*/site-packages"))
    version = packages.parent.name.removeprefix("python").replace(".", "")
    assert sys.implementation.cache_tag == f"cpython-{version}"
    ours = [module for package in ("inbox", "authorizer") for module in (packages / package).rglob("*.py")]
    assert len(ours) > 100
    for module in ours:
        assert (module.parent / "__pycache__" / f"{module.stem}.cpython-{version}.pyc").is_file()


def check_health_fails_without_a_service(built: ImageBuild) -> None:
    with start_container(built, built.stage.only("HEALTHCHECK").command) as alone:
        assert alone.wait() == 1
        assert "Connection refused" in alone.log.read_text()


def wait_until_healthy(running: Container, built: ImageBuild) -> None:
    def is_healthy() -> bool:
        assert running.is_running, running.log.read_text()
        return running.run(built.stage.only("HEALTHCHECK").command).returncode == 0

    until(is_healthy, 30)


def send_and_poll_an_event(running: Container) -> None:
    assert running.run(["inbox", "tenants", "create", "acme"]).returncode == 0
    key = running.run(["inbox", "keys", "create", "acme", "--scope", "all"]).stdout.strip()
    sent = running.run(["inbox", "send", "--key", key, '{"order": 1001.0}'])
    assert sent.returncode == 0, sent.stderr
    (event,) = running.run(["inbox", "poll", "--key", key]).stdout.splitlines()
    assert '"payload":{"order":1001.0}' in event
    assert json.loads(event)["id"] == json.loads(sent.stdout)["id"]
    smoke = [sys.executable, str(CHECKOUT / "deploy" / "smoke"), "http://127.0.0.1:8080"]
    assert running.run_beside(smoke, INBOX_API_KEY=key).returncode == 0


def check_process_1_has_no_privileges(running: Container) -> None:
    status = running.run(["cat", "/proc/1/status"]).stdout
    fields = dict(line.split(":\t", 1) for line in status.splitlines())
    assert fields["Uid"].split() == fields["Gid"].split() == 4 * ["10001"]
    assert int(fields["CapEff"], 16) == 0
    assert "/opt/inbox/bin/inbox\0serve" in running.run(["cat", "/proc/1/cmdline"]).stdout


def check_only_the_volume_is_writable(running: Container, built: ImageBuild) -> None:
    assert running.run(["ls", "/tmp"]).stdout == ""  # noqa: S108
    assert (built.image.layer.folder / "volumes" / "data" / "inbox.db").is_file()
    for folder in ("/", "/opt/inbox", "/usr", "/etc"):
        refused = running.run(["touch", f"{folder}/written"])
        assert "Read-only file system" in refused.stderr


def check_stop_is_graceful(running: Container, built: ImageBuild) -> None:
    running.signal(signal.Signals[built.stage.only("STOPSIGNAL").rest])
    assert running.wait() == 0, running.log.read_text()

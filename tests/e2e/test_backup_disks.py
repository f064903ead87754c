"""inbox backup and inbox restore on disks that are full or cannot be written."""

import shutil
import subprocess

from tests.e2e.consumers import Client
from tests.engines.small_disk import SmallDisk
from tests.service import INBOX, Service


def run_on_disk(
    service: Service, disk: SmallDisk, *arguments: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Runs a command in the namespace that has the disk."""
    return subprocess.run(
        [*disk.inside, INBOX, *arguments],
        env=service.environment | variables,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_full_disk_is_reported_and_left_unchanged(service: Service, disk: SmallDisk) -> None:
    client = Client(service, service.create_key("acme"))
    service.start()
    client.send({"text": "x" * 100_000})
    disk.fill()
    before = {each.name for each in disk.seen.iterdir()}

    failed = run_on_disk(service, disk, "backup", f"{service.folder}/disk/backup.db")
    assert (failed.returncode, failed.stdout) == (1, "")
    assert "disk is full" in failed.stderr
    assert service.run("backup", "backup.db").returncode == 0
    store_there = f"sqlite:///{service.folder}/disk/inbox.db"
    failed = run_on_disk(service, disk, "restore", f"{service.folder}/backup.db", INBOX_STORE=store_there)
    assert failed.returncode == 1
    assert "No space left" in failed.stderr
    assert {each.name for each in disk.seen.iterdir()} == before
    client.send({"n": 1})


def test_folder_that_cannot_be_written_is_named(service: Service, disk: SmallDisk) -> None:
    service.run("init")
    disk.lock()
    failed = run_on_disk(service, disk, "backup", f"{service.folder}/disk/backup.db")
    assert (failed.returncode, failed.stdout) == (1, "")
    assert failed.stderr == f"error: The folder {service.folder}/disk cannot be written: Read-only file system.\n"


def test_backup_on_a_read_only_disk_is_restored(service: Service, disk: SmallDisk) -> None:
    service.run("tenants", "create", "acme")
    service.run("backup", "backup.db")
    shutil.copy(service.folder / "backup.db", disk.seen)
    disk.lock()
    service.run("tenants", "create", "beta")
    restored = run_on_disk(service, disk, "restore", f"{service.folder}/disk/backup.db")
    assert restored.returncode == 0, restored.stderr
    assert service.run("tenants", "list", "--json").stdout.count("tenant_id") == 1

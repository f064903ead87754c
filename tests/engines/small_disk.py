"""A file system of a few megabytes that a test can fill and lock.

It lives in a mount namespace of its own, which needs no root where the kernel lets users have namespaces, and which is
gone with its last process, however the tests end.
"""

import subprocess
from contextlib import suppress
from pathlib import Path

MISSING = (
    "Tests of full and read-only disks did NOT run: this machine lets nobody mount a file system in a namespace of "
    "their own (unshare --user --map-root-user --mount)."
)


def is_available() -> bool:
    try:
        with SmallDisk(Path("/mnt")):
            return True
    except OSError:
        return False


class SmallDisk:
    """Seen at `folder` by what is started with `inside` before its command, and at `seen` by the test."""

    def __init__(self, folder: Path, mebibytes: int = 24) -> None:
        self._folder = folder
        # It goes on as a shell inside, which does as it is told.
        mount = f"mount -t tmpfs -o size={mebibytes}m disk {folder} && exec sh -e"
        self._shell = subprocess.Popen(
            ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mount],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            bufsize=1,
        )
        self.inside = [
            "nsenter",
            f"--target={self._shell.pid}",
            "--user",
            "--mount",
            "--preserve-credentials",
        ]
        self.seen = Path(f"/proc/{self._shell.pid}/root{folder}")
        try:
            self._tell(":")
        except OSError:
            self.close()
            raise

    def __enter__(self) -> "SmallDisk":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def fill(self, leave_bytes: int = 0) -> None:
        """Fills the disk, and fills it again after something has made room."""
        with (self.seen / "filler").open("ab", buffering=0) as filler:
            for size in (65_536, 4_096, 1):
                try:
                    while filler.write(b"x" * size):
                        pass
                except OSError:
                    continue
            filler.truncate(filler.tell() - leave_bytes)

    def make_room(self) -> None:
        (self.seen / "filler").unlink()

    def lock(self) -> None:
        """Read-only for whatever opens a file from now on: files that are open for writing keep a disk writable."""
        self._tell(f"mount --bind {self._folder} {self._folder} && mount -o remount,bind,ro {self._folder}")

    def unlock(self) -> None:
        # Lazily: files that were opened through it may still be open.
        self._tell(f"umount --lazy {self._folder}")

    def close(self) -> None:
        self._shell.kill()
        self._shell.communicate()

    def _tell(self, command: str) -> None:
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        with suppress(BrokenPipeError):
            self._shell.stdin.write(f"{command}\necho done\n")
        if self._shell.stdout.readline() != "done\n":
            raise OSError(f"could not be done: {command}")

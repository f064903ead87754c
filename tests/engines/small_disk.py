"""A file system of a few megabytes that a test can fill and make read-only.

It is mounted in its own mount namespace, which needs no root if the kernel allows user namespaces, and which disappears
with its last process.
"""

import subprocess
from contextlib import suppress
from pathlib import Path

MISSING = (
    "NOT TESTED: full and read-only disks. This machine does not allow mounts in a user namespace "
    "(unshare --user --map-root-user --mount)."
)


def is_available() -> bool:
    try:
        with SmallDisk(Path("/mnt")):
            return True
    except OSError:
        return False


class SmallDisk:
    """Processes that start with the prefix `inside` see the disk at `folder`. The test sees it at `seen`."""

    def __init__(self, folder: Path, mebibytes: int = 24) -> None:
        self._folder = folder
        # The process then becomes a shell in the namespace that runs the commands of this class.
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
            self._execute(":")
        except OSError:
            self.close()
            raise

    def __enter__(self) -> "SmallDisk":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def fill(self, leave_bytes: int = 0) -> None:
        """Fills the disk. Call it again to fill space that was freed since."""
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
        """Makes the disk read-only for files that are opened from now on; open files stay writable."""
        self._execute(f"mount --bind {self._folder} {self._folder} && mount -o remount,bind,ro {self._folder}")

    def unlock(self) -> None:
        # Files on the disk may still be open.
        self._execute(f"umount --lazy {self._folder}")

    def close(self) -> None:
        self._shell.kill()
        self._shell.communicate()

    def _execute(self, command: str) -> None:
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        with suppress(BrokenPipeError):
            self._shell.stdin.write(f"{command}\necho done\n")
        if self._shell.stdout.readline() != "done\n":
            raise OSError(f"command failed: {command}")

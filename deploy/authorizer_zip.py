"""`make build`: the package `authorizer` as a zip for a Lambda. The same sources make the same bytes."""

import sys
import zipfile
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "authorizer"
# The earliest that a zip can say.
_ALWAYS = (1980, 1, 1, 0, 0, 0)
_READABLE_FILE = 0o100644 << 16
_UNIX = 3


def build(target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    # Stored as they are: what a compressor makes of them depends on its release.
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for source in sorted(PACKAGE.rglob("*.py")):
            entry = zipfile.ZipInfo(source.relative_to(PACKAGE.parent).as_posix(), _ALWAYS)
            entry.create_system = _UNIX
            entry.external_attr = _READABLE_FILE
            archive.writestr(entry, source.read_bytes())


if __name__ == "__main__":
    build(Path(sys.argv[1]))

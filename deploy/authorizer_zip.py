"""`make build`: packs `authorizer` into a zip for a Lambda. The same sources give the same bytes."""

import sys
import zipfile
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "authorizer"
# The earliest time that a zip can store.
_TIMESTAMP = (1980, 1, 1, 0, 0, 0)
_READABLE_FILE = 0o100644 << 16
_UNIX = 3


def build(target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    # Uncompressed: the output of a compressor depends on its version.
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for source in sorted(PACKAGE.rglob("*.py")):
            entry = zipfile.ZipInfo(source.relative_to(PACKAGE.parent).as_posix(), _TIMESTAMP)
            entry.create_system = _UNIX
            entry.external_attr = _READABLE_FILE
            archive.writestr(entry, source.read_bytes())


if __name__ == "__main__":
    build(Path(sys.argv[1]))

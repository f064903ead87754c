"""The built wheel. Other tests use an editable install, which hides missing files."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from inbox import __version__

ROOT = Path(__file__).parents[2]


def test_wheel_contains_every_file(tmp_path: Path) -> None:
    source = tmp_path / "source"
    for folder in ("inbox", "authorizer"):
        shutil.copytree(ROOT / folder, source / folder, ignore=shutil.ignore_patterns("__pycache__"))
    expected = {str(file.relative_to(source)) for file in source.rglob("*") if file.is_file()}
    for file in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / file, source)
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path), str(source)]
    subprocess.run(build, check=True, timeout=120)

    (built,) = tmp_path.glob("*.whl")
    assert built.name.startswith(f"polling_inbox-{__version__}-")
    with zipfile.ZipFile(built) as wheel:
        names = wheel.namelist()
    packed = {name for name in names if ".dist-info/" not in name}
    assert packed == expected
    # Marks the installed client as typed.
    assert "inbox/py.typed" in packed
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)

"""The zip file for Lambda, unpacked in an environment that has only boto3."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from authorizer import apikey, sealing
from tests.authorizer.conftest import PAYLOAD_FORMATS, SECRET, read_event
from tests.authorizer.empty_environment import EmptyEnvironment
from tests.authorizer.registry import Registry
from tests.engines.aws import aws_environment

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "authorizer"

_CALL_HANDLER = """
from authorizer.lambda_handler import handler
def response_to(event):
    try:
        return handler(event, None)
    except Exception as error:
        return str(error)
print(json.dumps([response_to(event) for event in json.load(sys.stdin)]))
"""
_PRINT_MODULES = "import {}; print(json.dumps(sorted(sys.modules)))"


def build(root: Path, target: Path) -> bytes:
    subprocess.run([sys.executable, str(root / "deploy" / "authorizer_zip.py"), str(target)], check=True, timeout=60)
    return target.read_bytes()


@pytest.fixture(scope="module")
def empty_environment(tmp_path_factory: pytest.TempPathFactory) -> EmptyEnvironment:
    folder = tmp_path_factory.mktemp("lambda")
    build(ROOT, folder / "authorizer.zip")
    with zipfile.ZipFile(folder / "authorizer.zip") as archive:
        archive.extractall(folder / "task")
    return EmptyEnvironment(folder / "venv", folder / "task")


def test_zip_contains_only_the_sources(tmp_path: Path) -> None:
    build(ROOT, tmp_path / "new folder" / "authorizer.zip")
    with zipfile.ZipFile(tmp_path / "new folder" / "authorizer.zip") as archive:
        packed = {entry.filename: archive.read(entry) for entry in archive.infolist()}
        # Lambda runs as a user that does not own the files.
        assert {entry.external_attr >> 16 & 0o777 for entry in archive.infolist()} == {0o644}
    assert packed == {f"authorizer/{file.name}": file.read_bytes() for file in PACKAGE.glob("*.py")}


def test_same_sources_build_the_same_bytes(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(PACKAGE, elsewhere / "authorizer")
    for other_file in ("__pycache__/apikey.cpython-311.pyc", "notes.txt"):
        (elsewhere / "authorizer" / other_file).parent.mkdir(exist_ok=True)
        (elsewhere / "authorizer" / other_file).touch()
    (elsewhere / "deploy").mkdir()
    shutil.copy(ROOT / "deploy" / "authorizer_zip.py", elsewhere / "deploy")
    for number, file in enumerate(sorted(elsewhere.rglob("*.py"), reverse=True)):
        file.chmod(0o600)
        os.utime(file, (1_000_000_000 + number, 1_000_000_000 + number))
    assert build(elsewhere, tmp_path / "other.zip") == build(ROOT, tmp_path / "authorizer.zip")


def test_import_needs_no_package_beside_boto3(empty_environment: EmptyEnvironment) -> None:
    beside_boto3 = set(empty_environment.run(_PRINT_MODULES.format("authorizer.lambda_handler"))) - set(
        empty_environment.run(_PRINT_MODULES.format("boto3"))
    )
    others = {name for name in beside_boto3 if name.partition(".")[0] not in sys.stdlib_module_names}
    assert "authorizer.lambda_handler" in others
    assert {name for name in others if name.partition(".")[0] != "authorizer"} == set()


def test_zip_handles_recorded_events(empty_environment: EmptyEnvironment, registry: Registry, moto_url: str) -> None:
    tenant_id = registry.add_tenant()
    key = registry.add_key(tenant_id)
    environment = aws_environment(moto_url) | {
        "INBOX_TABLE_PREFIX": registry.prefix,
        "INBOX_AUTHORIZER_SECRET": SECRET,
    }
    refused = [read_event(payload_format, apikey.mint()) for payload_format in PAYLOAD_FORMATS]
    responses = empty_environment.run(
        _CALL_HANDLER, [*(read_event(payload_format, key) for payload_format in PAYLOAD_FORMATS), *refused], environment
    )
    for response in responses[: len(PAYLOAD_FORMATS)]:
        sealed = sealing.open_seal(response["context"]["principal"], apikey.hash_of(key), SECRET)
        assert sealed is not None
        assert sealed.record.principal.tenant_id == response["context"]["tenant_id"] == tenant_id
    for payload_format, response in zip(PAYLOAD_FORMATS, responses[len(PAYLOAD_FORMATS) :], strict=True):
        is_simple = payload_format == "http_api_2"
        assert response == ({"isAuthorized": False, "context": {}} if is_simple else "Unauthorized")

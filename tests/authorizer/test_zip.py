"""What is shipped: the zip, unpacked where there is only boto3, and called with recorded events."""

import os
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest

from authorizer import apikey, sealing
from tests.authorizer.conftest import FORMS, SECRET, recorded
from tests.authorizer.empty_environment import EmptyEnvironment
from tests.authorizer.registry import Registry
from tests.engines.aws import aws_environment

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "authorizer"

_CALL = """
from authorizer.lambda_handler import handler
def answer(event):
    try:
        return handler(event, None)
    except Exception as error:
        return str(error)
print(json.dumps([answer(event) for event in json.load(sys.stdin)]))
"""
_TRY_TO_IMPORT = """
from importlib import import_module
def is_there(name):
    try:
        return bool(import_module(name))
    except ModuleNotFoundError:
        return False
print(json.dumps([name for name in json.load(sys.stdin) if is_there(name)]))
"""
_MODULES = "import {}; print(json.dumps(sorted(sys.modules)))"


def build(root: Path, target: Path) -> bytes:
    subprocess.run([sys.executable, str(root / "deploy" / "authorizer_zip.py"), str(target)], check=True, timeout=60)
    return target.read_bytes()


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> EmptyEnvironment:
    folder = tmp_path_factory.mktemp("lambda")
    build(ROOT, folder / "authorizer.zip")
    with zipfile.ZipFile(folder / "authorizer.zip") as archive:
        archive.extractall(folder / "task")
    return EmptyEnvironment(folder / "venv", folder / "task")


def test_only_the_sources_are_in_it(tmp_path: Path) -> None:
    build(ROOT, tmp_path / "new folder" / "authorizer.zip")
    with zipfile.ZipFile(tmp_path / "new folder" / "authorizer.zip") as archive:
        packed = {entry.filename: archive.read(entry) for entry in archive.infolist()}
        # Lambda runs as another user than the one who owns the files.
        assert {entry.external_attr >> 16 & 0o777 for entry in archive.infolist()} == {0o644}
    assert packed == {f"authorizer/{file.name}": file.read_bytes() for file in PACKAGE.glob("*.py")}


def test_the_same_sources_make_the_same_bytes(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(PACKAGE, elsewhere / "authorizer")
    for left_behind in ("__pycache__/apikey.cpython-311.pyc", "notes.txt"):
        (elsewhere / "authorizer" / left_behind).parent.mkdir(exist_ok=True)
        (elsewhere / "authorizer" / left_behind).touch()
    (elsewhere / "deploy").mkdir()
    shutil.copy(ROOT / "deploy" / "authorizer_zip.py", elsewhere / "deploy")
    for number, file in enumerate(sorted(elsewhere.rglob("*.py"), reverse=True)):
        file.chmod(0o600)
        os.utime(file, (1_000_000_000 + number, 1_000_000_000 + number))
    assert build(elsewhere, tmp_path / "other.zip") == build(ROOT, tmp_path / "authorizer.zip")


def test_there_is_boto3_and_nothing_else(empty: EmptyEnvironment) -> None:
    wanted = ["boto3", "flask", "cachetools", "inbox", "apsw", "marshmallow", "orjson", "structlog", "pip"]
    assert empty.run(_TRY_TO_IMPORT, wanted) == ["boto3"]


def test_importing_it_loads_no_package_that_boto3_does_not(empty: EmptyEnvironment) -> None:
    beside_boto3 = set(empty.run(_MODULES.format("authorizer.lambda_handler"))) - set(
        empty.run(_MODULES.format("boto3"))
    )
    others = {name for name in beside_boto3 if name.partition(".")[0] not in sys.stdlib_module_names}
    assert "authorizer.lambda_handler" in others
    assert {name for name in others if name.partition(".")[0] != "authorizer"} == set()


def outcome(answer: Any) -> Any:
    """`True` for whoever is let in, `False` for a 403, the error's text otherwise."""
    if isinstance(answer, str):
        return answer
    if "isAuthorized" in answer:
        return answer["isAuthorized"]
    return answer["policyDocument"]["Statement"][0]["Effect"] == "Allow"


@pytest.mark.parametrize("form", FORMS)
def test_it_answers_recorded_events(form: str, empty: EmptyEnvironment, registry: Registry, moto_url: str) -> None:
    tenant_id = registry.add_tenant()
    keys = {
        "valid": registry.add_key(tenant_id),
        "revoked": registry.add_key(tenant_id, status={"S": "revoked"}),
        "expired": registry.add_key(tenant_id, expires_at={"N": str(time.time_ns() // 1_000_000)}),
        "unknown": apikey.mint(),
        "malformed": "ibx_malformed",
        "suspended": registry.add_key(registry.add_tenant(status={"S": "SUSPENDED"})),
        "deleted": registry.add_key(registry.add_tenant(active={"S": "false"})),
    }
    environment = aws_environment(moto_url) | {
        "INBOX_TABLE_PREFIX": registry.prefix,
        "INBOX_AUTHORIZER_SECRET": SECRET,
    }
    answers = dict(
        zip(keys, empty.run(_CALL, [recorded(form, key) for key in keys.values()], environment), strict=True)
    )
    no_key = False if form == "http_api_2" else "Unauthorized"
    assert {name: outcome(answer) for name, answer in answers.items()} == {
        "valid": True,
        "revoked": no_key,
        "expired": no_key,
        "unknown": no_key,
        "malformed": no_key,
        "suspended": False,
        "deleted": False,
    }
    context = answers["valid"]["context"]
    sealed = sealing.open_seal(context.pop("principal"), apikey.hash_of(keys["valid"]), SECRET)
    assert sealed is not None
    assert sealed.record.principal.tenant_id == context["tenant_id"] == tenant_id


def test_it_takes_no_unknown_event_for_an_allowed_one(empty: EmptyEnvironment) -> None:
    assert empty.run(_CALL, [{}, {"type": "TOKEN"}]) == 2 * ["This is no event of an API Gateway authorizer."]

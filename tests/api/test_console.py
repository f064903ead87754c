"""The console's page and files over HTTP. tests/browser tests the console itself."""

import gzip
import posixpath
import re
from pathlib import Path

import pytest
from flask.testing import FlaskClient

ROOT = Path(__file__).parents[2]
STATIC = ROOT / "inbox" / "console" / "static"
FILES = sorted(str(file.relative_to(STATIC)) for file in STATIC.rglob("*") if file.is_file())
SCRIPTS = [file for file in FILES if file.startswith("scripts/")]
NOT_SERVED_TO_BROWSERS = {"vendor/README.md", "vendor/uplot/LICENSE"}
MAX_COMPRESSED_BYTES = 150_000

MEDIA_TYPES = {
    ".html": {"text/html"},
    ".js": {"text/javascript", "application/javascript"},
    ".css": {"text/css"},
    ".svg": {"image/svg+xml"},
    ".json": {"application/json"},
}


def test_page_can_load_its_own_files_only(client: FlaskClient) -> None:
    page = client.get("/", buffered=True)
    policy = dict(
        directive.split(" ", 1) for directive in page.headers["Content-Security-Policy"].split("; ") if directive
    )
    assert policy == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "connect-src": "'self'",
        "img-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }
    assert page.headers["Referrer-Policy"] == "no-referrer"


def test_files_are_revalidated_and_not_sent_twice(client: FlaskClient) -> None:
    for path in ("/", *(f"/console/{file}" for file in FILES)):
        first = client.get(path, buffered=True)
        assert first.status_code == 200, path
        assert first.headers["Cache-Control"] == "no-cache", path
        assert first.headers["X-Content-Type-Options"] == "nosniff", path
        # Files need the policy too, because the page is also served under its file name.
        assert "frame-ancestors 'none'" in first.headers["Content-Security-Policy"], path
        assert first.headers["Referrer-Policy"] == "no-referrer", path

        again = client.get(path, headers={"If-None-Match": first.headers["ETag"]}, buffered=True)
        assert (again.status_code, again.data) == (304, b""), path


def test_files_have_their_media_types(client: FlaskClient) -> None:
    """With `nosniff`, browsers refuse scripts and styles of any other media type."""
    for file in FILES:
        if file not in NOT_SERVED_TO_BROWSERS:
            assert client.get(f"/console/{file}", buffered=True).mimetype in MEDIA_TYPES[Path(file).suffix], file


def test_console_is_small() -> None:
    compressed = sum(len(gzip.compress((STATIC / file).read_bytes())) for file in FILES)
    assert compressed < MAX_COMPRESSED_BYTES


def test_page_has_no_inline_script_or_style() -> None:
    page = (STATIC / "index.html").read_text()
    assert re.findall(r"<script(?![^>]*\ssrc=)|<style|\sstyle=|\son[a-z]+=|javascript:", page) == []


@pytest.mark.parametrize("file", SCRIPTS)
def test_scripts_create_no_markup_or_code_from_text(file: str) -> None:
    """Payloads and names are shown as text, never executed."""
    forbidden = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|srcdoc|eval\(|Function\(|\bstyle:"
    assert re.findall(forbidden, (STATIC / file).read_text()) == []


def test_every_script_is_used_and_every_import_exists() -> None:
    found = set(re.findall(r'src="/console/(scripts/[^"]+)"', (STATIC / "index.html").read_text()))
    assert found
    unread = list(found)
    while unread:
        script = unread.pop()
        for target in re.findall(r'from "(\.[^"]+)"', (STATIC / script).read_text()):
            name = posixpath.normpath(posixpath.join(posixpath.dirname(script), target))
            assert name in SCRIPTS, f"{script} imports {target}"
            if name not in found:
                found.add(name)
                unread.append(name)
    assert found == set(SCRIPTS)


def test_every_icon_exists() -> None:
    drawn = set(re.findall(r'<symbol id="([^"]+)"', (STATIC / "icons.svg").read_text()))
    scripts = "\n".join((STATIC / file).read_text() for file in SCRIPTS)
    views = set(re.findall(r'\{ name: "([a-z]+)", title:', scripts))
    assert len(views) == 7
    assert views | set(re.findall(r'icon\("([a-z]+)"\)', scripts)) <= drawn


def test_n8n_workflow_equals_the_tested_one_of_the_recipe() -> None:
    """docs/how-to/recipes is not installed with the package, so the console has a copy."""
    assert (STATIC / "n8n.json").read_text() == (ROOT / "docs" / "how-to" / "recipes" / "n8n.json").read_text()

"""The HTML pages."""

import re

import pytest
from flask.testing import FlaskClient


@pytest.mark.parametrize("path", ["/", "/docs", "/problems", "/problems/not-json"])
def test_pages_load_nothing_from_other_hosts(client: FlaskClient, path: str) -> None:
    page = client.get(path, buffered=True)

    assert (page.status_code, page.mimetype) == (200, "text/html")
    policy = page.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none';")
    assert "http" not in policy
    assert re.findall(r'(?:src|href)="(?:https?:)?//', page.text) == []
    assert not re.search(r"<script(?![^>]*\ssrc=)", page.text)


@pytest.mark.parametrize("path", ["/", "/docs", "/problems"])
def test_links_of_pages_work(client: FlaskClient, path: str) -> None:
    targets = re.findall(r'(?:src|href)="(/[^"]*)"', client.get(path, buffered=True).text)
    assert targets
    for target in targets:
        assert client.get(target, buffered=True).status_code == 200, target

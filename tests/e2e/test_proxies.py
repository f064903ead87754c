"""nginx and HAProxy in front of the service, configured as in deploy/proxies."""

import socket
import subprocess
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
import requests

from tests.exposition import Exposition
from tests.service import Service, bearer, free_port, until

pytestmark = pytest.mark.usefixtures("recipe_programs")

CONFIGURATIONS = Path(__file__).parents[2] / "deploy" / "proxies"
NGINX_MAIN = "pid nginx.pid;\nerror_log stderr;\nevents {}\nhttp {\n    access_log off;\n    include inbox.conf;\n}\n"


@dataclass(frozen=True)
class Example:
    """A file in deploy/proxies, and how a test runs it."""

    file: str
    listens_on: str
    command: tuple[str, ...]

    def write(self, folder: Path, port: int, service_port: int) -> None:
        """Writes the configuration with these ports instead of its own."""
        text = (CONFIGURATIONS / self.file).read_text()
        for shown, used in ((self.listens_on, f"127.0.0.1:{port}"), ("127.0.0.1:8080", f"127.0.0.1:{service_port}")):
            assert text.count(f" {shown}") == 1
            text = text.replace(f" {shown}", f" {used}")
        (folder / "inbox.conf").write_text(text)
        (folder / "nginx.conf").write_text(NGINX_MAIN)


EXAMPLES = {
    "nginx": Example("nginx.conf", "80", ("nginx", "-p", ".", "-c", "nginx.conf", "-g", "daemon off;")),
    "haproxy": Example("haproxy.cfg", ":80", ("haproxy", "-db", "-f", "inbox.conf")),
}


class Client:
    """Keeps its connection to the proxy, and opens another one while the first is busy."""

    def __init__(self, url: str, key: str) -> None:
        self._url = url
        self._session = requests.Session()
        self._session.headers.update(bearer(key))

    def get(self, path: str) -> requests.Response:
        return self._session.get(self._url + path, timeout=30)

    def post(self, path: str, **content: object) -> requests.Response:
        return self._session.post(self._url + path, timeout=30, **content)  # type: ignore[arg-type]

    def poll(self, path: str = "/inbox") -> list[object]:
        response = self.get(path)
        assert response.status_code == 200, response.text
        return [event["payload"] for event in response.json()]


@pytest.fixture(params=EXAMPLES)
def proxy_url(request: pytest.FixtureRequest, running_service: Service, tmp_path: Path) -> Iterator[str]:
    example, port = EXAMPLES[request.param], free_port()
    example.write(tmp_path, port, running_service.port)
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(example.command, cwd=tmp_path, stdout=log, stderr=log)
    try:
        until(lambda: is_proxy_ready(process, f"http://127.0.0.1:{port}", tmp_path / "log"))
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(15)


def is_proxy_ready(process: subprocess.Popen[bytes], url: str, log: Path) -> bool:
    assert process.poll() is None, log.read_text()
    try:
        return requests.get(f"{url}/readyz", timeout=5).ok
    except requests.ConnectionError:
        return False


@pytest.fixture
def key(running_service: Service) -> str:
    return running_service.create_key(f"proxied-{uuid.uuid4().hex[:8]}")


@pytest.fixture
def client(proxy_url: str, key: str) -> Client:
    return Client(proxy_url, key)


def test_event_sent_through_a_proxy_is_polled_once(client: Client) -> None:
    assert client.post("/events", json={"payload": {"n": 1}}).status_code == 201
    assert client.poll() == [{"n": 1}]
    assert client.poll() == []


def test_batch_sent_through_a_proxy_is_polled(client: Client) -> None:
    # Larger than the buffers of the proxies.
    payloads = [{"n": number, "text": "x" * 1000} for number in range(100)]
    response = client.post("/events/batch", json=[{"payload": each} for each in payloads])
    assert response.status_code == 201, response.text
    assert client.poll("/inbox?limit=100") == payloads


def test_event_ends_the_wait_of_a_proxied_poll(client: Client, running_service: Service) -> None:
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(client.poll, "/inbox?wait=20")
        until(lambda: count_waiting_polls(running_service) == 1)
        assert client.post("/events", json={"payload": {"n": 1}}).status_code == 201
        assert waiting.result(10) == [{"n": 1}]


def test_client_that_disconnects_during_a_wait_takes_no_event(
    proxy_url: str, client: Client, key: str, running_service: Service
) -> None:
    with socket.create_connection(("127.0.0.1", int(proxy_url.rpartition(":")[2]))) as connection:
        connection.sendall(f"GET /inbox?wait=20 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n\r\n".encode())
        until(lambda: count_waiting_polls(running_service) == 1)
    until(lambda: count_waiting_polls(running_service) == 0, 10)
    client.post("/events", json={"payload": {"n": 1}})
    assert client.poll() == [{"n": 1}]


def count_waiting_polls(service: Service) -> float:
    return Exposition(requests.get(f"{service.url}/metrics", timeout=5).text).total("inbox_waiting_polls")


def test_chunked_body_above_the_limit_is_a_413_of_the_service(client: Client) -> None:
    pieces = iter([b'{"payload": {"a": "', *[b"x" * 1000] * 300, b'"}}'])
    response = client.post("/events", data=pieces, headers={"Content-Type": "application/json"})
    assert (response.status_code, response.headers["Content-Type"]) == (413, "application/problem+json")
    assert client.poll() == []


def test_requests_of_a_client_share_a_connection_to_the_service(client: Client, running_service: Service) -> None:
    client.poll()
    before = list_client_addresses(running_service)
    for _ in range(20):
        client.poll()
    # Older connections may leave the list meanwhile.
    assert list_client_addresses(running_service) <= before


def list_client_addresses(service: Service) -> set[str]:
    """Returns the client addresses of connections to the service, including those closed in the last minute."""
    ends = [line.split()[1:3] for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    port = f":{service.port:04X}"
    return {remote if local.endswith(port) else local for local, remote in ends if port in (local[-5:], remote[-5:])}


def test_metrics_are_not_served_through_a_proxy(client: Client) -> None:
    assert client.get("/metrics").status_code == 404

"""HTTP requests to the service, with retries."""

import gzip
import json
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from time import sleep
from typing import Any, Self

import requests

_TIMEOUT_SECONDS = (5, 30)
_MAX_PAUSE_SECONDS = 30
_MIN_COMPRESSED_BYTES = 1024
_COMPRESSION_LEVEL = 6
_FAILURES: dict[type[Exception], str] = {
    requests.ReadTimeout: "No response from",
    requests.exceptions.SSLError: "No TLS connection to",
    ValueError: "Not a valid URL:",
}


@dataclass(eq=False)
class CallFailed(Exception):
    """The service refused the call or did not respond.

    `status` is that of the response, or None without a response. `problem` is the problem document, or empty.
    """

    message: str
    _: KW_ONLY
    status: int | None = None
    problem: dict[str, Any] = field(default_factory=dict)
    retry_after_seconds: int = 0
    may_pass: bool = False
    """True if the same call may succeed later."""
    stored_before: int = 0
    """For `send_many`: how many events were stored. The pointers in `problem` count from the next one."""

    def __str__(self) -> str:
        return self.message


class HTTPClient:
    """Calls one service with one key. Not thread-safe.

    `retries` is the maximum per call; None is no limit. `on_retry` is called before each retry with the pause in
    seconds. `read_json` and `write_json` replace the json module, for numbers that must keep every digit. `compress`
    sends bodies above 1 KiB with gzip.
    """

    def __init__(
        self,
        url: str,
        key: str,
        *,
        retries: int | None = 3,
        on_retry: Callable[[CallFailed, int], None] = lambda _failure, _pause_seconds: None,
        read_json: Callable[[bytes], Any] = json.loads,
        write_json: Callable[[Any], bytes] = lambda document: json.dumps(document, allow_nan=False).encode(),
        compress: bool = False,
    ) -> None:
        self.retries = retries
        self.on_retry = on_retry
        self._url = url.rstrip("/")
        self._key = key.strip()
        # `requests` would quote the key in its error about an invalid header.
        if not (self._key.isascii() and self._key.isprintable() and self._key):
            raise ValueError("The API key is empty or contains invalid characters.")
        self._read_json = read_json
        self._write_json = write_json
        self._compress = compress
        self._session = requests.Session()
        # As `auth`, because ~/.netrc takes precedence over a header.
        self._session.auth = self._authorize

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._session.close()

    def call(
        self,
        method: str,
        path: str,
        document: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        parameters: Mapping[str, Any] | None = None,
        repeatable: bool = True,
    ) -> bytes:
        """Returns the body of the response. Raises CallFailed unless its status is 2xx.

        Calls that are not `repeatable` are only retried after a 429: the service did nothing.
        """
        request: dict[str, Any] = {"headers": headers, "params": parameters}
        if document is not None:
            body, json_headers = self._write_json(document), {"Content-Type": "application/json", **(headers or {})}
            if self._compress and len(body) > _MIN_COMPRESSED_BYTES:
                body = gzip.compress(body, _COMPRESSION_LEVEL)
                json_headers["Content-Encoding"] = "gzip"
            request |= {"headers": json_headers, "data": body}
        tries = 0
        while True:
            try:
                return self._try(method, path, request)
            except CallFailed as failure:
                tries += 1
                is_last = self.retries is not None and tries > self.retries
                if is_last or not (failure.may_pass if repeatable else failure.status == 429):
                    raise
                backoff_seconds = 2 ** min(tries - 1, 10)
                pause_seconds = min(max(backoff_seconds, failure.retry_after_seconds), _MAX_PAUSE_SECONDS)
                self.on_retry(failure, pause_seconds)
            sleep(pause_seconds)

    def ask(self, method: str, path: str, expected: type, document: Any = None, **details: Any) -> Any:
        """Returns the JSON document in the response. Raises CallFailed also if it is not of the `expected` type."""
        body = self.call(method, path, document, **details)
        try:
            result = self._read_json(body)
        except ValueError:
            result = None
        if not isinstance(result, expected):
            raise CallFailed(f"The service at {self._url} is not a Polling Inbox.")
        return result

    def _try(self, method: str, path: str, request: Mapping[str, Any]) -> bytes:
        try:
            # A redirect turns a POST into a GET, which may be a poll.
            response = self._session.request(
                method, self._url + path, timeout=_TIMEOUT_SECONDS, allow_redirects=False, **request
            )
        except (requests.RequestException, UnicodeError) as error:
            # Errors in the URL or a header are ValueErrors too.
            may_pass = not isinstance(error, ValueError)
            message = next((text for kind, text in _FAILURES.items() if isinstance(error, kind)), "No connection to")
            raise CallFailed(f"{message} {self._url}.", may_pass=may_pass) from None
        if response.status_code >= 300:
            raise _refusal(response)
        return response.content

    def _authorize(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self._key}"
        return request


def _refusal(response: requests.Response) -> CallFailed:
    status, problem = response.status_code, _problem(response)
    retry_after = response.headers.get("Retry-After", "")
    return CallFailed(
        f"{status} {_description(response, problem)}",
        status=status,
        problem=problem,
        retry_after_seconds=int(retry_after) if retry_after.isdecimal() else 0,
        may_pass=status == 429 or status >= 500,
    )


def _description(response: requests.Response, problem: dict[str, Any]) -> str:
    if "Location" in response.headers:
        return f"The service redirects to {response.headers['Location']}"
    if not problem:
        return response.reason
    detail = problem["detail"]
    # The detail of a problem with a single error contains that error.
    errors = [error for error in problem.get("errors", []) if error["detail"] not in detail]
    return f"{problem['title']}: {detail}" + "".join(f"\n  {error['pointer']}: {error['detail']}" for error in errors)


def _problem(response: requests.Response) -> dict[str, Any]:
    """Returns the problem document, or {} if it is not from the service: proxies may send such documents too."""
    try:
        problem = response.json()
        is_ours = (
            problem["status"] == response.status_code and {"type", "title", "detail", "request_id"} <= problem.keys()
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}
    return problem if is_ours else {}

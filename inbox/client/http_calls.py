"""Calls to a running service, repeated where that may help."""

import gzip
import json
from collections.abc import Callable, Mapping
from time import sleep
from typing import Any, Self

import requests

_TIMEOUT_SECONDS = (5, 30)
_LONGEST_PAUSE_SECONDS = 30
_MIN_COMPRESSED_BYTES = 1024
_COMPRESSION_LEVEL = 6


class CallFailed(Exception):
    """No answer, or one that refuses. `status` is None where there was none, `problem` is the refusal's document."""

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        problem: dict[str, Any] | None = None,
        retry_after_seconds: int = 0,
        may_pass: bool = False,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.problem = problem or {}
        self.retry_after_seconds = retry_after_seconds
        self.may_pass = may_pass
        """Whether the same call may work in a while."""
        self.stored_before = 0
        """Where many events were sent: how many of them were stored. The problem's pointers begin after those."""


class Caller:
    """Calls one service with one key. It is for one thread at a time.

    `retries` is how often a call is repeated at most, and None stands for as long as it takes. `on_retry` is told of
    each, with the pause in seconds. `read_json` and `write_json` are for numbers that must stay just as they were sent.
    `compress` sends bodies above 1 KiB with gzip. Answers are compressed in any case if the service does that.
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
        # Here and without quoting it: what refuses a header that is none would show the key.
        if not (self._key.isascii() and self._key.isprintable() and self._key):
            raise ValueError("The API key is empty or has characters that no key has.")
        self._read_json = read_json
        self._write_json = write_json
        self._compress = compress
        self._session = requests.Session()
        # As `auth`, because requests puts what it finds in ~/.netrc above a header.
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
        """The body of the answer; CallFailed for all but a 2xx. What is not `repeatable` is repeated only where the
        service has said that it did nothing."""
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
                return self._try(method, self._url + path, request)
            except CallFailed as failure:
                tries += 1
                is_spent = self.retries is not None and tries > self.retries
                if is_spent or not (failure.may_pass if repeatable else failure.status == 429):
                    raise
                backoff_seconds = 2 ** min(tries - 1, 10)
                pause_seconds = min(max(backoff_seconds, failure.retry_after_seconds), _LONGEST_PAUSE_SECONDS)
                self.on_retry(failure, pause_seconds)
            sleep(pause_seconds)

    def ask(self, method: str, path: str, form: type, document: Any = None, **details: Any) -> Any:
        """The JSON document in the answer, which is of this form."""
        body = self.call(method, path, document, **details)
        try:
            answer = self._read_json(body)
        except ValueError:
            answer = None
        if not isinstance(answer, form):
            raise CallFailed("What answered there is not a Polling Inbox.")
        return answer

    def _try(self, method: str, target: str, request: Mapping[str, Any]) -> bytes:
        try:
            # A redirect that is followed may make a GET of a POST, and so a poll.
            answer = self._session.request(method, target, timeout=_TIMEOUT_SECONDS, allow_redirects=False, **request)
        except (requests.RequestException, UnicodeError) as error:
            # What requests finds wrong in an address or a header is a ValueError too.
            may_pass = not isinstance(error, ValueError)
            raise CallFailed(f"{target} could not be called ({type(error).__name__}).", may_pass=may_pass) from None
        if answer.status_code >= 300:
            raise _refusal(answer)
        return answer.content

    def _authorize(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self._key}"
        return request


def _refusal(answer: requests.Response) -> CallFailed:
    status, problem = answer.status_code, _problem(answer)
    retry_after = answer.headers.get("Retry-After", "")
    return CallFailed(
        f"{status} {_words(answer, problem)}",
        status=status,
        problem=problem,
        retry_after_seconds=int(retry_after) if retry_after.isdecimal() else 0,
        may_pass=status == 429 or status >= 500,
    )


def _words(answer: requests.Response, problem: dict[str, Any]) -> str:
    if "Location" in answer.headers:
        return f"The service is not at this address, but at {answer.headers['Location']}"
    if not problem:
        return answer.reason
    faults = "".join(f"\n  {fault['pointer']}: {fault['detail']}" for fault in problem.get("errors", []))
    return f"{problem['title']}: {problem['detail']}{faults}"


def _problem(answer: requests.Response) -> dict[str, Any]:
    """Nothing, where it is not the service that refuses: a proxy may use the same form for words of its own."""
    try:
        problem = answer.json()
        is_ours = (
            problem["status"] == answer.status_code and {"type", "title", "detail", "request_id"} <= problem.keys()
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}
    return problem if is_ours else {}

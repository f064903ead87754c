"""How commands call a running service over HTTP, and what they take to find it."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import click
import requests

from inbox import strict_json
from inbox.cli.environment import settings_in_force
from inbox.tenants import is_inbox_name

_TIMEOUT_SECONDS = (5, 30)


class CallFailed(click.ClickException):
    """No answer, or one that refuses. `status` is None where there was none."""

    def __init__(self, message: str, status: int | None = None, retry_after: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after_seconds = int(retry_after) if retry_after and retry_after.isdecimal() else 0

    @property
    def may_pass(self) -> bool:
        """Whether the same call may work in a while."""
        return self.status is None or self.status == 429 or self.status >= 500


class Service:
    def __init__(self, key: str | None, url: str | None) -> None:
        settings = settings_in_force()
        self._key = key or settings.api_key
        if not self._key:
            raise click.UsageError("An API key is needed: --key, or INBOX_API_KEY.")
        self._url = (url or settings.url).rstrip("/")
        self._session = requests.Session()
        # As `auth`, because requests puts what it finds in ~/.netrc above a header.
        self._session.auth = self._authorize

    def call(self, method: str, path: str, **content: Any) -> bytes:
        """The body of the answer. CallFailed for all but a 2xx."""
        target = self._url + path
        try:
            answer = self._session.request(method, target, timeout=_TIMEOUT_SECONDS, **content)
        except (requests.RequestException, UnicodeError) as error:
            raise CallFailed(f"{target} could not be called ({type(error).__name__}).") from None
        if not answer.ok:
            raise CallFailed(_refusal(answer), answer.status_code, answer.headers.get("Retry-After"))
        return answer.content

    def ask(self, method: str, path: str, form: type, **content: Any) -> Any:
        """The JSON document in the answer, which is of this form."""
        answer = self.call(method, path, **content)
        try:
            # A payload may itself be as deep as can be, and stands two levels down: in an array, in an event.
            document = strict_json.parse(answer, strict_json.MAX_DEPTH + 2)
        except strict_json.NotJSON:
            document = None
        if not isinstance(document, form):
            raise click.ClickException("What answered there is not a Polling Inbox.")
        return document

    def _authorize(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self._key}"
        return request


def calls_service(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command the options that say which service, and the service as its first argument."""

    @wraps(command)
    def with_service(key: str | None, url: str | None, **arguments: Any) -> None:
        command(Service(key, url), **arguments)

    key = click.option("--key", help="API key; INBOX_API_KEY where it is not given.")
    url = click.option("--url", help="Where the service is; INBOX_URL where it is not given.")
    return key(url(with_service))


def inbox_name(_context: click.Context, _parameter: click.Parameter, name: str | None) -> str | None:
    """For `callback`: refuses what can be no inbox, before it becomes part of a path."""
    if name is not None and not is_inbox_name(name):
        raise click.BadParameter("it takes 1 to 63 of a-z, 0-9 and hyphens, the first no hyphen.")
    return name


def _refusal(answer: requests.Response) -> str:
    try:
        problem = answer.json()
        faults = "".join(f"\n  {fault['pointer']}: {fault['detail']}" for fault in problem.get("errors", []))
        return f"{answer.status_code} {problem['title']}: {problem['detail']}{faults}"
    except (ValueError, KeyError, TypeError, AttributeError):
        return f"{answer.status_code} {answer.reason}"

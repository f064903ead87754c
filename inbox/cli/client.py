"""Commands that call a running service over HTTP: send, poll."""

import sys
from collections.abc import Callable
from typing import Any

import click
import requests

from inbox import strict_json
from inbox.cli.environment import settings_in_force

_TIMEOUT_SECONDS = (5, 30)


def _connection(command: Callable[..., None]) -> Callable[..., None]:
    key = click.option("--key", help="API key; INBOX_API_KEY where it is not given.")
    url = click.option("--url", help="Where the service is; INBOX_URL where it is not given.")
    return key(url(command))


@click.command()
@click.argument("payload", metavar="JSON|-")
@click.option("--type", "event_type", help="The event's type, such as order.created.")
@_connection
def send(payload: str, event_type: str | None, key: str | None, url: str | None) -> None:
    """Send one event and print the answer. The argument is its payload, a JSON object; - reads it from stdin."""
    text = sys.stdin.buffer.read() if payload == "-" else payload.encode(errors="surrogateescape")
    try:
        document = strict_json.parse(text)
    except strict_json.NotJSON as error:
        raise click.UsageError(f"The payload is not JSON: {error}") from None
    envelope = {"payload": document} | ({} if event_type is None else {"event_type": event_type})
    headers = {"Content-Type": "application/json"}
    click.echo(_call("POST", "/events", key, url, data=strict_json.dump(envelope), headers=headers), nl=False)


@click.command()
@click.option("--limit", type=click.IntRange(1, 500), default=100, show_default=True)
@click.option("--peek", is_flag=True, help="Only look; the events stay undelivered.")
@_connection
def poll(limit: int, peek: bool, key: str | None, url: str | None) -> None:
    """Take the undelivered events and print them, one JSON object a line."""
    parameters = {"limit": limit, "mode": "peek" if peek else "consume"}
    answer = _call("GET", "/inbox", key, url, params=parameters)
    try:
        # A payload may itself be as deep as can be, and stands two levels down: in an array, in an event.
        events = strict_json.parse(answer, strict_json.MAX_DEPTH + 2)
    except strict_json.NotJSON:
        events = None
    if not isinstance(events, list):
        raise click.ClickException("What answered there is not a Polling Inbox.")
    for event in events:
        click.echo(strict_json.dump(event))


def _call(method: str, path: str, key: str | None, url: str | None, **content: Any) -> bytes:
    settings = settings_in_force()
    key = key or settings.api_key
    if not key:
        raise click.UsageError("An API key is needed: --key, or INBOX_API_KEY.")
    target = (url or settings.url).rstrip("/") + path

    def authorize(request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {key}"
        return request

    try:
        # As `auth`, because requests puts what it finds in ~/.netrc above a header.
        answer = requests.request(method, target, auth=authorize, timeout=_TIMEOUT_SECONDS, **content)
    except (requests.RequestException, UnicodeError) as error:
        raise click.ClickException(f"{target} could not be called ({type(error).__name__}).") from None
    if not answer.ok:
        raise click.ClickException(_refusal(answer))
    return answer.content


def _refusal(answer: requests.Response) -> str:
    try:
        problem = answer.json()
        faults = "".join(f"\n  {fault['pointer']}: {fault['detail']}" for fault in problem.get("errors", []))
        return f"{answer.status_code} {problem['title']}: {problem['detail']}{faults}"
    except (ValueError, KeyError, TypeError, AttributeError):
        return f"{answer.status_code} {answer.reason}"

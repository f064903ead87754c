"""How commands call a running service."""

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import click

from inbox.cli.environment import read_environment
from inbox.client import CallFailed, Client
from inbox.domain import exact_json

# Few, because a person waits for the command.
_RETRIES = 2
_INVALID_REQUEST = 422
_UNREACHABLE = "Check that the service is running and that INBOX_URL or --url is correct."
# A payload of the maximum depth is two levels down in a response: in an array, in an event.
_read_json = partial(exact_json.parse, max_depth=exact_json.MAX_DEPTH + 2)


def calls_service(command: Callable[..., None]) -> Callable[..., None]:
    """Adds --key and --url to a command, and passes a client as its first argument."""

    @wraps(command)
    def with_client(key: str | None, url: str | None, **arguments: Any) -> None:
        settings = read_environment()
        # `--key "$UNSET"` must not fall back to another key, or `--url` to another service.
        key = settings.api_key if key is None else key
        address = settings.url if url is None else url
        if not key:
            raise click.UsageError("Missing API key. Set INBOX_API_KEY or use --key.")
        if not address.lower().startswith(("http://", "https://")):
            raise click.UsageError("The URL of the service must start with http:// or https://.")
        try:
            client = Client(address, key, retries=_RETRIES, read_json=_read_json, write_json=exact_json.dump)
        except ValueError as error:
            raise click.UsageError(str(error)) from None
        with client:
            try:
                command(client, **arguments)
            except CallFailed as failure:
                if failure.status == _INVALID_REQUEST:
                    raise click.UsageError(str(failure)) from None
                hint = "" if failure.status else f" {_UNREACHABLE}"
                raise click.ClickException(f"{failure}{hint}") from None

    key = click.option("--key", help="API key. Default: INBOX_API_KEY.")
    url = click.option("--url", help="URL of the service. Default: INBOX_URL.")
    return key(url(with_client))

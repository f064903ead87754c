"""How commands call a running service, and what they take to find it."""

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import click

from inbox.cli.environment import settings_in_force
from inbox.client import CallFailed, Client
from inbox.domain import exact_json
from inbox.domain.inboxes import is_inbox_name

# A person waits for it.
_RETRIES = 2
# A payload may itself be as deep as can be, and stands two levels down: in an array, in an event.
_read_json = partial(exact_json.parse, max_depth=exact_json.MAX_DEPTH + 2)


def calls_service(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command the options that say which service, and a client for it as its first argument."""

    @wraps(command)
    def with_client(key: str | None, url: str | None, **arguments: Any) -> None:
        settings = settings_in_force()
        # An option that is given and empty is a variable that is not set, and must not become another key or service.
        key = settings.api_key if key is None else key
        address = settings.url if url is None else url
        if not key:
            raise click.UsageError("An API key is needed: --key, or INBOX_API_KEY.")
        if not address.lower().startswith(("http://", "https://")):
            raise click.UsageError("The address of the service has to begin with http:// or https://.")
        exact: dict[str, Any] = {"read_json": _read_json, "write_json": exact_json.dump}
        try:
            client = Client(address, key, retries=_RETRIES, **exact)
        except ValueError as error:
            raise click.UsageError(str(error)) from None
        with client:
            try:
                command(client, **arguments)
            except CallFailed as failure:
                raise click.ClickException(str(failure)) from None

    key = click.option("--key", help="API key; INBOX_API_KEY where it is not given.")
    url = click.option("--url", help="Where the service is; INBOX_URL where it is not given.")
    return key(url(with_client))


def inbox_name(_context: click.Context, _parameter: click.Parameter, name: str | None) -> str | None:
    """For `callback`: refuses what can be no inbox, before it becomes part of a path."""
    if name is not None and not is_inbox_name(name):
        raise click.BadParameter("it takes 1 to 63 of a-z, 0-9 and hyphens, the first no hyphen.")
    return name

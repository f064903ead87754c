"""inbox inboxes …"""

import time

import click
from click.shell_completion import CompletionItem

from inbox.cli.output import json_option, print_rows
from inbox.cli.parameters import INBOX_NAME
from inbox.cli.service_calls import calls_service
from inbox.client import CallFailed, Client
from inbox.domain import exact_json
from inbox.domain.events import DEFAULT_INBOX

_COLUMNS = ("name", "event_types", "created_at")
_MAX_CALLS = 60
_EXISTS = 412


def _only_default(context: click.Context, _argument: click.Parameter, name: str) -> str:
    if name != DEFAULT_INBOX:
        raise click.UsageError(f"Only the inbox `{DEFAULT_INBOX}` can be {context.info_name}d.")
    return name


_name = click.argument("name", type=INBOX_NAME)
_default = click.argument(
    "name",
    metavar=f"{{{DEFAULT_INBOX}}}",
    callback=_only_default,
    shell_complete=lambda *_: [CompletionItem(DEFAULT_INBOX)],
)


@click.group()
def inboxes() -> None:
    """Manage named inboxes. Changes need tenant:manage."""


@inboxes.command("list")
@json_option
@calls_service
def list_inboxes(client: Client, *, as_json: bool) -> None:
    """List the named inboxes. Reports on stderr if `default` is disabled."""
    print_rows(client.ask("GET", "/inboxes", list), _COLUMNS, as_json=as_json)
    if not client.ask("GET", f"/inboxes/{DEFAULT_INBOX}", dict)["enabled"]:
        click.echo(f"{DEFAULT_INBOX} is disabled.", err=True)


@inboxes.command()
@_name
@click.option(
    "--event-type",
    "event_types",
    multiple=True,
    help="Event types that the inbox receives, such as order.*. Repeatable. Default: every event.",
)
@click.option("--replace", is_flag=True, help="Change the event types if the inbox exists.")
@calls_service
def create(client: Client, name: str, event_types: tuple[str, ...], replace: bool) -> None:
    """Create an inbox that receives a copy of every matching event."""
    if name == DEFAULT_INBOX:
        raise click.UsageError(f"The inbox {name} always exists. `inbox inboxes enable {name}` enables it.")
    body = {"event_types": list(event_types) or None}
    try:
        document = client.call("PUT", f"/inboxes/{name}", body, headers={} if replace else {"If-None-Match": "*"})
    except CallFailed as failure:
        if failure.status != _EXISTS:
            raise
        # From the list, which is never cached. A retry after a lost response finds the inbox, and has succeeded.
        existing = next((each for each in client.ask("GET", "/inboxes", list) if each["name"] == name), None)
        if existing is None:
            raise
        patterns = existing["event_types"] or []
        if set(patterns) != set(event_types):
            raise click.ClickException(
                f"The inbox {name} exists and receives {', '.join(patterns) or 'every event'}.\n"
                "Use another name, or --replace to change its event types from now on."
            ) from None
        document = exact_json.dump(existing)
    click.echo(document.strip())


@inboxes.command()
@_name
@calls_service
def show(client: Client, name: str) -> None:
    """Print one inbox as JSON."""
    click.echo(client.call("GET", f"/inboxes/{name}"), nl=False)


@inboxes.command()
@_default
@calls_service
def disable(client: Client, name: str) -> None:
    """Disable `default`: events only go to named inboxes."""
    click.echo(client.call("PUT", f"/inboxes/{name}", {"enabled": False}), nl=False)


@inboxes.command()
@_default
@calls_service
def enable(client: Client, name: str) -> None:
    """Enable `default` again."""
    click.echo(client.call("PUT", f"/inboxes/{name}", {"enabled": True}), nl=False)


@inboxes.command()
@_name
@calls_service
def delete(client: Client, name: str) -> None:
    """Delete an inbox with its copies of events."""
    client.retries = 0
    for call in range(1, _MAX_CALLS + 1):
        try:
            client.call("DELETE", f"/inboxes/{name}")
            break
        except CallFailed as failure:
            if call > 1 and failure.status == 404:
                break
            # Large inboxes take several calls.
            if failure.status != 503 or call == _MAX_CALLS:
                raise
            time.sleep(failure.retry_after_seconds)
    click.echo(f"Inbox {name} deleted.", err=True)

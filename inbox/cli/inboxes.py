"""inbox inboxes …"""

import time

import click

from inbox.cli.output import as_json as as_json_option
from inbox.cli.output import print_rows
from inbox.cli.service_calls import calls_service, inbox_name
from inbox.client import CallFailed, Client
from inbox.domain.events import DEFAULT_INBOX

_COLUMNS = ("name", "event_types", "created_at")
_MAX_CALLS = 60
_EXISTS = 412


@click.group()
def inboxes() -> None:
    """Manage named inboxes, and turn `default` on or off. Changes need a key with tenant:manage."""


@inboxes.command("list")
@as_json_option
@calls_service
def list_inboxes(client: Client, *, as_json: bool) -> None:
    """List the named inboxes, and say if `default` is off."""
    print_rows(client.ask("GET", "/inboxes", list), _COLUMNS, as_json=as_json)
    if not client.ask("GET", f"/inboxes/{DEFAULT_INBOX}", dict)["enabled"]:
        click.echo(f"{DEFAULT_INBOX} is off.", err=True)


@inboxes.command()
@click.argument("name", callback=inbox_name)
@click.option("--event-type", "event_types", multiple=True, help="What it takes, such as order.*; may be repeated.")
@click.option("--replace", is_flag=True, help="Change what the inbox takes if it exists.")
@calls_service
def create(client: Client, name: str, event_types: tuple[str, ...], replace: bool) -> None:
    """Create an inbox that gets a copy of every event that matches."""
    if name == DEFAULT_INBOX:
        raise click.UsageError(f"The inbox {name} always exists. `inbox inboxes enable {name}` turns it on.")
    body = {"event_types": list(event_types) or None}
    try:
        document = client.call("PUT", f"/inboxes/{name}", body, headers={} if replace else {"If-None-Match": "*"})
    except CallFailed as failure:
        if failure.status != _EXISTS:
            raise
        _refuse_other_types(client, name, event_types)
        document = client.call("GET", f"/inboxes/{name}")
    click.echo(document, nl=False)


@inboxes.command()
@click.argument("name", callback=inbox_name)
@calls_service
def show(client: Client, name: str) -> None:
    """One inbox, as JSON."""
    click.echo(client.call("GET", f"/inboxes/{name}"), nl=False)


@inboxes.command()
@click.argument("name", type=click.Choice([DEFAULT_INBOX]))
@calls_service
def disable(client: Client, name: str) -> None:
    """Turn `default` off: events only go to named inboxes that take them."""
    click.echo(client.call("PUT", f"/inboxes/{name}", {"enabled": False}), nl=False)


@inboxes.command()
@click.argument("name", type=click.Choice([DEFAULT_INBOX]))
@calls_service
def enable(client: Client, name: str) -> None:
    """Turn `default` on again."""
    click.echo(client.call("PUT", f"/inboxes/{name}", {"enabled": True}), nl=False)


@inboxes.command()
@click.argument("name", callback=inbox_name)
@calls_service
def delete(client: Client, name: str) -> None:
    """Delete an inbox with its copies of events."""
    client.retries = 0
    for call in range(1, _MAX_CALLS + 1):
        try:
            client.call("DELETE", f"/inboxes/{name}")
        except CallFailed as failure:
            if call > 1 and failure.status == 404:
                break
            # Many copies take several calls.
            if failure.status != 503 or call == _MAX_CALLS:
                raise
            time.sleep(failure.retry_after_seconds)
        else:
            break
    click.echo(f"{name} is deleted.", err=True)


def _refuse_other_types(client: Client, name: str, event_types: tuple[str, ...]) -> None:
    """Creating an inbox again as it is does nothing. That is also what a retry after a lost answer finds."""
    # The list, since it is never cached.
    takes = next((each["event_types"] for each in client.ask("GET", "/inboxes", list) if each["name"] == name), None)
    if set(takes or ()) != set(event_types):
        raise click.ClickException(
            f"The inbox {name} exists and takes {', '.join(takes or ()) or 'every event'}.\n"
            "Use another name, or --replace to change what it takes from now on."
        )

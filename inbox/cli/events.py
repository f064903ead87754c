"""inbox send and inbox replay"""

import sys
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import click

from inbox.cli.output import progress
from inbox.cli.parameters import INBOX_NAME, parse_time
from inbox.cli.service_calls import calls_service
from inbox.client import Client
from inbox.domain import exact_json
from inbox.domain.events import DEFAULT_INBOX, Status

# If a consumer polls meanwhile, its events match again: without a limit the command might never end.
_MAX_CALLS = 1000


@click.command()
@click.argument("payload", metavar="JSON|-")
@click.option("--type", "event_type", help="Event type, such as order.created.")
@calls_service
def send(client: Client, payload: str, event_type: str | None) -> None:
    """Send one event and print it as stored.

    The argument is its payload, a JSON object; - reads it from stdin.
    """
    text = sys.stdin.buffer.read() if payload == "-" else payload.encode(errors="surrogateescape")
    try:
        document = exact_json.parse(text)
    except exact_json.NotJSON as error:
        raise click.UsageError(f"The payload is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise click.UsageError("The payload must be a JSON object.")
    click.echo(exact_json.dump(client.send(document, event_type)))


@click.command()
@click.argument("event_id", type=click.UUID, required=False)
@click.option("--since", type=parse_time, metavar="TIME", help="Events from this time, ISO 8601 or epoch milliseconds.")
@click.option("--until", type=parse_time, metavar="TIME", help="Events before this time.")
@click.option("--type", "event_type", help="Events of this type.")
@click.option("--status", type=click.Choice([str(Status.DELIVERED), str(Status.DEAD)]), help="Default: both.")
@click.option("--inbox", default=DEFAULT_INBOX, type=INBOX_NAME, metavar="NAME", help="Named inbox.")
@click.option("--all", "everything", is_flag=True, help="Every delivered or dead event.")
@click.option("--yes", is_flag=True, help="Do not ask before --all.")
@calls_service
def replay(client: Client, event_id: UUID | None, inbox: str, everything: bool, yes: bool, **filters: Any) -> None:
    """Make events undelivered again.

    One event, or all that match the filters. Prints how many.
    """
    given = {name: value for name, value in filters.items() if value is not None}
    if sum((event_id is not None, bool(given), everything)) != 1:
        raise click.UsageError(
            "Use an event ID, --all, or filters: --since, --until, --type, --status. --inbox is no filter."
        )
    if everything and not yes:
        _confirm(client, inbox)
    if event_id is not None:
        client.replay(str(event_id), inbox)
        click.echo(1)
        return
    with progress("Replaying events", _replay_all(client, inbox, given)) as steps:
        replayed = sum(steps)
    click.echo(replayed)


def _confirm(client: Client, inbox: str) -> None:
    if not sys.stdin.isatty():
        raise click.UsageError("--all needs --yes if stdin is not a terminal.")
    tenant_id = client.ask("GET", "/me", dict)["tenant_id"]
    click.confirm(
        f"Every delivered and dead event in the inbox {inbox} of tenant {tenant_id} becomes undelivered, and polls "
        "return it again. Replay all of them?",
        abort=True,
        err=True,
    )


def _replay_all(client: Client, inbox: str, filters: dict[str, Any]) -> Iterator[int]:
    for _ in range(_MAX_CALLS):
        result = client.replay_matching(inbox, **filters)
        # `exact_json` parses numbers to text.
        yield exact_json.whole_number(result["replayed"]) or 0
        if not result["more"]:
            return
    click.echo("More events match. Run the command again, or stop the consumer that polls them meanwhile.", err=True)

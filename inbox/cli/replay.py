"""inbox replay"""

import sys
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import click

from inbox.cli.parameters import Moment
from inbox.cli.progress import progress
from inbox.cli.service_calls import calls_service, inbox_name
from inbox.client import Client
from inbox.domain.events import DEFAULT_INBOX, Status
from inbox.domain.exact_json import whole_number

# A consumer that polls meanwhile delivers again what was replayed, and it would never end.
_MAX_CALLS = 1000


@click.command()
@click.argument("event_id", type=click.UUID, required=False)
@click.option("--since", type=Moment(), help="Events from this time on.")
@click.option("--until", type=Moment(), help="Events before this time.")
@click.option("--type", "event_type", help="Events of this type.")
@click.option("--status", type=click.Choice([str(Status.DELIVERED), str(Status.DEAD)]), help="Without it, both.")
@click.option("--inbox", default=DEFAULT_INBOX, callback=inbox_name, help="A named inbox.")
@click.option("--all", "everything", is_flag=True, help="Every event that is delivered or dead.")
@click.option("--yes", is_flag=True, help="With --all, do not ask.")
@calls_service
def replay(client: Client, event_id: UUID | None, inbox: str, everything: bool, yes: bool, **filters: Any) -> None:
    """Make one event, or all that match, undelivered again, and print how many."""
    given = {name: value for name, value in filters.items() if value is not None}
    if sum((event_id is not None, bool(given), everything)) != 1:
        raise click.UsageError("It takes one of these: the id of an event, filters, or --all.")
    if everything and not yes:
        _ask(client, inbox)
    if event_id is not None:
        client.replay(str(event_id), inbox)
        click.echo(1)
        return
    with progress("Replaying events", _replay_all(client, inbox, given)) as steps:
        replayed = sum(steps)
    click.echo(replayed)


def _ask(client: Client, inbox: str) -> None:
    if not sys.stdin.isatty():
        raise click.UsageError("--all needs --yes if stdin is not a terminal.")
    tenant_id = client.ask("GET", "/me", dict)["tenant_id"]
    click.confirm(
        f"Every delivered and dead event in the inbox {inbox} of tenant {tenant_id} becomes undelivered, and consumers "
        "get it again. Replay all of them?",
        abort=True,
        err=True,
    )


def _replay_all(client: Client, inbox: str, filters: dict[str, Any]) -> Iterator[int]:
    for _ in range(_MAX_CALLS):
        answer = client.replay_matching(inbox, **filters)
        # As everything that the commands read, it is the text of a number.
        yield whole_number(answer["replayed"]) or 0
        if not answer["more"]:
            return
    click.echo("There are more: either very many, or a consumer takes them meanwhile.", err=True)

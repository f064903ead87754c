"""inbox backlog"""

from contextlib import closing

import click

from inbox.cli.environment import read_environment
from inbox.cli.output import print_rows
from inbox.domain import exact_json
from inbox.domain.timestamps import format_timestamp
from inbox.services.backlog import Backlog, Waiting
from inbox.store.factory import open_existing_store

_COLUMNS = ("tenant_id", "inbox", "oldest_at", "age_seconds")


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object about the oldest event.")
def backlog(*, as_json: bool) -> None:
    """List the inboxes with undelivered events.

    Sorted by the age of the oldest event.
    """
    with closing(open_existing_store(read_environment())) as store:
        found = Backlog(store.tenants, store.inboxes, store.events, store.now_ms).waiting()
        longest_first = sorted(found, key=lambda waiting: waiting.timestamp_ms)
    if as_json:
        click.echo(exact_json.dump(_metric(longest_first)))
    else:
        print_rows([_row(waiting) for waiting in longest_first], _COLUMNS, as_json=False)


def _row(waiting: Waiting) -> dict[str, str | int]:
    return {
        "tenant_id": waiting.tenant_id,
        "inbox": waiting.inbox,
        "oldest_at": format_timestamp(waiting.timestamp_ms),
        "age_seconds": waiting.age_seconds,
    }


def _metric(longest_first: list[Waiting]) -> dict[str, str | int | None]:
    oldest = longest_first[0] if longest_first else None
    return {
        "event": "backlog",
        "oldest_undelivered_seconds": oldest.age_seconds if oldest else 0,
        "tenant_id": oldest.tenant_id if oldest else None,
        "inbox": oldest.inbox if oldest else None,
        "waiting_inboxes": len(longest_first),
    }

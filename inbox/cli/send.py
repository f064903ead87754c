"""Commands of producers and consumers: send, poll."""

import sys

import click

from inbox.cli.follow import follow as follow_inbox
from inbox.cli.poll import print_events
from inbox.cli.service_calls import calls_service, inbox_name
from inbox.client import Client
from inbox.domain import exact_json
from inbox.domain.events import DEFAULT_INBOX


@click.command()
@click.argument("payload", metavar="JSON|-")
@click.option("--type", "event_type", help="The event's type, such as order.created.")
@calls_service
def send(client: Client, payload: str, event_type: str | None) -> None:
    """Send one event and print the answer. The argument is its payload, a JSON object; - reads it from stdin."""
    text = sys.stdin.buffer.read() if payload == "-" else payload.encode(errors="surrogateescape")
    try:
        document = exact_json.parse(text)
    except exact_json.NotJSON as error:
        raise click.UsageError(f"The payload is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise click.UsageError("The payload has to be a JSON object.")
    click.echo(exact_json.dump(client.send(document, event_type)))


@click.command()
@click.option("--inbox", default=DEFAULT_INBOX, callback=inbox_name, help="A named inbox.")
@click.option("--limit", type=click.IntRange(1, 500), default=100, show_default=True, help="Events at a time.")
@click.option("--peek", is_flag=True, help="Only look; the events stay undelivered.")
@click.option("--follow", is_flag=True, help="Go on until Ctrl-C.")
@calls_service
def poll(client: Client, inbox: str, limit: int, peek: bool, follow: bool) -> None:
    """Take the undelivered events and print them, one JSON object a line.

    Events are leased, and acknowledged once they were read: if the output ends early, as with `head`, the rest stays in
    the inbox.
    """
    if follow and peek:
        raise click.UsageError("--follow takes the events, and --peek leaves them where they are.")
    if follow:
        follow_inbox(client, inbox, limit)
    elif peek:
        for event in client.peek(inbox, limit=limit):
            click.echo(exact_json.dump(event))
    else:
        print_events(client, inbox, limit)

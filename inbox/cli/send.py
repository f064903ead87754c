"""inbox send"""

import sys

import click

from inbox.cli.service_calls import calls_service
from inbox.client import Client
from inbox.domain import exact_json


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

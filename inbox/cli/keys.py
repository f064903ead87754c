"""inbox keys …"""

from contextlib import closing

import click

from inbox.cli.environment import key_service_of, open_key_service, settings_in_force
from inbox.cli.output import as_json as as_json_option
from inbox.cli.output import print_rows
from inbox.cli.parameters import Duration
from inbox.domain.keys import DEFAULT_SCOPES, MAX_OVERLAP_SECONDS, TENANT_SCOPES, Scope, key_document
from inbox.store.factory import open_or_create_store

_COLUMNS = ("key_id", "name", "hint", "scopes", "status", "created_at", "last_used_at", "expires_at")
_ALL = "all"


@click.group()
def keys() -> None:
    """What tenants call with."""


@keys.command()
@click.argument("tenant_id", metavar="TENANT")
@click.option("--name", default="", help="What it is for.")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice([_ALL, *map(str, Scope)]),
    help="What it may do; can be repeated. `all` is every scope but admin. Default: events:write and inbox:read.",
)
@click.option("--expires-in", "lifetime_seconds", type=Duration(), help="For example 90d.")
def create(tenant_id: str, name: str, scopes: tuple[str, ...], lifetime_seconds: int | None) -> None:
    """Make a key and print it, alone and this once."""
    named = {Scope(scope) for scope in scopes if scope != _ALL}
    chosen = (named | TENANT_SCOPES if _ALL in scopes else named) or DEFAULT_SCOPES
    with closing(open_or_create_store(settings_in_force())) as store:
        expires_at_ms = None if lifetime_seconds is None else store.now_ms() + lifetime_seconds * 1000
        click.echo(key_service_of(store).create(tenant_id, name, chosen, expires_at_ms).key)


@keys.command("list")
@click.argument("tenant_id", metavar="TENANT")
@as_json_option
def list_keys(tenant_id: str, *, as_json: bool) -> None:
    """A tenant's keys, but never the keys themselves."""
    with open_key_service(create=False) as key_ring:
        rows = [key_document(key) for key in key_ring.list(tenant_id)]
    print_rows(rows, _COLUMNS, as_json=as_json)


@keys.command()
@click.argument("key_id")
def revoke(key_id: str) -> None:
    """Refuse a key from now on."""
    with open_key_service() as key_ring:
        key_ring.revoke(key_id)
    click.echo(f"{key_id} is revoked; a running server may take it for INBOX_KEY_CACHE_SECONDS more.", err=True)


@keys.command()
@click.argument("key_id")
@click.option(
    "--overlap",
    "overlap_seconds",
    type=Duration(0, MAX_OVERLAP_SECONDS),
    default="24h",
    show_default=True,
    help="For how long the old key goes on working.",
)
def rotate(key_id: str, overlap_seconds: int) -> None:
    """Make a key like another one, which works for a while longer, and print it, alone and this once."""
    with open_key_service() as key_ring:
        new = key_ring.rotate(key_id, overlap_seconds)
    click.echo(new.key)
    click.echo(f"{new.metadata.key_id} is in the place of {key_id}, which works for the overlap at most.", err=True)

"""inbox keys …"""

import click

from inbox.cli.environment import open_registry
from inbox.cli.moments import Duration, to_the_second
from inbox.cli.tables import as_json as as_json_option
from inbox.cli.tables import print_rows
from inbox.tenants import DEFAULT_SCOPES, Scope

_COLUMNS = ("key_id", "name", "scopes", "status", "created_at", "expires_at")


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
    type=click.Choice([str(scope) for scope in Scope]),
    help="What it may do; may be given more than once. Without it: events:write and inbox:read.",
)
@click.option("--expires-in", "lifetime_seconds", type=Duration(), help="For example 90d.")
def create(tenant_id: str, name: str, scopes: tuple[str, ...], lifetime_seconds: int | None) -> None:
    """Make a key and print it, alone and this once."""
    chosen = [Scope(scope) for scope in scopes] or DEFAULT_SCOPES
    with open_registry() as registry:
        click.echo(registry.create_key(tenant_id, name, chosen, lifetime_seconds))


@keys.command("list")
@click.argument("tenant_id", metavar="TENANT")
@as_json_option
def list_keys(tenant_id: str, *, as_json: bool) -> None:
    """A tenant's keys, but never the keys themselves."""
    with open_registry() as registry:
        rows = [
            {
                "key_id": key.key_id,
                "name": key.name,
                "scopes": sorted(key.scopes),
                "status": key.status,
                "created_at": to_the_second(key.created_at_ms),
                "expires_at": None if key.expires_at_ms is None else to_the_second(key.expires_at_ms),
            }
            for key in registry.keys(tenant_id)
        ]
    print_rows(rows, _COLUMNS, as_json=as_json)


@keys.command()
@click.argument("key_id")
def revoke(key_id: str) -> None:
    """Refuse a key from now on."""
    with open_registry() as registry:
        registry.revoke_key(key_id)
    click.echo(f"{key_id} is revoked; a running server may take it for INBOX_KEY_CACHE_SECONDS more.", err=True)

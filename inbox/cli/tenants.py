"""inbox tenants …"""

import click

from inbox.cli.environment import open_registry
from inbox.cli.moments import to_the_second
from inbox.cli.tables import as_json as as_json_option
from inbox.cli.tables import print_rows

_COLUMNS = ("tenant_id", "name", "email", "status", "created_at")


@click.group()
def tenants() -> None:
    """Who has an inbox here."""


@tenants.command()
@click.argument("tenant_id", metavar="ID")
@click.option("--name", help="The organisation's name; the id where it is not given.")
@click.option("--email", help="Whom to write to.")
def create(tenant_id: str, name: str | None, email: str | None) -> None:
    """Make a tenant."""
    with open_registry() as registry:
        click.echo(registry.create_tenant(tenant_id, name, email).tenant_id)


@tenants.command()
@click.argument("tenant_id", metavar="ID")
@click.argument("shards", metavar="N", type=click.IntRange(1, 100))
def shard(tenant_id: str, shards: int) -> None:
    """Spread a heavy tenant's new events over N partitions of DynamoDB, from a minute from now on."""
    with open_registry() as registry:
        registry.shard_tenant(tenant_id, shards)
    click.echo(f"New events of {tenant_id} go to {shards} partitions, from a minute from now on.", err=True)


@tenants.command("list")
@as_json_option
def list_tenants(*, as_json: bool) -> None:
    """Every tenant."""
    with open_registry() as registry:
        rows = [
            {
                "tenant_id": tenant.tenant_id,
                "name": tenant.name,
                "email": tenant.email,
                "status": tenant.status,
                "created_at": to_the_second(tenant.created_at_ms),
            }
            for tenant in registry.tenants()
        ]
    print_rows(rows, _COLUMNS, as_json=as_json)

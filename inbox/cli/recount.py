"""inbox recount"""

from contextlib import closing

import click

from inbox.cli.environment import read_environment
from inbox.cli.output import progress
from inbox.services.stats import RecountService
from inbox.store.factory import open_existing_store


@click.command()
@click.argument("tenant_id", required=False, metavar="[TENANT]")
def recount(tenant_id: str | None) -> None:
    """Recompute the counters of GET /stats from the stored events. Prints how many changed.

    Use it after counts were lost. Erased events, and all but the last delivery of replayed events, no longer count.
    On DynamoDB, stop the service first.
    """
    settings = read_environment()
    with closing(open_existing_store(settings)) as store:
        counters = RecountService(store.counters, store.tenants, store.now_ms, settings.retention_days)
        tenants = [each.tenant_id for each in store.tenants.all()] if tenant_id is None else [tenant_id]
        with progress("Counting", length=len(tenants)) as bar:
            changed = 0
            for each in tenants:
                changed += counters.recount(each)
                bar.update(1)
    click.echo(changed)

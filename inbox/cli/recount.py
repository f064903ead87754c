"""inbox recount"""

from contextlib import closing

import click

from inbox.cli.environment import settings_in_force
from inbox.cli.progress import progress
from inbox.services.stats import RecountService
from inbox.store.factory import open_existing_store


@click.command()
@click.argument("tenant_id", required=False, metavar="[TENANT]")
def recount(tenant_id: str | None) -> None:
    """Make the figures of /stats anew from the events that are there, and print how many changed.

    For when counts were lost. What was erased, and all but the last delivery of what was replayed, is not counted any
    more. On DynamoDB stop the service first.
    """
    settings = settings_in_force()
    with closing(open_existing_store(settings)) as store:
        counters = RecountService(store.counters, store.tenants, store.now_ms, settings.retention_days)
        tenants = [each.tenant_id for each in store.tenants.all()] if tenant_id is None else [tenant_id]
        with progress("Counting", length=len(tenants)) as bar:
            changed = 0
            for each in tenants:
                changed += counters.recount(each)
                bar.update(1)
    click.echo(changed)

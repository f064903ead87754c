"""`make cost`: counts units on DynamoDB Local, and writes bench/units.json and docs/explanation/cost.md."""

import json
import os
from contextlib import closing

from bench.cost.measurements import UnitMeter
from bench.cost.sheet import SHEET, UNITS, render_sheet
from inbox.store.dynamodb import DynamoDBStore
from inbox.store.dynamodb.connection import Connection
from tests.engines import dynamodb_local
from tests.engines.aws import aws_environment


def main() -> None:
    dynamodb_local.fetch()
    with dynamodb_local.running() as url:
        os.environ.update(aws_environment(url))
        connection = Connection("cost-", 16)
        with closing(DynamoDBStore(connection, 10)) as store:
            store.init()
            figures = UnitMeter(connection).measure_figures()
    UNITS.write_text(json.dumps(figures, indent=2) + "\n")
    SHEET.write_text(render_sheet(figures))
    print(f"{UNITS.name} and {SHEET.name} written. `git diff` shows the changes.")


if __name__ == "__main__":
    main()

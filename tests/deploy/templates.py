"""Reads CloudFormation templates as plain dictionaries, with `!Ref` and the like in their long forms."""

import json
from pathlib import Path
from typing import Any

from cfnlint.decode import cfn_yaml

FOLDER = Path(__file__).parents[2] / "deploy" / "cloudformation"


def read(path: Path) -> dict[str, Any]:
    # Through JSON: cfn-lint's dictionaries keep line numbers, which take part in comparisons.
    document: dict[str, Any] = json.loads(json.dumps(cfn_yaml.load(str(path))))
    return document

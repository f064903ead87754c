"""CloudFormation templates as plain documents: `!Ref`, `!GetAtt`, `!Sub` and the like in their long forms."""

import json
from pathlib import Path
from typing import Any

from cfnlint.decode import cfn_yaml

FOLDER = Path(__file__).parents[2] / "deploy" / "cloudformation"


def read(path: Path) -> dict[str, Any]:
    # By way of JSON: cfn-lint's own dictionaries remember their lines, and are compared and copied by them.
    document: dict[str, Any] = json.loads(json.dumps(cfn_yaml.load(str(path))))
    return document

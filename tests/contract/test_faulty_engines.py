"""The engines with faults really have them."""

import pytest

from tests.contract.conftest import FAULTY_ENGINES
from tests.contract.consumer import Consumer
from tests.contract.samples import numbered
from tests.engines.harnesses import DynamoDBHarness


@pytest.mark.slow
@pytest.mark.parametrize("harness", FAULTY_ENGINES, indirect=True)
def test_engine_injects_faults(harness: DynamoDBHarness, acme: Consumer, request: pytest.FixtureRequest) -> None:
    for _ in range(10):
        acme.send(*numbered(25))
        acme.consume(500)
    assert harness.faults is not None
    wire = harness.faults.wire
    assert wire is not None
    engine = request.node.callspec.id
    is_throttled, loses_responses = engine != "lost-responses", engine != "throttled"
    # Of 250 parts 20 % are throttled, and the responses to 10 % of more than 20 writes are lost.
    for operation in ("BatchWriteItem", "BatchExecuteStatement"):
        assert (wire.throttled_parts[operation] > 25) is is_throttled
    assert (wire.fault_count > 0) is loses_responses
    assert wire.hides_old_items is loses_responses

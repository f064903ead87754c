"""Lives that nobody thought of: whatever is done to a tenant's inboxes, an engine answers as the model does."""

from itertools import count

import pytest
from hypothesis import seed
from hypothesis import settings as examples
from hypothesis.stateful import run_state_machine_as_test

from tests.contract.lives import Lives
from tests.engines.harnesses import Harness


@pytest.mark.slow
# From ten lives of a seed on Hypothesis mostly repeats itself with small changes:
# another seed brings more that is new.
@pytest.mark.parametrize(
    ("harness", "seeds", "lives"), [("sqlite", 10, 10), ("dynamodb-local", 1, 10)], indirect=["harness"]
)
def test_an_engine_answers_as_the_model_does(harness: Harness, seeds: int, lives: int, torture: bool) -> None:
    elsewhere, numbers = harness.another(), count()

    class LivesHere(Lives):
        def __init__(self) -> None:
            super().__init__(harness, elsewhere, next(numbers))

    settings = examples(max_examples=lives, stateful_step_count=50, deadline=None, database=None)
    for number in range(5 * seeds if torture else seeds):
        run_state_machine_as_test(seed(number)(LivesHere), settings=settings)

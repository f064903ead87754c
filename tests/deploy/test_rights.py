"""Each policy allows what its programs call according to `calls.json`, and nothing else."""

import pytest

from tests.deploy.policies import PROGRAMS, differences, documents
from tests.deploy.recorded_calls import known_calls


@pytest.mark.parametrize("name", PROGRAMS)
def test_policy_has_exactly_the_rights_that_its_programs_use(name: str) -> None:
    assert differences(name, documents()[name]) == []


def test_every_policy_has_a_program_and_every_program_a_policy() -> None:
    assert documents().keys() == PROGRAMS.keys()
    assert known_calls().keys() <= {program for programs in PROGRAMS.values() for program in programs}

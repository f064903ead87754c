"""Each policy allows what its programs call according to `calls.json`, and nothing else."""

import pytest

from tests.deploy.policies import PROGRAMS, find_differences, read_policies
from tests.deploy.recorded_calls import read_known_permissions


@pytest.mark.parametrize("name", PROGRAMS)
def test_policy_has_exactly_the_permissions_that_its_programs_use(name: str) -> None:
    assert find_differences(name, read_policies()[name]) == []


def test_every_policy_has_a_program_and_every_program_a_policy() -> None:
    assert read_policies().keys() == PROGRAMS.keys()
    assert read_known_permissions().keys() <= {program for programs in PROGRAMS.values() for program in programs}

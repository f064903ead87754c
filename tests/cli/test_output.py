"""Tables that commands print."""

import pytest

from inbox.cli.output import print_rows


def test_cell_contains_no_control_sequences(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows([{"name": "\x1b[31mred\nnew line", "rest": None}], ("name", "rest"), as_json=False)
    _head, row = capsys.readouterr().out.splitlines()
    assert row == "\ufffd[31mred\ufffdnew line  -"

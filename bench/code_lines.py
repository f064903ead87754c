"""Lines of code of the server layer."""

import ast
import io
import tokenize
from pathlib import Path

from bench.rounds import Round

FOLDER = Path(__file__).parents[1] / "inbox" / "server"
# Lines of the modules that this package replaced.
REPLACED_LINES = 828

_NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
_MAY_HAVE_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def count_server_lines(_folder: Path) -> list[Round]:
    """Returns one round, since there is no noise."""
    return [Round(sum(count_code_lines(each.read_text()) for each in FOLDER.rglob("*.py")), REPLACED_LINES)]


def count_code_lines(source: str) -> int:
    """Returns the number of lines that are neither blank nor comments nor docstrings."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, _MAY_HAVE_DOCSTRING) and ast.get_docstring(node):
            lines.difference_update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return len(lines)

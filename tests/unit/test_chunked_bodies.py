"""Chunked bodies that arrive in any pieces. tests/torture sends malformed ones."""

import pytest

from inbox.server.body_framing import ChunkedBody

NEXT_REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.mark.parametrize(
    ("chunks", "content"),
    [
        (b"0\r\n\r\n", b""),
        (b"5\r\nhello\r\n0\r\n\r\n", b"hello"),
        (b"a;x=y\r\n\r\n0\r\n\r\n\n\n\n\r\n1\r\n\n\r\n0\r\nX: y\r\n\r\n", b"\r\n0\r\n\r\n\n\n\n\n"),
    ],
)
def test_body_in_any_pieces_ends_at_its_last_line(chunks: bytes, content: bytes) -> None:
    for cut in range(len(chunks)):
        body = ChunkedBody()
        assert body.feed(chunks[:cut]) == b""
        assert not body.is_complete
        assert body.feed(chunks[cut:] + NEXT_REQUEST) == NEXT_REQUEST
        assert (body.is_complete, body.is_malformed, body.file.getvalue()) == (True, False, content)


def test_lines_in_a_chunk_are_parsed_in_one_step() -> None:
    pieces = list[bytes]()

    class RecordingBody(ChunkedBody):
        def on_body(self, data: bytes) -> None:
            pieces.append(data)

    RecordingBody().feed(b"3e8\r\n" + b"\n" * 1000)
    assert pieces == [b"\n" * 1000]

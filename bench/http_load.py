"""Runs the load generator in a process of its own."""

import json
import subprocess
import sys

from bench.load import Counts

CONNECTIONS = 32
BATCH_SIZE = 100

EVENT = b'{"event_type": "order.created", "payload": {"order": 1001, "total": 12.5, "currency": "EUR"}}'
PEEK = "/inbox?mode=peek&limit=1"
EVENTS = b"[" + b", ".join([EVENT] * BATCH_SIZE) + b"]"

_TIMEOUT_SECONDS = 120


def format_request(method: str, path: str, key: str = "", body: bytes = b"") -> bytes:
    """Returns the bytes of a request."""
    head = f"{method} {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {key}\r\n"
    if body:
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + body


def drive(target: str, request_bytes: bytes, *end_option: str) -> Counts:
    """Sends a request until the run ends, as `end_option` of the load generator says. Returns what was counted."""
    command = [sys.executable, "-m", "bench.load", target, str(CONNECTIONS), *end_option]
    done = subprocess.run(command, input=request_bytes, capture_output=True, timeout=_TIMEOUT_SECONDS)
    if done.returncode:
        raise RuntimeError(f"The load generator failed:\n{done.stderr.decode()}")
    counts = Counts(**json.loads(done.stdout))
    if counts.bad:
        raise RuntimeError(f"{counts.bad} responses were errors")
    return counts


def measure_rate(target: str, request_bytes: bytes, seconds: float) -> float:
    """Returns responses per second."""
    counts = drive(target, request_bytes, "--seconds", str(seconds))
    return counts.good / counts.seconds

"""Memory, files, threads and response times of a running service."""

from collections.abc import Sequence
from pathlib import Path
from statistics import median, quantiles
from typing import NamedTuple

from tests.service import Service


class ProcessMetrics(NamedTuple):
    memory_mb: float
    file_descriptors: float
    threads: float
    wal_mb: float
    p50_ms: float
    p99_ms: float


# Maximum ratios of the last quarter of a run to its second, in which caches are warm. The response times have more
# tolerance, because the machine may be shared.
_MAX_GROWTH = ProcessMetrics(memory_mb=1.1, file_descriptors=1.1, threads=1.1, wal_mb=1.5, p50_ms=2, p99_ms=3)


def measure_processes(service: Service, response_seconds: Sequence[float]) -> ProcessMetrics:
    """Returns the sums over all processes of the service. `response_seconds` are recent response times."""
    processes = [Path(f"/proc/{pid}") for pid in service.pids]
    centiles = quantiles(response_seconds, n=100)
    return ProcessMetrics(
        memory_mb=sum(_read_status(process, "VmRSS:") for process in processes) / 1024,
        file_descriptors=sum(len(list((process / "fd").iterdir())) for process in processes),
        threads=sum(_read_status(process, "Threads:") for process in processes),
        wal_mb=(service.folder / "inbox.db-wal").stat().st_size / 1e6,
        p50_ms=centiles[49] * 1000,
        p99_ms=centiles[98] * 1000,
    )


def find_growth(measurements: Sequence[ProcessMetrics]) -> dict[str, tuple[float, float]]:
    """Returns the metrics whose median in the last quarter exceeds that of the second by more than allowed."""
    quarter = len(measurements) // 4
    second, last = measurements[quarter : 2 * quarter], measurements[-quarter:]
    medians = {
        name: (median(getattr(each, name) for each in second), median(getattr(each, name) for each in last))
        for name in ProcessMetrics._fields
    }
    return {
        name: (before, after)
        for name, (before, after) in medians.items()
        if after > before * getattr(_MAX_GROWTH, name)
    }


def _read_status(process: Path, name: str) -> int:
    (line,) = (line for line in (process / "status").read_text().splitlines() if line.startswith(name))
    return int(line.split()[1])

"""Compares the counters of `GET /stats` with the stored events."""

import requests

from tests.service import Service, bearer


def count_wrong_counters(service: Service) -> int:
    """Restarts the service, so that it has written all counters. Returns how many of them `inbox recount` corrected."""
    service.stop()
    first, second = (service.run("recount") for _ in range(2))
    assert (first.returncode, second.stdout) == (0, "0\n"), first.stderr
    service.start()
    return int(first.stdout)


def read_totals(service: Service, key: str) -> dict[str, int]:
    response = requests.get(f"{service.url}/stats?window=7d", headers=bearer(key), timeout=30)
    assert response.status_code == 200, response.text
    totals: dict[str, int] = response.json()["totals"]
    return totals

"""Compares the counters of `GET /stats` with the stored events."""

import requests

from tests.service import Service, bearer


def miscounted(service: Service) -> int:
    """Returns the number of wrong counters. Stops the service first, so that it has written all of them."""
    service.stop()
    found, again = (service.run("recount") for _ in range(2))
    assert (found.returncode, again.stdout) == (0, "0\n"), found.stderr
    service.start()
    return int(found.stdout)


def totals(service: Service, key: str) -> dict[str, int]:
    answer = requests.get(f"{service.url}/stats?window=7d", headers=bearer(key), timeout=30)
    assert answer.status_code == 200, answer.text
    totals: dict[str, int] = answer.json()["totals"]
    return totals

"""Whether what was counted is what there is."""

import requests

from tests.service import Service, bearer


def miscounted(service: Service) -> int:
    """How many counts the events contradict. The service is stopped first, so that all has been written down."""
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

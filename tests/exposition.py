"""The response of `GET /metrics`, parsed by prometheus_client."""

from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from inbox.metrics.service_metrics import Metrics


class Exposition:
    def __init__(self, text: str) -> None:
        self.families: list[Metric] = list(text_string_to_metric_families(text))
        self._samples = {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in self.families
            for sample in family.samples
        }

    def value(self, name: str, **labels: str) -> float:
        """Returns the value of one sample, 0 if it does not exist."""
        return self._samples.get((name, frozenset(labels.items())), 0.0)

    def total(self, name: str, **labels: str) -> float:
        """Returns the sum of all samples with this name that have at least these labels."""
        return sum(
            value
            for (sample_name, sample_labels), value in self._samples.items()
            if sample_name == name and sample_labels >= labels.items()
        )

    @property
    def label_values(self) -> set[str]:
        return {value for _, labels in self._samples for _, value in labels}


def every_metric() -> dict[str, Metric]:
    """Returns every metric of the service by its name in Prometheus, each with at least one sample."""
    metrics = Metrics("sqlite")
    for may_wait in (False, True):
        metrics.observe_response("/inbox", "GET", 200, 0.1, may_wait=may_wait)
    metrics.count_key_lookup("cache")
    metrics.store_observer("events.put")(0.1, [], False)
    families = Exposition(metrics.exposition().decode()).families
    assert all(family.samples for family in families)
    return {f"{each.name}_total" if each.type == "counter" else each.name: each for each in families}

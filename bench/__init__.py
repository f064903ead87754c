"""Benchmarks as ratios to a reference that is measured in the same run, because machines are shared and noisy."""

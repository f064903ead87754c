"""How fast it is, as ratios: ours against a reference in the same run, because machines are shared and noisy."""

"""Data and rules, without I/O."""

"""Tests of the console in a real browser. Elements are found by role and accessible name."""

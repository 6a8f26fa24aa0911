"""Studies and speed measurements, run by ``make bench``: ``python -m tests.benchmarks.NAME``."""

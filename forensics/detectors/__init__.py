"""Detectors: one file per kind of event. Each is a pure function of prepared signals."""

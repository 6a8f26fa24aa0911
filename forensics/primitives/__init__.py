"""Numeric primitives shared by detection and correlation: robust baselines, rises, learning-rate schedules."""

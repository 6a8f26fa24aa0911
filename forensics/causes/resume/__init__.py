"""Causes of the family resume."""

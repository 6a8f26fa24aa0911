"""Causes of the family data."""

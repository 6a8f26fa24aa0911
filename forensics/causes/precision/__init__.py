"""Causes of the family precision."""

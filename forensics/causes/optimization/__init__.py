"""Causes of the family optimization."""

"""Causes of the family architecture."""

"""Causes of the family hardware."""

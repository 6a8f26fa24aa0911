"""Correlation: what moved before, with and after an event, and how causes are ranked."""

"""Causes of the family rl (reinforcement learning)."""

"""Damaged copies of real logs, read in process: nothing may raise, nothing may be invented, nothing may be lost in silence."""

"""What to do after a case: batches to skip, what to log next time, where to go back to. Computed from the case alone."""

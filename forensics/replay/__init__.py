"""Replay: run the suspect steps again from a checkpoint, with one thing changed at a time, and read what comes back."""

"""Log formats: one file per format, and the discovery that decides which file is read by which.

This folder is only importable as ``forensics.parsers``: ``parsers`` is a name a user's own project may carry.
"""

if __name__ != "forensics.parsers":
    raise ImportError("import this package as forensics.parsers, not as a top-level module")

"""Renderings of a finished case: terminal, HTML, Markdown, JSON. They take a Case and nothing else.

This folder is only importable as ``forensics.reports``: ``reports`` is a name a user's own project may carry.
"""

if __name__ != "forensics.reports":
    raise ImportError("import this package as forensics.reports, not as a top-level module")

"""Console logs: what a training loop printed, one file per framework, and a fallback for loops of one's own."""

"""Console logs: what a training loop printed, one file per framework, and a fallback for loops of one's own."""

OTHER_SUFFIXES = frozenset(
    {".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".yaml", ".yml", ".toml", ".xml", ".md", ".rst", ".ipynb", ".wandb", ".db", ".sqlite"}
    | {".parquet", ".arrow", ".sh", ".slurm", ".sbatch", ".cfg", ".ini", ".c", ".cu", ".cpp", ".h", ".diff", ".patch", ".tex"}
)
"""Formats of their own, and texts that quote logs: never a console log."""

SUREST = 94
"""No console parser claims with more; where another one did, they are not asked, nor imported."""

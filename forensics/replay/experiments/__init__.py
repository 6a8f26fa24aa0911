"""One file per experiment, in the order in which they are run. A module has ID, WHAT and ``run(bench) -> Outcome``."""

"""The catalogue of causes: one file per cause with a rule, in family folders."""

"""The parts of the flight recorder: its file of records, the batches it keeps, RNG states, what counts as a wrong step."""

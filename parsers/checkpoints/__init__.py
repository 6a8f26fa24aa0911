"""Checkpoints: where training stood when it was saved, read without PyTorch and without running anything a file asks for."""

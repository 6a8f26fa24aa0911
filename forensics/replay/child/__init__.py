"""What runs in the user's process: PyTorch, the user's recipe, and the messages of ``replay.wire``; nothing else of this tool."""

"""Many runs at once, each in a process of its own, and what they have in common."""

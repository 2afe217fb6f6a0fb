"""A copy of a trace to share: without private data, and with the same numbers."""

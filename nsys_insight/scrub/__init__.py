"""A copy of a trace to share: without what is private, and with the same numbers."""

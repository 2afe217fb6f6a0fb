"""Runs before and after a change: what moved, what is noise, and whether a run keeps its budget."""

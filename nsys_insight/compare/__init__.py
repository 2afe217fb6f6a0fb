"""Comparisons of runs before and after a change: what changed, what is noise, and whether a run meets its budgets."""

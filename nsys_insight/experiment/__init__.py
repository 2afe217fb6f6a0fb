"""Experiments: a baseline, then one change at a time with tests, a measurement and a decision by rule, and a log."""

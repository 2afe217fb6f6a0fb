"""The loop: a baseline, one change at a time, tests, a measurement, a decision by rule, and the log of it all."""

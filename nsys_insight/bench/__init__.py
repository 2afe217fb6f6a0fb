"""Measuring a program without the profiler: repetitions, what disturbs them, and whether two commands differ."""

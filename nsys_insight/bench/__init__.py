"""Measurements without the profiler: repetitions, disturbances, and whether two commands differ."""

"""Compiled kernels: machine code (SASS), the resource usage that ptxas reports, and occupancy of an SM."""

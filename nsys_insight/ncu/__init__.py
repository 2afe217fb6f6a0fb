"""Nsight Compute beside the trace: which launch to profile, what ncu measured, what follows from it."""

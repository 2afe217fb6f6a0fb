"""Nsight Compute: which launches to profile, what ncu measured, and what to do about it."""

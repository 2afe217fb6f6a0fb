"""Chains of kernels that could be one: mined in the typical step, and what fusing them would save."""

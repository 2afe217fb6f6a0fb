"""Text and numbers for people: units, terminal cells, names of kernels."""

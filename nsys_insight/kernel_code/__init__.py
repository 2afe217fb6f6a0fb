"""What kernels were compiled to: machine code (SASS), what ptxas says of it, and what fits on an SM."""

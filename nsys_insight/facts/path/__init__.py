"""The critical path of a step: what it consists of, and what a step would take if a part of it were faster."""

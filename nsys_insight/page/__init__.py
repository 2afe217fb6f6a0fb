"""The report to hand over: everything that the other commands answer, in one file that explains itself."""

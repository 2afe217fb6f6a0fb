"""The page, a report to share: everything that the other commands answer, in one file that explains itself."""

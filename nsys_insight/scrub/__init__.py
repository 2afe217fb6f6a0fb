"""A trace to be given away: without what it says of a machine and its user, and with the same numbers."""

"""Hundreds of traces: the facts of each trace are computed where the file is, and stored in a folder of its own."""

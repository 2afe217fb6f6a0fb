"""Hundreds of traces: the facts of each are found where the file lies, and kept in a folder of its own."""

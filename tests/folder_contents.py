"""What a test finds in a folder of the program."""

from __future__ import annotations

from nsys_insight import own_files


def list_files(folder):
    """List the files in a folder, except the manifest."""
    return sorted(path for path in folder.iterdir() if path.name != own_files.MARKER)

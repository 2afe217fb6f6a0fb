"""What all Typer applications of the command line are made with."""

from __future__ import annotations

HELP = {"help_option_names": ["--help", "-h"]}

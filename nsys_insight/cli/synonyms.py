"""Words of other tools for commands and options, and what they are called here."""

COMMANDS = {
    "compare": "diff",
    "profile": "capture",
    "record": "capture",
    "summary": "diagnose",
    "timeline": "report",
    "trace": "report",
    "version": "--version",
}
# The hint for an option that no command has.
OPTIONS = {
    "--json": "did you mean -f json?",
    "--csv": "did you mean -f csv?",
    "--sort": "reports sort by a column (nsys-insight top --sort calls); sql has ORDER BY",
    "--sort-by": "did you mean --sort COLUMN?",
    "--filter": "did you mean --name PATTERN?",
}

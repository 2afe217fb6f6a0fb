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
    "--sort": 'sort with SQL: nsys-insight sql TRACE "FROM kernels ORDER BY duration_ns DESC"',
}

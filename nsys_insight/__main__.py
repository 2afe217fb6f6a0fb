"""``python -m nsys_insight`` is ``nsys-insight``."""

from nsys_insight.cli.main import main

main()

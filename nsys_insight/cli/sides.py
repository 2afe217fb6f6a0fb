"""How ``diff`` reads its arguments: either side may be several files."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand


class SidesCommand(TyperCommand):
    """A command whose --before and --after take all that follows, up to the next flag."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Write `--before a b` as `--before a --before b`, which is what the parser knows."""
        spelled: list[str] = []
        side = ""
        for at, word in enumerate(args):
            if word in ("--before", "--after"):
                side = word
                if at + 1 == len(args) or args[at + 1].startswith("-"):
                    spelled.append(word)
            elif word.startswith("-"):
                side = ""
                spelled.append(word)
            else:
                spelled += [side, word] if side else [word]
        return super().parse_args(ctx, spelled)

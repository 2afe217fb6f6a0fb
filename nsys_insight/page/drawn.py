"""The pictures of a page that ask the trace themselves, beyond what reports answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nsys_insight.packs.step_options import StepOptions
    from nsys_insight.page.cards import Card
    from nsys_insight.page.content import Content
    from nsys_insight.page.flame import Flame
    from nsys_insight.page.layer import Layer
    from nsys_insight.page.timeline import Timeline
    from nsys_insight.session.session import Session


@dataclass(frozen=True)
class Drawn:
    """The pictures, as far as there is something to draw: timeline, layer, the host's work, ranges, kernels' cards."""

    line: Timeline | None = None
    layer: Layer | None = None
    flame: Flame | None = None
    icicle: Flame | None = None
    cards: dict[int, Card] = field(default_factory=dict)

    def data(self, command: str) -> dict[str, Any]:
        """What the page's script draws: timelines, and the cards, to which events lead by their places.

        Args:
            command: What to type for a page of a piece of the run.
        """
        places = {name: place for place, name in enumerate(self.cards)}
        lines = []
        if self.line:
            leads = [places.get(name, -1) for name in self.line.kernels]
            lines.append(self.line.data | {"command": command, "cards": leads})
        return {"lines": lines, "cards": [_without_key(card) for card in self.cards.values()]}


def first_asked() -> list[str]:
    """The queries that the pictures begin with, whatever is in the trace."""
    from nsys_insight.page import asking
    from nsys_insight.page.cards import MOST
    from nsys_insight.page.icicle import RANGES
    from nsys_insight.page.timeline import PIECES

    return asking.bound({
        "step": {},
        "run": {},
        "run_steps": {},
        "run_busy": {"pieces": PIECES},
        "layer_candidates": {},
        "nested_ranges": RANGES,
        "card_kernels": {"most": MOST},
        "card_chains": {},
    })  # fmt: skip


def draw(trace: Session, steps: StepOptions, content: Content) -> Drawn:
    """Draw all pictures of one trace, with what its reports answered."""
    from nsys_insight.packs.library import built_in
    from nsys_insight.page.cards import cards
    from nsys_insight.page.flame import flame
    from nsys_insight.page.icicle import icicle
    from nsys_insight.page.layer import layer
    from nsys_insight.page.timeline import GAPS, timeline

    work = built_in()["cpu-work"]
    by_stack = {"group_by": "stack"}
    is_sampled = not content.reports["cpu-work"].is_empty
    trace.ahead([(work, by_stack)] if is_sampled else [], first_asked(), steps)
    answers = {name: entry.answer for name, entry in content.reports.items() if not entry.is_empty}
    line = timeline(trace, steps, answers["gaps"].dicts(GAPS) if "gaps" in answers else ())
    return Drawn(
        line,
        layer(trace, steps),
        flame(trace.answer(work, steps=steps, **by_stack)) if is_sampled else None,
        icicle(trace, steps),
        cards(trace, steps, line.first, answers) if line else {},
    )


def _without_key(card: Card) -> Card:
    return {part: given for part, given in card.items() if part != "key"}

"""The report as one HTML page that needs nothing else: style, script and pictures are in it."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nsys_insight.page import pictures, queries, styles
from nsys_insight.page.content import NCU_READING, sentences
from nsys_insight.page.tables import table
from nsys_insight.text.cells import printable
from nsys_insight.version import __version__

if TYPE_CHECKING:
    from jinja2 import Environment

    from nsys_insight.diagnose.diagnosis import Diagnosis
    from nsys_insight.diagnose.findings import Finding
    from nsys_insight.packs.step_options import StepOptions
    from nsys_insight.page.cards import Card
    from nsys_insight.page.content import Content, Report
    from nsys_insight.page.flame import Flame
    from nsys_insight.page.layer import Layer
    from nsys_insight.page.timeline import Timeline
    from nsys_insight.session.session import Session

# Rows of a table; the command below it gives all.
ROWS = 100
_PAGE = Path(__file__).parent / "templates"
_STYLES = ("page", "timeline")
# In the order in which they use each other.
_SCRIPTS = (
    "start", "quantities", "tables", "tips", "timeline", "gestures", "walk", "search", "overview", "perfetto",
    "timelines", "drawer", "widen", "copy", "folding",
)  # fmt: skip


@dataclass(frozen=True)
class Drawings:
    """The pictures that ask the trace themselves: timeline, layer, CPU work, NVTX ranges, cards of kernels.

    They are None where there is nothing to draw.
    """

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


def first_queries() -> list[str]:
    """The queries that the drawings begin with, whatever is in the trace."""
    from nsys_insight.page.cards import MOST
    from nsys_insight.page.flame import RANGES
    from nsys_insight.page.timeline import BUCKETS

    return queries.bound({
        "step": {},
        "run": {},
        "run_steps": {},
        "run_busy": {"pieces": BUCKETS},
        "layer_candidates": {},
        "nested_ranges": RANGES,
        "card_kernels": {"most": MOST},
        "card_chains": {},
    })  # fmt: skip


def draw(trace: Session, steps: StepOptions, content: Content) -> Drawings:
    """Draw them for one trace, with what its reports answered."""
    from nsys_insight.packs.library import built_in
    from nsys_insight.page.cards import cards
    from nsys_insight.page.flame import flame, icicle
    from nsys_insight.page.layer import layer
    from nsys_insight.page.timeline import GAPS, timeline

    work = built_in()["cpu-work"]
    by_stack = {"group_by": "stack"}
    is_sampled = not content.reports["cpu-work"].is_empty
    trace.ahead([(work, by_stack)] if is_sampled else [], first_queries(), steps)
    answers = {name: entry.answer for name, entry in content.reports.items() if not entry.is_empty}
    line = timeline(trace, steps, answers["gaps"].dicts(GAPS) if "gaps" in answers else ())
    return Drawings(
        line,
        layer(trace, steps),
        flame(trace.answer(work, steps=steps, **by_stack)) if is_sampled else None,
        icicle(trace, steps),
        cards(trace, steps, line.first, answers) if line else {},
    )


def page(content: Content, drawings: Drawings, limit: int | None = ROWS) -> str:
    """Write the page, with at most `limit` rows in a table, or all."""
    from markupsafe import Markup

    reports = content.reports
    answers = {name: entry.answer for name, entry in reports.items() if not entry.is_empty}
    return rendered(
        "page.html.j2",
        drawings.data(content.piece),
        content=content,
        file=printable(content.file),
        diagnosis=diagnosis_parts(content.diagnosis, content),
        drawings=drawings,
        cards={card["key"]: place for place, card in enumerate(drawings.cards.values())},
        budget=pictures.budget(answers["classify"]) if "classify" in answers else [],
        idle=pictures.idle(answers["idle"]) if "idle" in answers else [],
        top=pictures.top(answers["top"]) if "top" in answers else [],
        pace=pictures.pace(answers["steps"]) if "steps" in answers else None,
        roofline=Markup(_roofline(answers["roofline"])) if "roofline" in answers else "",  # noqa: S704 - it escapes its texts itself
        ncu=_measured(content, limit),
        topics=[
            {
                **topic._asdict(),
                "reports": [_report(entry, limit) for entry in found if not entry.is_empty],
                "empty": [entry for entry in found if entry.is_empty],
            }
            for topic, found in content.topics.items()
        ],
    )


def rendered(template: str, data: dict[str, Any], **values: Any) -> str:
    """Fill in a page's template; `data` is what its script reads."""
    from markupsafe import Markup

    style = "\n".join(_read(f"{name}.css") for name in _STYLES)
    script = "\n".join(_read(f"script/{name}.js") for name in _SCRIPTS)
    return (
        environment()
        .get_template(template)
        .render(
            version=__version__,
            style=Markup(style),  # noqa: S704 - our own files
            script=Markup(script),  # noqa: S704 - our own files
            style_hash=_hash(style),
            script_hash=_hash(script),
            legend=styles.LEGEND,
            data=Markup(_json(data)),  # noqa: S704 - what could end the element is escaped
            **values,
        )
    )


def environment() -> Environment:
    """Make what fills in the templates; whatever is put into them is escaped."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(_PAGE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def diagnosis_parts(found: Diagnosis, content: Content | None = None) -> dict[str, Any]:
    """Give the parts of a diagnosis, with links to the reports of a page that it is on."""
    from nsys_insight.diagnose import text as diagnosis_text

    return {
        "verdict": found.verdict,
        "lines": [printable(line) for line in diagnosis_text.costs(found)],
        "standing": printable(diagnosis_text.status_sentence(found)),
        "findings": [
            {
                **_printable(finding),
                "also": [_printable(one) for one in finding.also],
                "gain": diagnosis_text.gain(finding, found.per),
                "link": _link(finding.command, content) if content else "",
            }
            for finding in found.findings
        ],
        "unjudged": found.unjudged,
    }


def _printable(finding: Finding) -> dict[str, Any]:
    return {name: printable(given) if isinstance(given, str) else given for name, given in vars(finding).items()}


def _measured(content: Content, limit: int | None) -> dict[str, Any] | None:
    if content.measured is None:
        return None
    return {"table": table(content.measured, limit), "reading": NCU_READING, "command": "nsys-insight ncu report"}


def _link(command: str, content: Content) -> str:
    """The report that a command is about, if it is in the page with something to show."""
    report = command.split()[1]
    return report if report in content.reports and not content.reports[report].is_empty else ""


def _report(entry: Report, limit: int | None) -> dict[str, Any]:
    return {
        "pack": entry.pack,
        "reading": sentences(entry.pack.reading, 2),
        "notes": [printable(note) for note in entry.answer.notes],
        "table": table(entry.answer, limit),
    }


def _roofline(answer: Any) -> str:
    from nsys_insight.render.roofline import points, svg

    found = points(answer, 12)
    return svg(found) if found else ""


def _read(name: str) -> str:
    return (_PAGE / name).read_text(encoding="utf-8")


def _json(data: dict[str, Any]) -> str:
    """Write what the script reads, so that nothing in it ends its element."""
    from jinja2.utils import htmlsafe_json_dumps

    return str(htmlsafe_json_dumps(data, separators=(",", ":"), ensure_ascii=False))


def _hash(text: str) -> str:
    """What the page's security policy knows a style or script by, so that no other one runs."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _without_key(card: Card) -> Card:
    return {part: given for part, given in card.items() if part != "key"}

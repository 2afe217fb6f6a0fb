"""The report as one self-contained HTML page: it includes its style, script and pictures."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nsys_insight.diagnose import text as diagnosis_text
from nsys_insight.packs.library import built_in_packs
from nsys_insight.page import pictures, queries, styles
from nsys_insight.page.cards import MAX_CARDS, Card, make_cards
from nsys_insight.page.content import NCU_READING, Content, Report, label_columns, take_sentences
from nsys_insight.page.flame import RANGE_LIMITS, Flame, draw_flame, draw_icicle
from nsys_insight.page.layer import Layer, draw_layer
from nsys_insight.page.tables import build_table
from nsys_insight.page.timeline import BUCKETS, LOOP_LIMITS, MAX_GAPS, Timeline, build_timeline
from nsys_insight.text.cells import printable
from nsys_insight.version import __version__

if TYPE_CHECKING:
    from jinja2 import Environment

    from nsys_insight.diagnose.brief import Brief
    from nsys_insight.diagnose.diagnosis import Diagnosis
    from nsys_insight.diagnose.findings import Finding
    from nsys_insight.packs.step_options import StepOptions
    from nsys_insight.session.session import Session

# Rows of a table. The command below the table prints all rows.
MAX_ROWS = 100
_TEMPLATES = Path(__file__).parent / "templates"
_STYLES = ("page", "timeline")
# In order of dependency: each script uses only those before it.
_SCRIPTS = (
    "start", "quantities", "tables", "tips", "timeline", "gestures", "walk", "search", "overview", "perfetto",
    "moment", "timelines", "drawer", "widen", "copy", "folding",
)  # fmt: skip


@dataclass(frozen=True)
class Drawings:
    """The pictures with queries of their own: timeline, layer, CPU work, NVTX ranges, cards of kernels.

    A picture without data is `None`.
    """

    timeline: Timeline | None = None
    layer: Layer | None = None
    flame: Flame | None = None
    icicle: Flame | None = None
    cards: dict[int, Card] = field(default_factory=dict)

    def collect_script_data(self, command: str) -> dict[str, Any]:
        """Return the data of the page's script: timelines and cards. Each kernel of a timeline has its card's index.

        Args:
            command: The command for a page of one window of the run.
        """
        card_indexes = {name_id: index for index, name_id in enumerate(self.cards)}
        timelines = []
        if self.timeline:
            kernel_cards = [card_indexes.get(name_id, -1) for name_id in self.timeline.kernels]
            timelines.append(self.timeline.data | {"command": command, "cards": kernel_cards})
        return {
            "lines": timelines,
            "cards": [{name: entry for name, entry in card.items() if name != "key"} for card in self.cards.values()],
        }


def list_first_queries() -> list[str]:
    """Return the first queries of the drawings. They do not depend on the trace."""
    return queries.bind_queries({
        "step": {},
        "run": {},
        "run_steps": {},
        "loops": LOOP_LIMITS,
        "run_busy": {"bucket_count": BUCKETS},
        "layer_candidates": {},
        "nested_ranges": RANGE_LIMITS,
        "card_kernels": {"max_rows": MAX_CARDS},
        "card_chains": {},
    })  # fmt: skip


def draw(trace: Session, steps: StepOptions, content: Content) -> Drawings:
    """Draw all pictures of one trace. Some use the answers of its reports."""
    work = built_in_packs()["cpu-work"]
    by_stack = {"group_by": "stack"}
    is_sampled = not content.reports["cpu-work"].is_empty
    trace.prefetch([(work, by_stack)] if is_sampled else [], list_first_queries(), steps)
    answers = {name: entry.answer for name, entry in content.reports.items() if not entry.is_empty}
    gaps = answers["gaps"].dicts(MAX_GAPS) if "gaps" in answers else ()
    loops = answers["loops"].dicts() if "loops" in answers else ()
    line = build_timeline(trace, steps, gaps, loops)
    return Drawings(
        line,
        draw_layer(trace, steps),
        draw_flame(trace.answer(work, steps=steps, **by_stack)) if is_sampled else None,
        draw_icicle(trace, steps),
        make_cards(trace, steps, line.first, answers) if line else {},
    )


def render_page(content: Content, drawings: Drawings, limit: int | None = MAX_ROWS) -> str:
    """Write the page, with at most `limit` rows in a table. None means all rows."""
    from markupsafe import Markup

    reports = content.reports
    answers = {name: entry.answer for name, entry in reports.items() if not entry.is_empty}
    return fill_template(
        "page.html.j2",
        drawings.collect_script_data(content.window_command),
        content=content,
        file=printable(content.file),
        diagnosis=describe_diagnosis(content.diagnosis_to_share, content),
        brief=_describe_brief(content.brief, content.diagnosis),
        drawings=drawings,
        cards={card["key"]: index for index, card in enumerate(drawings.cards.values())},
        budget=pictures.draw_budget(answers["classify"]) if "classify" in answers else [],
        idle=pictures.draw_idle(answers["idle"]) if "idle" in answers else [],
        top=pictures.draw_top(answers["top"]) if "top" in answers else [],
        pace=pictures.draw_pace(answers["steps"]) if "steps" in answers else None,
        roofline=Markup(_draw_roofline(answers["roofline"])) if "roofline" in answers else "",  # noqa: S704 - it escapes its texts itself
        ncu=_describe_ncu(content, limit),
        topics=[
            {
                **topic._asdict(),
                "reports": [_describe_report(entry, limit) for entry in entries if not entry.is_empty],
                "empty": [entry for entry in entries if entry.is_empty],
            }
            for topic, entries in content.topics.items()
        ],
    )


def fill_template(template: str, data: dict[str, Any], **values: Any) -> str:
    """Fill in a page's template. `data` is the input of its script."""
    from markupsafe import Markup

    style = "\n".join(_read_template(f"{name}.css") for name in _STYLES)
    script = "\n".join(_read_template(f"script/{name}.js") for name in _SCRIPTS)
    return (
        make_environment()
        .get_template(template)
        .render(
            version=__version__,
            style=Markup(style),  # noqa: S704 - our own files
            script=Markup(script),  # noqa: S704 - our own files
            style_hash=_hash(style),
            script_hash=_hash(script),
            legend=styles.LEGEND,
            data=Markup(_encode_json(data)),  # noqa: S704 - what could end the element is escaped
            **values,
        )
    )


@cache
def make_environment() -> Environment:
    """Return the template environment, which compiles each template once. It escapes all values."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def describe_diagnosis(diagnosis: Diagnosis, content: Content | None = None) -> dict[str, Any]:
    """Return the values of the diagnosis template, with links to the page's reports if it is on a page."""
    return {
        "verdict": diagnosis_text.name_verdict(diagnosis) + diagnosis_text.limit_verdict(diagnosis),
        "lines": [printable(line) for line in diagnosis_text.describe_run(diagnosis) if line],
        "status": printable(diagnosis_text.describe_status(diagnosis)),
        "findings": [
            {
                **_make_printable(finding),
                "also": [_make_printable(also) for also in finding.also],
                "saving": diagnosis_text.describe_saving(finding, diagnosis.unit),
                "link": _find_link(finding.command, content) if content else "",
            }
            for finding in diagnosis.findings
        ],
        "unassessed": diagnosis.unassessed,
    }


def _make_printable(finding: Finding) -> dict[str, Any]:
    return {name: printable(field) if isinstance(field, str) else field for name, field in vars(finding).items()}


def _describe_brief(brief: Brief, diagnosis: Diagnosis) -> dict[str, Any]:
    """Return the values of the brief, without the sentences that the headline has."""
    from nsys_insight.diagnose.brief_text import list_sections

    (_, *head), tables, tail = list_sections(brief)
    headline = set(diagnosis_text.describe_run(diagnosis))
    return {
        "head": [printable(line) for line in head if line.removeprefix("step: ") not in headline],
        "tables": [(printable(answer.title), build_table(answer, None)) for answer in tables],
        "tail": [printable(line) for line in tail],
    }


def _describe_ncu(content: Content, limit: int | None) -> dict[str, Any] | None:
    if content.ncu_answer is None:
        return None
    return {
        "table": build_table(content.ncu_answer, limit),
        "reading": NCU_READING,
        "command": "nsys-insight ncu report",
    }


def _find_link(command: str, content: Content) -> str:
    """Return the report of a command, or "" if the page does not show it."""
    report = command.split()[1]
    return report if report in content.reports and not content.reports[report].is_empty else ""


def _describe_report(entry: Report, limit: int | None) -> dict[str, Any]:
    return {
        "pack": entry.pack,
        "reading": label_columns(take_sentences(entry.pack.reading, 2)),
        "how": [label_columns(text) for text in (entry.pack.description, entry.pack.reading)],
        "notes": [printable(note) for note in entry.answer.notes],
        "table": build_table(entry.answer, limit),
    }


def _draw_roofline(answer: Any) -> str:
    from nsys_insight.render.roofline import draw_svg, read_points

    kernel_points = read_points(answer, 12)
    return draw_svg(kernel_points) if kernel_points else ""


def _read_template(name: str) -> str:
    return (_TEMPLATES / name).read_text(encoding="utf-8")


def _encode_json(data: dict[str, Any]) -> str:
    """Encode the script's data. No text in it can close the script element."""
    from jinja2.utils import htmlsafe_json_dumps

    return str(htmlsafe_json_dumps(data, separators=(",", ":"), ensure_ascii=False))


def _hash(text: str) -> str:
    """Return the hash that the page's security policy uses to allow only this style or script."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

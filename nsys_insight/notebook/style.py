"""The page's style for a piece of HTML in somebody else's page: only the rules that it needs, and only inside it."""

from __future__ import annotations

import re
from functools import cache

from nsys_insight.paths import package_folder

ROOT = "nsys-insight"
_RULE = re.compile(r"([^{}]+)\{([^{}]*)\}")
_MEDIA = re.compile(r"(@media[^{]+)\{((?:[^{}]*\{[^{}]*\})*)\s*\}")
_NOT_HERE = re.compile(r"#|::|html|focus|hover|\.here")
# The page has its headings of columns in buttons; without a script there are none.
_OWN = f".{ROOT} {{ padding: 0.25rem 0.5rem; }} .{ROOT} th {{ padding: 0.35rem 0.8rem 0.35rem 0.55rem; }}"


def styled(html: str) -> str:
    """Wrap a piece of HTML with the style that it needs."""
    return f'<div class="{ROOT}"><style>{_needed(html)}{_OWN}</style>{html}</div>'


def colors() -> dict[str, str]:
    """The page's colors on white by the name of what they stand for (`page.styles`)."""
    first, _, _ = _css().partition("}")
    found = dict(re.findall(r"--([a-z-]+): (#\w+)", first))
    return {**found, "busy": found["gemm"]}


def _needed(html: str) -> str:
    classes = {name for names in re.findall(r'class="([^"]*)"', html) for name in names.split()}
    tags = set(re.findall(r"<(\w+)", html))
    always, media = _MEDIA.sub("", _css()), _MEDIA.findall(_css())
    parts = [_rules(always, classes, tags)]
    for condition, rules in media:
        if "print" not in condition and (inside := _rules(rules, classes, tags)):
            parts.append(f"{condition.strip()} {{ {inside} }}")
    return " ".join(parts)


def _rules(css: str, classes: set[str], tags: set[str]) -> str:
    found = []
    for selectors, body in _RULE.findall(css):
        # A comma inside parentheses does not part selectors.
        parted = (each.strip() for each in re.split(r",(?![^(]*\))", selectors))
        kept = [scoped for each in parted if (scoped := _scoped(each, classes, tags))]
        if kept:
            found.append(f"{', '.join(kept)} {{{body.rstrip()} }}")
    return " ".join(found)


def _scoped(selector: str, classes: set[str], tags: set[str]) -> str:
    """A selector that fits only inside, or nothing where it fits nothing there."""
    if selector in (":root", "body"):
        return f".{ROOT}"
    if _NOT_HERE.search(selector) or "(" in selector:
        return ""
    named = set(re.findall(r"\.([a-z][\w-]*)", selector))
    elements = set(re.findall(r"(?:^|[\s>+])([a-z][a-z0-9]*)", selector))
    return f".{ROOT} {selector}" if named <= classes and elements <= tags else ""


@cache
def _css() -> str:
    text = (package_folder() / "page" / "templates" / "page.css").read_text(encoding="utf-8")
    return re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)

"""The documents as a site: no request of another server, and a search that works in a folder. CI builds it strictly."""

from __future__ import annotations

import importlib.util
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Build the site. Outputs of commands are left out: they take a minute, and CI makes them."""
    if importlib.util.find_spec("zensical") is None:
        pytest.skip("needs zensical")
    folder = tmp_path_factory.mktemp("site")
    write_site = runpy.run_path(str(REPOSITORY / "docs" / "generate.py"))["write_site"]
    write_site.__globals__["console"] = lambda command, columns=0: f"{command} at {columns}\n"
    write_site(folder / "build" / "pages")
    shutil.copyfile(REPOSITORY / "zensical.toml", folder / "zensical.toml")
    words = [sys.executable, "-m", "zensical", "build", "--strict"]
    process = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stdout + process.stderr
    return folder / "build" / "site"


def test_every_generated_page_is_in_the_navigation(site):
    # --strict has checked the links. A folder in the navigation lists its pages, and a page marks its own entry.
    assert 'href="reports/top.html"' in (site / "docs" / "reports.html").read_text(encoding="utf-8")
    for page in ("reports/top", "findings/NSI101", "commands/diagnose", "model", "ncu/zoo_a"):
        assert "md-nav__link--active" in (site / "docs" / f"{page}.html").read_text(encoding="utf-8"), page


def test_pages_load_nothing_from_another_server(site):
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert re.findall(r'<(?:script|link|img|iframe)\b[^>]*(?:src|href)="?((?:https?:)?//[^" >]+)', text) == [], page


@pytest.mark.skipif(BROWSER is None, reason="needs Chromium")
def test_the_search_works_in_a_folder(site):
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        problems = []
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", lambda request: None if request.url.startswith("file:") else problems.append(request.url))
        page.goto((site / "docs" / "guide.html").as_uri())
        page.get_by_role("button", name="Search").first.click()
        field = page.get_by_role("combobox")
        field.press_sequentially("glossary")
        page.locator("a[href*='glossary.html?h=glossary']").first.wait_for(timeout=20_000)
        assert field.input_value() == "glossary"
        assert problems == []
        browser.close()

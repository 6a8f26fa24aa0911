"""A real browser: Debian's or any other Chromium on the path. Without one these tests skip and say so."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")

FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--hide-scrollbars"),
)
"""Root has no sandbox in containers; nothing here needs a network."""


def _chromium() -> str | None:
    named = os.environ.get("CHROMIUM")
    return named or next((found for name in NAMES if (found := shutil.which(name))), None)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="the browser tests need playwright: pip install playwright")
    place = _chromium()
    if place is None:
        pytest.skip("no Chromium was found: install Debian's chromium, or name one in CHROMIUM")
    with playwright.sync_playwright() as started:
        running = started.chromium.launch(executable_path=place, args=list(FLAGS))
        yield running
        running.close()


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a run with a spike, a bad end, overlapping attempts and hostile names."""
    from forensics.pipeline import analyze
    from forensics.reports import html

    folder = tmp_path_factory.mktemp("run")
    rng = np.random.default_rng(0)
    loss = 2 + np.exp(-np.arange(1200) / 200) + 0.03 * rng.normal(size=1200)
    loss[700] += 3
    rows = ["step,loss,lr,grad_norm,<script>alert(1)</script>\n"]
    for i in [*range(900), *range(850, 1200)]:
        lr = min(i / 100, 1.0) * 1e-3
        rows.append(f"{i},{loss[i] + (0.001 if i >= 850 else 0)},{lr},{1 + 0.1 * rng.random() + (8 if i == 700 else 0)},{i}\n")
    (folder / "metrics.csv").write_text("".join(rows))
    (folder / "config.json").write_text('{"note": "<img src=x onerror=alert(2)>", "clip": 1.0, "api_key": "s3cret-s3cret"}')
    out = folder / "report.html"
    with out.open("w", encoding="utf-8") as stream:
        html.render(analyze(folder), stream)
    return out


@pytest.fixture
def page(browser: Any, report: Path) -> Iterator[Any]:
    """The report in a fresh page; any error in the console, dialog or request to a network fails the test."""
    context = browser.new_context(viewport={"width": 1200, "height": 900}, offline=True)
    opened = context.new_page()
    problems: list[str] = []
    opened.on("console", lambda m: problems.append(m.text) if m.type in ("error", "warning") else None)
    opened.on("pageerror", lambda e: problems.append(str(e)))
    opened.on("dialog", lambda d: (problems.append(f"dialog {d.message}"), d.dismiss()))
    opened.on("request", lambda r: problems.append(f"request {r.url}") if not r.url.startswith(("file:", "data:")) else None)
    opened.goto(report.as_uri())
    yield opened
    context.close()
    assert not problems

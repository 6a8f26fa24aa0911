"""The report as people see it: in Chromium, with and without scripts, by mouse and by keyboard, on a screen and on paper."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest


def ranges(page: Any) -> str:
    return str(page.locator(".range").inner_text())


def line(page: Any, chart: int) -> str:
    return str(page.locator(".chart").nth(chart).locator("path.line").first.get_attribute("d"))


def until(page: Any, true: Callable[[], bool]) -> bool:
    """Wait for something that the next drawing makes true: drawings wait for a frame."""
    for _ in range(60):
        if true():
            return True
        page.wait_for_timeout(50)
    return False


def test_charts_draw(page: Any) -> None:
    assert page.locator(".chart").count() >= 3
    for chart in range(3):
        assert len(line(page, chart)) > 200
    assert page.locator(".tools").is_visible()


def test_hostile_names_stay_text(page: Any) -> None:
    body = page.locator("body").inner_text()
    assert "<script>alert(1)</script>" in body
    assert page.locator("img").count() == 0
    assert "s3cret" not in page.content()


def test_zoom_is_synchronised(page: Any) -> None:
    before = [line(page, i) for i in range(3)]
    whole = ranges(page)
    page.locator("[data-act=in]").click()
    assert until(page, lambda: ranges(page) != whole)
    assert until(page, lambda: all(line(page, i) != b for i, b in enumerate(before)))
    page.locator("[data-act=all]").click()
    assert until(page, lambda: ranges(page) == whole)
    assert until(page, lambda: [line(page, i) for i in range(3)] == before)


def test_dragging_selects_a_range(page: Any) -> None:
    whole = ranges(page)
    box = page.locator(".chart svg.plot").first.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + box["height"] / 2, steps=5)
    page.mouse.up()
    assert until(page, lambda: ranges(page) != whole)


def test_hovering_shows_exact_values(page: Any) -> None:
    value = page.locator(".chart .value").first
    before = value.inner_text()
    box = page.locator(".chart svg.plot").first.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert until(page, lambda: value.inner_text() != before)


def test_an_event_link_shows_the_event(page: Any) -> None:
    whole = ranges(page)
    page.locator(".card a.jump").first.click()
    assert until(page, lambda: ranges(page) != whole)
    page.locator(".card h3 a").first.click()
    assert page.evaluate("location.hash").startswith("#event-")


def test_the_keyboard_reaches_everything(page: Any) -> None:
    whole = ranges(page)
    page.locator(".chart svg.plot").first.focus()
    page.keyboard.press("+")
    assert until(page, lambda: ranges(page) != whole)
    page.keyboard.press("0")
    assert until(page, lambda: ranges(page) == whole)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.tagName") != "BODY"


def test_log_scale_is_a_toggle(page: Any) -> None:
    button = page.locator(".chart button.scale").first
    before, pressed = line(page, 0), button.get_attribute("aria-pressed")
    button.click()
    assert button.get_attribute("aria-pressed") != pressed
    assert until(page, lambda: line(page, 0) != before)


@pytest.mark.parametrize("width", [390, 768])
def test_nothing_is_wider_than_the_screen(page: Any, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(page: Any, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="the accessibility test needs axe-playwright-python")
    page.emulate_media(color_scheme=scheme)
    found = axe.Axe().run(page)
    assert found.violations_count == 0, found.generate_report()


def test_without_scripts_the_drawings_are_there(browser: Any, report: Path) -> None:
    context = browser.new_context(java_script_enabled=False, offline=True)
    page = context.new_page()
    page.goto(report.as_uri())
    assert len(line(page, 0)) > 200
    assert not page.locator(".tools").is_visible()
    context.close()


def test_it_prints(page: Any) -> None:
    page.emulate_media(media="print")
    assert not page.locator(".tools").is_visible()
    assert page.pdf()[:4] == b"%PDF"


def test_a_million_steps_of_eight_signals_open_in_a_second(browser: Any, tmp_path: Path) -> None:
    from forensics.model import Run, Signal
    from forensics.pipeline import build_case
    from forensics.reports import html

    n = 1_000_000
    rng = np.random.default_rng(1)
    steps = np.arange(n, dtype=np.int64)
    curves = {f"aux_{i}": rng.normal(size=n) for i in range(5)}
    loss = 2 + np.exp(-steps / 1e5) + 0.05 * rng.normal(size=n)
    loss[654_321] = 9.0
    signals = (
        Signal("loss", steps, loss, role="loss"),
        Signal("lr", steps, np.full(n, 1e-3), role="lr"),
        Signal("grad_norm", steps, 1 + 0.1 * np.abs(rng.normal(size=n)), role="grad_norm"),
        *(Signal(name, steps, values) for name, values in curves.items()),
    )
    out = tmp_path / "report.html"
    with out.open("w", encoding="utf-8") as stream:
        html.render(build_case(Run("run", "run", (), signals)), stream)
    assert out.stat().st_size < 2_000_000
    context = browser.new_context(offline=True)
    page = context.new_page()
    page.goto(out.as_uri())
    page.wait_for_selector(".tools:not([hidden])")
    interactive = page.evaluate("performance.getEntriesByType('navigation')[0].domInteractive")
    print(f"{out.stat().st_size:,} bytes, interactive after {interactive:.0f} ms")
    assert "9" in page.locator(".chart").first.inner_text() or page.evaluate("document.getElementById('curves').textContent.includes('9.0')")
    context.close()
    assert interactive < 5000  # one second on a quiet machine; the figure is printed

"""The HTML report: well formed, self-contained, and no logged text ever becomes markup."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import math
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from forensics.model import Case, Series
from forensics.reports import html
from forensics.reports.thinning import thin

VOID = {"meta", "br", "link", "img", "input", "hr"}


class Page(HTMLParser):
    """Checks that every element is closed in order, and collects what the tests ask about."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.blocks: dict[str, list[str]] = {"script": [], "style": []}
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {k: v or "" for k, v in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {k: v or "" for k, v in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in self.blocks:
            self.blocks[self.open[-1]].append(data)
        else:
            self.text.append(data)

    def of(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.tags if name == tag]


def rendered(case: Case) -> str:
    out = io.StringIO()
    html.render(case, out)
    return out.getvalue()


def parsed(case: Case) -> Page:
    page = Page()
    page.feed(rendered(case))
    page.close()
    assert page.open == []
    return page


def test_hostile_strings_stay_text(case: Case, hostile: str, markup: str) -> None:
    text = rendered(case)
    assert "<script>alert" not in text
    page = parsed(case)
    assert len(page.of("script")) == 2
    shown = "".join(page.text)
    assert hostile in shown
    assert markup in shown
    for _, attributes in page.tags:
        assert not [name for name in attributes if name.startswith("on") or name == "style"]
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_secrets_are_hidden(case: Case) -> None:
    text = rendered(case)
    for secret in ("hf_abcdefghijklmnopqrstuvwx", "0123456789\"", "alice", "gpu-07", "hunter2", "verysecret"):
        assert secret not in text


@pytest.mark.parametrize(
    "values",
    [
        (math.nan,) * 5,
        (math.inf, -math.inf, 1.0, 1.0, 1.0),
        (0.0,) * 5,
        (1e308, -1e308, 0.0, 1e308, 5e-324),
        (5e-324, 1e308, 1.0, 2.0, 3.0),
    ],
)
def test_odd_curves(case: Case, values: tuple[float, ...]) -> None:
    page = parsed(replace(case, series={"train/loss": Series((0, 1, 2, 3, 4), values), "lr": Series((7,), (1.0,)), "loss_scale": Series((), ())}))
    for attributes in page.of("path"):
        assert "nan" not in attributes["d"]
        assert "inf" not in attributes["d"]


def test_steps_beyond_the_run_and_backwards(case: Case) -> None:
    series = Series((5, 6, 7, 6, 7, 10**15), (1.0, 2.0, 3.0, 1.0, 2.0, 3.0))
    parsed(replace(case, series={"train/loss": series}))


def test_empty_and_lonely_cases(empty_case: Case, lonely_series: Case) -> None:
    page = parsed(empty_case)
    assert page.of("script") == []
    assert "No finding" in "".join(page.text)
    assert [a["id"] for a in parsed(lonely_series).of("figure") if "id" in a] == ["strip", "chart-0", "chart-1"]


def test_nothing_external_and_only_our_blocks_may_run(case: Case) -> None:
    page = parsed(case)
    for _, attributes in page.tags:
        for name in ("src", "href", "action", "data", "srcset"):
            assert attributes.get(name, "#").startswith("#")
    policy = next(a["content"] for a in page.of("meta") if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    for block in (page.blocks["style"][0], page.blocks["script"][1]):
        assert f"sha256-{base64.b64encode(hashlib.sha256(block.encode()).digest()).decode()}" in policy
    assert "url(" not in page.blocks["style"][0]


def test_every_link_has_its_target_and_ids_are_unique(case: Case) -> None:
    page = parsed(case)
    ids = [a["id"] for _, a in page.tags if "id" in a]
    assert len(ids) == len(set(ids))
    assert {a["href"][1:] for a in page.of("a")} <= set(ids)
    for a in page.of("a"):
        if "jump" in a.get("class", ""):
            assert "data-event" in a or "data-step" in a


def test_the_script_gets_every_point_exactly(case: Case) -> None:
    data = json.loads(parsed(case).blocks["script"][0])
    chart = data["charts"][0]
    assert chart["name"] == "train/loss"
    assert tuple(np.cumsum(chart["steps"]).tolist()) == case.series["train/loss"].steps
    values = [float(v) for v in chart["values"]]
    np.testing.assert_array_equal(values, case.series["train/loss"].values)
    assert [e["id"] for e in data["events"]] == ["E2", "E1", "E3", "E4", "E5"]


def test_a_million_steps_of_eight_signals_stay_below_two_megabytes(case: Case) -> None:
    steps = np.arange(1_000_000, dtype=np.int64)
    noise = np.random.default_rng(1).normal(size=1_000_000)
    noise[654_321] = 77.125
    series = {name: thin(steps, noise + k, [(600_000, 610_000)], 4000) for k, name in enumerate([*case.series, "a", "b"])}
    big = replace(case, series=series, run=replace(case.run, last_step=999_999))
    text = rendered(big)
    assert len(text.encode()) < 2_000_000
    assert "77.125" in text


def test_same_case_same_bytes_and_no_time_of_day(case: Case) -> None:
    assert rendered(case) == rendered(case)
    assert not re.search(r"\b20\d\d-\d\d-\d\d\b", rendered(case))

"""Secrets must not reach a report; ordinary settings must."""

from __future__ import annotations

import pytest

from forensics.reports.redaction import HIDDEN, MOST_ROWS, settings


def shown(config: dict[str, object]) -> dict[str, str]:
    return {row.key: row.value for row in settings(config)}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("token", "abc"),
        ("hub_token", "abc"),
        ("HF_TOKEN", "abc"),
        ("apiKey", "abc"),
        ("wandb_api_key", "abc"),
        ("secretValue", "abc"),
        ("password", 12345),
        ("userName", "alice"),
        ("user", {"id": 7}),
        ("hostname", "gpu-07"),
        ("e_mail", "x"),
        ("note", "write to alice@example.org"),
        ("note", "hf_abcdefghijklmnopqrstuv"),
        ("remote", "https://alice:pw@git.example.org/x.git"),
        ("deep", {"er": [{"auth": "abc"}]}),
        ("args", ["--api-key", "abc"]),
        ("args", ["--api-key=abc"]),
    ],
)
def test_secrets_are_hidden(key: str, value: object) -> None:
    rows = settings({key: value})
    assert any(HIDDEN in row.value for row in rows)
    assert all(row.hidden for row in rows if HIDDEN in row.value)
    joined = " ".join(row.value for row in rows)
    for secret in ("abc", "alice", "12345", "gpu-07", "pw@"):
        assert secret not in joined


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("max_tokens", 4096),
        ("num_key_value_heads", 8),
        ("tokenizer", "gpt2"),
        ("eos_token", "</s>"),
        ("pad_token_id", 0),
        ("monkey", "george"),
        ("ghost", "x"),
        ("keyed", "x"),
    ],
)
def test_ordinary_settings_stay(key: str, value: object) -> None:
    assert shown({key: value})[key] == str(value)


def test_home_folders_lose_the_user_name() -> None:
    assert shown({"out": "/home/alice/run", "mac": "/Users/bob/run"}) == {"mac": "~/run", "out": "~/run"}


def test_odd_values() -> None:
    config: dict[str, object] = {"n": None, "inf": float("inf"), "nan": float("nan"), "big": 1e20, "t": True, "e": "", "l": [], "m": {}, "k": {"a.b": 1}}
    assert shown(config) == {"n": "none", "inf": "inf", "nan": "nan", "big": "1e+20", "t": "true", "e": "(empty)", "l": "(none)", "m": "{}", "k.a.b": "1"}


def test_deep_and_wide_configs_stay_bounded() -> None:
    deep: dict[str, object] = {"x": 1}
    for _ in range(200):
        deep = {"d": deep}
    assert len(settings(deep)) == 1
    wide = settings({f"k{i}": i for i in range(MOST_ROWS + 50)})
    assert len(wide) == MOST_ROWS + 1
    assert "50 more" in wide[-1].value

"""Keep secrets and personal data of a run's configuration out of reports: they are made to be passed on."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from forensics.reports import wording

HIDDEN = "(redacted)"

MOST_ROWS = 2000
"""Settings shown. Real configs have hundreds; a file of a million keys would only make the report unreadable."""

DEEPEST = 12
"""Levels of nesting that are followed; deeper values are shown as one text."""

_ALWAYS = frozenset(
    (
        *("secret", "secrets", "password", "passwd", "passphrase", "pwd", "credential", "credentials"),
        *("email", "mail", "user", "username", "host", "hostname", "login"),
    )
)
"""Words that name a secret or a person whatever the value is."""

_TEXT_ONLY = frozenset(["token", "tokens", "key", "keys", "apikey", "auth", "authorization", "cookie", "session", "dsn"])
"""Words that name a secret when the value is text: ``max_tokens: 4096`` and ``num_key_value_heads: 8`` are no secrets."""

_SPECIAL_TOKENS = frozenset(["bos", "eos", "sos", "pad", "unk", "sep", "cls", "mask", "image", "special", "added", "stop"])
_SECRET_VALUE = re.compile(
    r"\b(hf_[A-Za-z0-9]{16,}|sk-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|AKIA[A-Z0-9]{12,}"
    r"|AIza[\w-]{30,}|xox[abprs]-[\w-]{10,}|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*)"
)
_LOGIN_IN_URL = re.compile(r"(://)[^/\s@:]+(:[^/\s@]*)?@")
_EMAIL = re.compile(r"\b[\w.+-]+@[\w-]+(\.[\w-]+)+\b")
_FLAG = re.compile(r"^(--?[A-Za-z][\w.-]*)(?:=(.*))?$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Setting:
    """One leaf of the configuration: dotted key, shown value, whether the value was hidden."""

    key: str
    value: str
    hidden: bool = False


def settings(config: Mapping[str, object]) -> tuple[Setting, ...]:
    """The configuration as sorted rows of text with secrets and personal data hidden, at most ``MOST_ROWS`` of them."""
    rows: list[Setting] = []
    _flatten("", config, False, 0, rows)
    rows.sort(key=lambda row: row.key)
    if len(rows) > MOST_ROWS:
        rows = [*rows[:MOST_ROWS], Setting("...", f"{len(rows) - MOST_ROWS:,} more settings are in case.json")]
    return tuple(rows)


def is_secret(key: str, value: object) -> bool:
    """Whether a key names a secret or a person."""
    spaced = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", key)
    words = [w for w in re.split(r"[^a-z0-9]+", spaced.lower()) if w]
    if any(w in _ALWAYS for w in words):
        return True
    if not isinstance(value, str) or not value or any(w in _SPECIAL_TOKENS for w in words):
        return False
    return any(w in _TEXT_ONLY or w.endswith(("apikey", "token", "password")) for w in words)


def scrub(text: str) -> str:
    """Text with values that look like credentials, e-mail addresses and home folders hidden."""
    text = _SECRET_VALUE.sub(HIDDEN, text)
    text = _LOGIN_IN_URL.sub(rf"\1{HIDDEN}@", text)
    return wording.without_home(_EMAIL.sub(HIDDEN, text))


def _flatten(key: str, value: object, hidden: bool, depth: int, rows: list[Setting]) -> None:
    if isinstance(value, Mapping) and value and depth < DEEPEST:
        for name, inner in value.items():
            path = f"{key}.{name}" if key else str(name)
            _flatten(path, inner, hidden or is_secret(str(name), inner), depth + 1, rows)
    elif hidden:
        rows.append(Setting(wording.line(key, wording.LONGEST_NAME), HIDDEN, hidden=True))
    elif isinstance(value, (list, tuple)):
        _flatten_list(key, value, depth, rows)
    else:
        shown = scrub(_leaf(value))
        rows.append(Setting(wording.line(key, wording.LONGEST_NAME), shown, hidden=HIDDEN in shown))


def _flatten_list(key: str, value: list[object] | tuple[object, ...], depth: int, rows: list[Setting]) -> None:
    if any(isinstance(item, (Mapping, list, tuple)) for item in value) and depth < DEEPEST:
        for number, item in enumerate(value):
            _flatten(f"{key}[{number}]", item, False, depth + 1, rows)
        return
    shown = ", ".join(scrub(item) for item in _arguments([_leaf(item) for item in value]))
    rows.append(Setting(wording.line(key, wording.LONGEST_NAME), shown or "(none)", hidden=HIDDEN in shown))


def _arguments(items: list[str]) -> list[str]:
    """A list that may be a command line: the value after ``--token`` is as secret as a key ``token``."""
    out: list[str] = []
    hide_next = False
    for item in items:
        flag = _FLAG.match(item)
        if hide_next and flag is None:
            out.append(HIDDEN)
            hide_next = False
            continue
        secret = flag is not None and is_secret(flag.group(1), "text")
        hide_next = secret and flag is not None and flag.group(2) is None
        out.append(f"{flag.group(1)}={HIDDEN}" if secret and flag is not None and flag.group(2) is not None else item)
    return out


def _leaf(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:g}" if value.is_integer() and abs(value) >= 1e6 else repr(value)
    return wording.line(str(value), 1000) or "(empty)"

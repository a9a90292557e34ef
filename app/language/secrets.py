"""Secrets in texts: keys, tokens and passwords, by Gitleaks' rules and our own.

Rules are in `resources/secrets`. Nothing found is stored or logged: a finding says where a secret
is and of what kind, never what it is.
"""

import math
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).resolve().parents[2] / "resources" / "secrets"
_FILES = ("gitleaks/gitleaks.toml", "conversations.toml")
_MAX_CHARS = 1_000_000  # of a text that is searched
_CASELESS = "(?i)"


@dataclass(frozen=True, slots=True)
class FoundSecret:
    """A secret in a text: its place in characters, and its kind, such as "aws-access-token"."""

    start: int
    end: int
    kind: str


def find_secrets(text: str) -> Sequence[FoundSecret]:
    """Return the secrets in a text in order; overlapping ones are one, of the kind of the longest."""
    text = text[:_MAX_CHARS]
    lower = text.lower()
    found = [
        secret
        for rule in _rules()
        if any(word in lower for word in rule.keywords)
        for secret in rule.find(text)
    ]
    kept: list[FoundSecret] = []
    for secret in sorted(found, key=lambda each: each.start):
        if kept and secret.start < (last := kept[-1]).end:
            kind = max(last, secret, key=lambda each: each.end - each.start).kind
            kept[-1] = FoundSecret(last.start, max(last.end, secret.end), kind)
        else:
            kept.append(secret)
    return kept


def masked(text: str) -> str:
    """Return a text with each secret replaced by its kind in brackets."""
    for secret in reversed(find_secrets(text)):
        text = f"{text[: secret.start]}[hidden: {secret.kind}]{text[secret.end :]}"
    return text


class _Rule:
    """A rule; its pattern is compiled when one of its keywords is met for the first time."""

    def __init__(self, value: Mapping[str, Any]) -> None:
        self.kind: str = value["id"]
        self.keywords: Sequence[str] = [each.lower() for each in value["keywords"]]
        self._regex: str = value["regex"]
        self._entropy = float(value.get("entropy", 0))
        self._classes = int(value.get("classes", 0))
        self._group: int | None = value.get("secretGroup")
        self._allowed = [
            each for each in value.get("allowlists", ()) if each.get("regexTarget") != "line"
        ]
        self._stop_words = [
            word for each in value.get("allowlists", ()) for word in each.get("stopwords", ())
        ]

    def find(self, text: str) -> Iterator[FoundSecret]:
        for match in self._pattern.finditer(text):
            group = self._group or next(
                (n for n in range(1, len(match.groups()) + 1) if match[n]), 0
            )
            value = match[group]
            if value and not self._is_harmless(value, match[0]):
                yield FoundSecret(match.start(group), match.end(group), self.kind)

    def _is_harmless(self, value: str, whole: str) -> bool:
        lower = value.lower()
        return (
            (self._entropy > 0 and entropy(value) <= self._entropy)
            or _character_classes(value) < self._classes
            or any(word in lower for word in self._stop_words)
            or any(pattern.search(value) for pattern in _harmless())
            or any(
                pattern.search(whole if target == "match" else value)
                for target, pattern in self._allowed_patterns
            )
        )

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return _compiled(self._regex)

    @cached_property
    def _allowed_patterns(self) -> Sequence[tuple[str, re.Pattern[str]]]:
        return [
            (each.get("regexTarget", "secret"), _compiled(regex))
            for each in self._allowed
            for regex in each.get("regexes", ())
        ]


def entropy(text: str) -> float:
    """Return Shannon's entropy of a text in bits per character."""
    counts = Counter(text).values()
    return -sum(count / len(text) * math.log2(count / len(text)) for count in counts)


def _character_classes(text: str) -> int:
    return sum(
        any(test(character) for character in text)
        for test in (str.islower, str.isupper, str.isdecimal, lambda each: not each.isalnum())
    )


@cache
def _tables() -> Sequence[Mapping[str, Any]]:
    return [tomllib.loads((_FOLDER / name).read_text(encoding="utf-8")) for name in _FILES]


@cache
def _rules() -> Sequence[_Rule]:
    """Return the rules that search texts; some of Gitleaks' search paths of files only."""
    return [_Rule(each) for table in _tables() for each in table["rules"] if "regex" in each]


@cache
def _harmless() -> Sequence[re.Pattern[str]]:
    """Return patterns of values that are placeholders in any rule."""
    lists = (table.get("allowlist", {}) for table in _tables())
    return [_compiled(regex) for each in lists for regex in each.get("regexes", ())]


def _compiled(regex: str) -> re.Pattern[str]:
    """Return a pattern in the syntax of RE2 compiled for Python.

    Flags inside a pattern apply to the rest of the enclosing group there, and are not allowed here.
    """
    regex = regex.replace(r"\z", r"\Z").replace("[[:alnum:]]", "[A-Za-z0-9]")
    at = regex.find(_CASELESS, 1)
    while at > 0:
        end = _group_end(regex, at)
        rest = regex[at + len(_CASELESS) : end]
        regex = f"{regex[:at]}(?i:{rest}){regex[end:]}"
        at = regex.find(_CASELESS, at + 1)
    return re.compile(regex)


def _group_end(regex: str, start: int) -> int:
    """Return the place of the bracket that closes the group around `start`, or the end."""
    depth, at, in_class = 0, start + len(_CASELESS), False
    while at < len(regex):
        character = regex[at]
        if character == "\\":
            at += 1
        elif in_class:
            in_class = character != "]"
        elif character == "[":
            in_class = True
        elif character == "(":
            depth += 1
        elif character == ")":
            if depth == 0:
                return at
            depth -= 1
        at += 1
    return at

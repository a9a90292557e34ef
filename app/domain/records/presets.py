"""Presets: instructions, a model and options that a conversation is answered with."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from typing import Protocol, TypeVar

from app.domain.text import clean
from app.domain.translation import tr_noop

DEFAULT_PRESET = "commonplace"
"""The uid of the preset that always exists."""

MAX_TEMPERATURE = 2.0
MAX_OUTPUT_TOKENS = 1_000_000
MAX_NAME_CHARS = 60
MAX_PROMPT_CHARS = 100_000


N = TypeVar("N", bound="Named")


class Effort(StrEnum):
    """How much a model reasons before it answers, in rising order."""

    NONE = "none"
    MINIMAL = "minimal"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    XHIGH = "xhigh"
    MAX = "max"


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """The options that a model has; `efforts` are in rising order, () without reasoning."""

    has_temperature: bool = True
    efforts: tuple[Effort, ...] = tuple(Effort)
    has_max_output: bool = True


@dataclass(frozen=True, slots=True)
class Preset:
    """A preset.

    Attributes:
        uid: Its identity in every library.
        system_prompt: Its instructions; "" for ours.
        model: PROVIDER:MODEL; None for the conversation's.
        temperature, reasoning_effort, max_output_tokens: None for the model's default.
        tools: The names of the tools that the model may call; None for all.
    """

    uid: str
    name: str
    system_prompt: str = ""
    model: str | None = None
    temperature: float | None = None
    reasoning_effort: Effort | None = None
    max_output_tokens: int | None = None
    tools: tuple[str, ...] | None = None

    @property
    def is_built_in(self) -> bool:
        """Whether it is ours, which can be changed and not removed."""
        return self.uid == DEFAULT_PRESET


BUILT_IN_PRESET = Preset(DEFAULT_PRESET, "Commonplace")


def preset_problem(preset: Preset) -> str:
    """Return why a preset cannot be stored as a phrase that follows "it", "" if it can."""
    temperature, most = preset.temperature, preset.max_output_tokens
    if not preset.uid or len(preset.uid) > MAX_NAME_CHARS:
        return "has no valid uid"
    if not 0 < len(preset.name) <= MAX_NAME_CHARS or preset.name != one_line_name(preset.name):
        return f"needs a name of 1 to {MAX_NAME_CHARS} characters"
    if len(preset.system_prompt) > MAX_PROMPT_CHARS:
        return f"has instructions of more than {MAX_PROMPT_CHARS:,} characters"
    if temperature is not None and not 0 <= temperature <= MAX_TEMPERATURE:
        return f"needs a temperature from 0 to {MAX_TEMPERATURE:g}"
    if most is not None and not 1 <= most <= MAX_OUTPUT_TOKENS:
        return f"needs a maximum output from 1 to {MAX_OUTPUT_TOKENS:,} tokens"
    if any(not re.fullmatch(r"\w{1,64}", name, re.ASCII) for name in preset.tools or ()):
        return "allows a tool whose name is not a word"
    return ""


def one_line_name(name: str) -> str:
    """Return a name as it is stored: clean, in one line, without double spaces."""
    return " ".join(clean(name).split())


class Named(Protocol):
    """A record that the user names."""

    @property
    def uid(self) -> str: ...
    @property
    def name(self) -> str: ...


def find_named(name: str, records: Iterable[N], other_than: str = "") -> N | None:
    """Return the first record with this name (any case) or uid; the one with uid `other_than` does not count."""
    wanted = one_line_name(name).casefold()
    found = (each for each in records if wanted in (each.name.casefold(), each.uid))
    return next((each for each in found if each.uid != other_than), None)


def names_hint(name: str, records: Iterable[Named], if_none: str = "") -> str:
    """Return a hint with the names that are like `name`, else all."""
    names = [each.name for each in records]
    if near := get_close_matches(name, names, n=2, cutoff=0.5):
        return tr_noop(f"Did you mean {' or '.join(near)}?")
    return tr_noop(f"There are {', '.join(names)}.") if names else if_none


def free_name(name: str, taken: Iterable[str]) -> str:
    """Return a name like `name` that is not taken, with a number behind it."""
    used = {each.casefold() for each in taken}
    number = 1
    candidate = name
    while candidate.casefold() in used:
        number += 1
        ending = f" ({number})"
        candidate = name[: MAX_NAME_CHARS - len(ending)].rstrip() + ending
    return candidate


def options_text(preset: Preset) -> str:
    """Return the model and the options of a preset in a line, "" for only defaults."""
    tools = preset.tools
    parts = (
        preset.model or "",
        "" if preset.temperature is None else f"temperature {preset.temperature:g}",
        "" if preset.reasoning_effort is None else f"effort {preset.reasoning_effort}",
        "" if preset.max_output_tokens is None else f"at most {preset.max_output_tokens:,} tokens",
        "" if tools is None else f"tools: {', '.join(tools)}" if tools else "no tools",
    )
    return ", ".join(filter(None, parts))

"""Presets: instructions, a model and options that a conversation is answered with."""

import re
from dataclasses import dataclass
from enum import StrEnum

from app.domain.records.named import MAX_INSTRUCTIONS_CHARS, named_problem

DEFAULT_PRESET = "commonplace"
"""The uid of the preset that always exists."""

MAX_TEMPERATURE = 2.0
MAX_OUTPUT_TOKENS = 1_000_000


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
    if problem := named_problem(preset):
        return problem
    if len(preset.system_prompt) > MAX_INSTRUCTIONS_CHARS:
        return f"has instructions of more than {MAX_INSTRUCTIONS_CHARS:,} characters"
    if temperature is not None and not 0 <= temperature <= MAX_TEMPERATURE:
        return f"needs a temperature from 0 to {MAX_TEMPERATURE:g}"
    if most is not None and not 1 <= most <= MAX_OUTPUT_TOKENS:
        return f"needs a maximum output from 1 to {MAX_OUTPUT_TOKENS:,} tokens"
    if any(not re.fullmatch(r"\w{1,64}", name, re.ASCII) for name in preset.tools or ()):
        return "allows a tool whose name is not a word"
    return ""


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

"""Model options: which of temperature, reasoning effort and maximum output a model has.

One table of model families for each vendor; the vendors publish no data file with them, and neither
does genai-prices. Where a table is wrong, the server's refusal is remembered (`wire.streaming`). Sources:
developers.openai.com/api/docs/guides/reasoning, platform.claude.com/docs/en/build-with-claude/effort.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import replace

from app.domain.chat import ChatRequest
from app.domain.records.presets import Effort, ModelOptions

_LEVELS = tuple(Effort)


def _between(lowest: Effort, highest: Effort) -> tuple[Effort, ...]:
    return _LEVELS[_LEVELS.index(lowest) : _LEVELS.index(highest) + 1]


_LOW_TO_HIGH = _between(Effort.LOW, Effort.HIGH)
_NONE_AND = (Effort.NONE, *_LOW_TO_HIGH)
# Levels that servers with an own list of them reject least; many accept any text.
_COMPATIBLE = ModelOptions(efforts=_NONE_AND)
_Families = Sequence[tuple[str, ModelOptions]]

_OPENAI: _Families = (
    (r"gpt-oss", ModelOptions(efforts=_LOW_TO_HIGH)),
    (r"gpt-[34]|chatgpt|ft:gpt-[34]|gpt-[\d.]+-chat|gpt-chat", ModelOptions(efforts=())),
    (r"o1-(?:mini|preview)", ModelOptions(has_temperature=False, efforts=())),
    (r"o\d", ModelOptions(has_temperature=False, efforts=_LOW_TO_HIGH)),
    (r"gpt-5-pro", ModelOptions(has_temperature=False, efforts=(Effort.HIGH,))),
    (
        r"gpt-[\d.]+-pro",
        ModelOptions(has_temperature=False, efforts=_between(Effort.MEDIUM, Effort.XHIGH)),
    ),
    (
        r"gpt-5(?:-|$)",
        ModelOptions(has_temperature=False, efforts=_between(Effort.MINIMAL, Effort.HIGH)),
    ),
    (r"gpt-5\.1(?:-|$)", ModelOptions(has_temperature=False, efforts=_NONE_AND)),
    (
        r"gpt-5\.[2-5](?:-|$)",
        ModelOptions(has_temperature=False, efforts=(*_NONE_AND, Effort.XHIGH)),
    ),
    (
        r"gpt-[5-9]",
        ModelOptions(has_temperature=False, efforts=(*_NONE_AND, Effort.XHIGH, Effort.MAX)),
    ),
)
# Version 2026-10-21 of the API, which the SDK sends, has no temperature.
_ANTHROPIC: _Families = (
    (r"claude-(?:v?[12]|instant|3-(?!7))", ModelOptions(has_temperature=False, efforts=())),
    (
        r"claude-3-7|claude-\w+-4(?:-[015])?(?:-20\d{6})?$",
        ModelOptions(has_temperature=False, efforts=_NONE_AND),
    ),
    (r"claude-\w+-4-6", ModelOptions(has_temperature=False, efforts=(*_NONE_AND, Effort.MAX))),
)
_ANTHROPIC_NEWEST = ModelOptions(
    has_temperature=False, efforts=(*_NONE_AND, Effort.XHIGH, Effort.MAX)
)
_REFUSED_EFFORT = frozenset(("reasoning_effort", "reasoning.effort", "thinking", "output_config"))
_REFUSED_MAXIMUM = frozenset(("max_tokens", "max_completion_tokens", "max_output_tokens"))


def openai_options(model: str) -> ModelOptions:
    """Return the options of a model of OpenAI; an unknown one has all."""
    return _options_in(_OPENAI, model) or ModelOptions()


def anthropic_options(model: str) -> ModelOptions:
    """Return the options of a model of Anthropic; an unknown one has those of the newest."""
    return _options_in(_ANTHROPIC, model) or _ANTHROPIC_NEWEST


def compatible_options(model: str) -> ModelOptions:
    """Return the options of a model of any other server, which may be a gateway to OpenAI."""
    return _options_in(_OPENAI, model) or _COMPATIBLE


def is_openai_reasoning_model(model: str) -> bool:
    """Return whether a model refuses `max_tokens` and wants `max_completion_tokens`."""
    found = _options_in(_OPENAI, model)
    return found is not None and not found.has_temperature


def without_refused(options: ModelOptions, refused: Collection[str]) -> ModelOptions:
    """Return the options without those whose parameters a server has refused."""
    return ModelOptions(
        has_temperature=options.has_temperature and "temperature" not in refused,
        efforts=options.efforts if _REFUSED_EFFORT.isdisjoint(refused) else (),
        has_max_output=options.has_max_output and _REFUSED_MAXIMUM.isdisjoint(refused),
    )


def fitted(request: ChatRequest, options: ModelOptions) -> ChatRequest:
    """Return a request without the options that its model lacks.

    An effort that it lacks becomes the next lower one, else its least.
    """
    return replace(
        request,
        temperature=request.temperature if options.has_temperature else None,
        reasoning_effort=_nearest(request.reasoning_effort, options.efforts),
        max_output_tokens=request.max_output_tokens if options.has_max_output else None,
    )


def _nearest(wanted: Effort | None, efforts: Sequence[Effort]) -> Effort | None:
    if wanted is None or not efforts:
        return None
    highest = _LEVELS.index(wanted)
    lower = [each for each in efforts if _LEVELS.index(each) <= highest]
    return lower[-1] if lower else efforts[0]


def _options_in(families: _Families, model: str) -> ModelOptions | None:
    name = model.casefold().rpartition("/")[2]
    return next((options for pattern, options in families if re.match(pattern, name)), None)

"""Model options: what each family has, what is sent instead, and what a server refused."""

import pytest

from app.domain.records.presets import Effort, ModelOptions
from app.providers.configuration import ProviderConfig
from app.providers.model_options import (
    anthropic_options,
    compatible_options,
    fitted,
    openai_options,
    without_refused,
)
from app.providers.registry import ProviderRegistry
from app.system.keys import KeyStore
from tests.fakes.loopback import Loopback
from tests.fakes.loopback_client import hear, request
from tests.fakes.loopback_script import json_reply, text

NO_EFFORT: tuple[Effort, ...] = ()
OLDER = (Effort.LOW, Effort.MEDIUM, Effort.HIGH)


@pytest.mark.parametrize(
    ("options", "temperature", "lowest", "highest"),
    [(openai_options("gpt-4o-mini"), True, None, None),
     (openai_options("ft:gpt-4.1-mini:acme::x"), True, None, None),
     (openai_options("gpt-5-chat-latest"), True, None, None),
     (openai_options("o4-mini"), False, "low", "high"),
     (openai_options("gpt-5-mini-2025-08-07"), False, "minimal", "high"),
     (openai_options("gpt-5.1"), False, "none", "high"),
     (openai_options("gpt-5.4-nano"), False, "none", "xhigh"),
     (openai_options("gpt-5.4-pro"), False, "medium", "xhigh"),
     (openai_options("gpt-6-sol"), False, "none", "max"),
     (openai_options("something-new"), True, "none", "max"),
     (anthropic_options("claude-3-5-haiku-latest"), False, None, None),
     (anthropic_options("claude-3-7-sonnet-latest"), False, "none", "high"),
     (anthropic_options("claude-sonnet-4-5-20250929"), False, "none", "high"),
     (anthropic_options("claude-opus-4-6"), False, "none", "max"),
     (anthropic_options("claude-haiku-5-5"), False, "none", "max"),
     (compatible_options("qwen3:8b"), True, "none", "high"),
     (compatible_options("openai/gpt-5.2"), False, "none", "xhigh"),
     (compatible_options("gpt-oss:20b"), True, "low", "high")],
)  # fmt: skip
def test_each_family_has_its_options(
    options: ModelOptions, temperature: bool, lowest: str | None, highest: str | None
) -> None:
    ends = (options.efforts[0], options.efforts[-1]) if options.efforts else (None, None)
    assert (options.has_temperature, *ends) == (temperature, lowest, highest)


@pytest.mark.parametrize(
    ("wanted", "efforts", "sent"),
    [(Effort.MAX, OLDER, Effort.HIGH), (Effort.NONE, OLDER, Effort.LOW),
     (Effort.MEDIUM, OLDER, Effort.MEDIUM), (Effort.MINIMAL, (Effort.NONE, *OLDER), Effort.NONE),
     (Effort.HIGH, NO_EFFORT, None), (None, OLDER, None)],
)  # fmt: skip
def test_an_effort_that_a_model_lacks_becomes_the_nearest(
    wanted: Effort | None, efforts: tuple[Effort, ...], sent: Effort | None
) -> None:
    asked = request(reasoning_effort=wanted, temperature=0.2, max_output_tokens=9)
    got = fitted(asked, ModelOptions(has_temperature=False, efforts=efforts))
    assert (got.reasoning_effort, got.temperature, got.max_output_tokens) == (sent, None, 9)


def test_refused_parameters_take_their_option_away() -> None:
    left = without_refused(ModelOptions(), ("temperature", "thinking", "max_tokens"))
    assert left == ModelOptions(has_temperature=False, efforts=(), has_max_output=False)
    assert without_refused(ModelOptions(), ("tools",)) == ModelOptions()


def test_a_model_without_thinking_is_asked_once_more_and_remembered(server: Loopback) -> None:
    refusal = {"error": {"message": '"llama3" does not support thinking', "type": "api_error"}}
    server.reply(json_reply(refusal, 400)).always(text("yes"))
    config = ProviderConfig("mine", "compatible", server.v1)
    registry = ProviderRegistry(lambda: [config], KeyStore(environ={}), environ={})
    assert registry.options(config, "llama3").efforts
    asked = request(model="llama3", reasoning_effort=Effort.XHIGH, temperature=0.2)
    assert hear(registry.build(config), asked).text == "yes"
    assert [seen.body.get("reasoning_effort") for seen in server.posts] == ["high", None]
    assert server.posts[-1].body["temperature"] == 0.2
    assert registry.options(config, "llama3") == ModelOptions(efforts=())
    assert registry.options(config, "other").efforts

"""The one table of settings: key, type, range, unit, default and help.

The dialog, `/rag config`, `commonplace config` and the documentation are drawn from it. Where
values are kept is `app.storage.settings`; who wins over whom is `Settings` there.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from app.domain.errors import InvalidSetting

SettingValue = bool | int | float | str | None


class SettingPage(StrEnum):
    """The page of the dialog a setting stands on."""

    GENERAL = "General"
    MODELS = "Models"
    RECALL = "Memory"
    CONTEXT = "Context"
    WORKERS = "Workers"
    NETWORK = "Network"
    INTERNAL = ""


@dataclass(frozen=True, slots=True)
class Setting:
    """One key.

    `kind` is the Python type of its value; `minimum` and `maximum` are inclusive and None where
    open; `optional` keys may be None ("none" as text). `choices` restricts a text, `shape` (a regular
    expression for all of it) too, and `shape_words` says that to people, whom `label` and `help`
    are for.
    """

    key: str
    kind: type[bool] | type[int] | type[float] | type[str]
    default: SettingValue
    page: SettingPage
    label: str
    help: str
    minimum: float | None = None
    maximum: float | None = None
    unit: str = ""
    choices: tuple[str, ...] = ()
    optional: bool = False
    shape: str = ""
    shape_words: str = ""

    @property
    def has_effect(self) -> bool:
        """Whether anything reads it yet; the dialog shows only those that something reads."""
        return self.key not in _WITHOUT_EFFECT_YET

    @property
    def allowed(self) -> str:
        """The range in words, for help and errors."""
        words = _RANGE_WORDS[self.kind](self)
        return f"{words}, or none" if self.optional else words

    def parse(self, text: str) -> SettingValue:
        """Return the value that `text` spells, checked; raise InvalidSetting naming the range."""
        word = text.strip()
        if self.optional and word.casefold() in ("none", ""):
            return None
        if self.kind is bool:
            value: SettingValue = _BOOLEANS.get(word.casefold())
            if value is None:
                raise self._refusal(text)
            return value
        if self.kind is str:
            return self.check(text)
        try:
            return self.check(self.kind(word))
        except ValueError as error:
            raise self._refusal(text) from error

    def check(self, value: SettingValue) -> SettingValue:
        """Return `value` as this key's type; raise InvalidSetting when it is not in range."""
        if value is None:
            if self.optional:
                return None
            raise self._refusal(value)
        if self.kind is float and type(value) is int:
            value = float(value)
        if type(value) is not self.kind:
            raise self._refusal(value)
        if isinstance(value, str):
            if self.choices and value not in self.choices:
                raise self._refusal(value)
            if self.shape and not re.fullmatch(self.shape, value):
                raise self._refusal(value)
        elif not self._in_range(value):
            raise self._refusal(value)
        return value

    def spell(self, value: SettingValue) -> str:
        """Return `value` as `parse` reads it."""
        if value is None:
            return "none"
        return value if isinstance(value, str) else _plain(value)

    def _in_range(self, value: float) -> bool:
        above = self.minimum is None or value >= self.minimum
        return above and (self.maximum is None or value <= self.maximum)

    def _refusal(self, value: object) -> InvalidSetting:
        shown = f"'{value}'" if isinstance(value, str) else _plain(value)
        return InvalidSetting(f"{self.key} cannot be {shown}", f"Allowed: {self.allowed}")


def _plain(value: object) -> str:
    """Return a value as people type it: 3, not 3.0."""
    return json.dumps(value).removesuffix(".0")


def _number_range(setting: Setting) -> str:
    noun = "whole number" if setting.kind is int else "number"
    unit = f" {setting.unit}" if setting.unit else ""
    if setting.minimum is not None and setting.maximum is not None:
        return f"a {noun} from {setting.minimum:.12g} to {setting.maximum:.12g}{unit}"
    if setting.minimum is not None:
        return f"a {noun} of at least {setting.minimum:.12g}{unit}"
    return f"a {noun}{unit}"


_BOOLEANS = {"true": True, "on": True, "yes": True, "1": True} | {
    "false": False,
    "off": False,
    "no": False,
    "0": False,
}


def _text_range(setting: Setting) -> str:
    words = f"one of {', '.join(setting.choices)}" if setting.choices else "any text"
    return setting.shape_words or words


def _flag_range(_: Setting) -> str:
    return "true or false"


_RANGE_WORDS: Mapping[type, Callable[[Setting], str]] = {
    bool: _flag_range,
    int: _number_range,
    float: _number_range,
    str: _text_range,
}


def _flag(key: str, default: bool, page: SettingPage, label: str, help_text: str) -> Setting:
    return Setting(key, bool, default, page, label, help_text)


def _count(
    key: str,
    default: int,
    page: SettingPage,
    label: str,
    help_text: str,
    **more: object,
) -> Setting:
    options = {"minimum": 1, "maximum": 100_000} | more
    return Setting(key, int, default, page, label, help_text, **options)  # type: ignore[arg-type]


def _share(key: str, default: float, page: SettingPage, label: str, help_text: str) -> Setting:
    return Setting(key, float, default, page, label, help_text, minimum=0, maximum=1)


# What an embedder is chosen by; what exists of it shows when it is used.
_EMBEDDER = (
    r"builtin"
    r"|onnx:[^\x00-\x1f\x7f\ud800-\udfff]+"
    r"|(?!onnx:|builtin:)[a-z0-9][a-z0-9._-]{0,39}:[^\s\x00-\x1f\x7f\ud800-\udfff]{1,200}"
)

_MODEL = r"(?!recall:)[a-z0-9][a-z0-9._-]{0,39}:[^\s\x00-\x1f\x7f\ud800-\udfff]{1,200}"

_P = SettingPage
_ALL = (
    Setting("default_model", str, "recall:", _P.MODELS, "Default model",
            "The model new conversations use, as PROVIDER:MODEL; recall: is built in."),
    Setting("background_model", str, None, _P.MODELS, "Model for background work",
            "The model that summarises and extracts facts; none means extractive, on this machine.",
            optional=True, shape=_MODEL, shape_words="PROVIDER:MODEL of a provider"),
    Setting("embedder", str, "builtin", _P.MODELS, "Embedder for search by meaning",
            "What turns texts into vectors; builtin and onnx: stay on this machine.",
            shape=_EMBEDDER,
            shape_words="builtin, onnx:FOLDER, or PROVIDER:MODEL of a provider"),
    Setting("embedder_before", str, "builtin", _P.INTERNAL, "Embedder that answers",
            "What search answers from until the chosen embedder has read as much.",
            shape=_EMBEDDER, shape_words="as embedder"),
    Setting("embedder_consent", str, "", _P.INTERNAL, "Embedders agreed to",
            "The choices, and the places they stand for, that history may be sent to."),
    Setting("background_consent", str, "", _P.INTERNAL, "Background models agreed to",
            "The models, and the places they stand for, that history may be sent to."),
    Setting("own_prices", str, "{}", _P.INTERNAL, "Own prices",
            "What models cost by the user's own word, in USD for a million tokens."),
    Setting("probe_questions", str, "[]", _P.INTERNAL, "Probe questions",
            "Questions whose turns should be found, with the places they had the last time."),
    Setting("clean_slates", str, "[]", _P.INTERNAL, "Clean slates",
            "The exchanges after which the next message begins a new segment."),
    Setting("summaries_again", str, "", _P.INTERNAL, "Summaries to be made again",
            "The moment before which others made them than who is named beside it."),
    Setting("facts_again", str, "", _P.INTERNAL, "Facts to be learned again",
            "The moment before which others learned them than who is named beside it."),
    Setting("system_prompt", str, "", _P.MODELS, "System prompt",
            "What every conversation begins with, unless its preset says otherwise."),
    Setting("theme", str, "system", _P.GENERAL, "Appearance", "Light, dark, or as the system.",
            choices=("system", "light", "dark")),
    Setting("text_size", int, 100, _P.GENERAL, "Text size",
            "The size of text in percent of the system's.", minimum=60, maximum=250, unit="%"),
    _flag("rag_enabled", True, _P.RECALL, "Recall from other conversations",
          "Bring related past conversations and facts into the prompt."),
    _count("rag_conversation_limit", 3, _P.RECALL, "Related conversations",
           "How many conversations are brought in at most.", maximum=20),
    _count("rag_exchange_limit_per_conversation", 2, _P.RECALL, "Exchanges of each",
           "How many exchanges of each related conversation.", maximum=20),
    _share("rag_min_similarity", 0.7, _P.RECALL, "Least relevance of related past",
           "What is less relevant than this is not brought in."),
    _count("rag_fact_limit", 3, _P.RECALL, "Facts", "How many facts are brought in at most.",
           minimum=0, maximum=50),
    _count("rag_history_limit", 2, _P.RECALL, "Turns of all history",
           "How many single turns of all history are added.", minimum=0, maximum=20),
    _count("rag_max_tokens", 1200, _P.RECALL, "Budget of related past",
           "The most tokens that related past may take.", unit="tokens"),
    Setting("rag_recency_half_life_days", float, 0.0, _P.RECALL, "Recency half-life",
            "After so many days a passage weighs half; 0 is off.", minimum=0, maximum=36_500,
            unit="days"),
    _flag("auto_rag_enabled", True, _P.RECALL, "Recall from earlier in the conversation",
          "Bring back messages of this segment that no longer fit."),
    _count("auto_rag_top_k", 3, _P.RECALL, "Earlier messages",
           "How many earlier messages are brought back at most.", maximum=20),
    _count("auto_rag_max_tokens", 400, _P.RECALL, "Budget of earlier messages",
           "The most tokens that earlier messages may take.", unit="tokens"),
    _share("auto_rag_relevance_threshold", 0.5, _P.RECALL, "Least relevance of earlier messages",
           "What is less relevant than this is not brought back."),
    _count("core_memory_max_tokens", 500, _P.RECALL, "Budget of core memory",
           "The most tokens that core memory may take.", unit="tokens"),
    _count("summary_max_tokens", 500, _P.RECALL, "Budget of the summary",
           "The most tokens that the conversation's summary may take.", unit="tokens"),
    _count("context_sliding_window", 20, _P.RECALL, "Sliding window",
           "At least so many last messages of the segment are sent.", unit="messages"),
    _count("context_subagent_history", 5, _P.CONTEXT, "History of a routine",
           "How many finished runs a routine is shown.", minimum=0, maximum=100),
    _count("tool_output_max_chars", 2000, _P.CONTEXT, "Longest tool result",
           "A longer tool result is cut in the prompt.", minimum=100, unit="characters"),
    _count("tool_rounds_max", 8, _P.CONTEXT, "Tool rounds",
           "How often a model may call tools for one message.", maximum=100),
    _flag("summarizer_conversation_enabled", True, _P.WORKERS, "Summarise conversations",
          "Two or three sentences for each conversation; also title and tags."),
    _flag("summarizer_exchange_enabled", True, _P.WORKERS, "Summarise exchanges",
          "One or two sentences for each exchange."),
    _flag("embedding_pipeline_enabled", True, _P.WORKERS, "Embed for search by meaning",
          "Make everything findable by meaning."),
    _flag("knowledge_extractor_enabled", True, _P.WORKERS, "Extract facts",
          "Collect what conversations say about you and your work."),
    _flag("tool_summarizer_enabled", False, _P.WORKERS, "Summarise tool calls",
          "One line for each tool call, made findable."),
    _flag("index_man_enabled", False, _P.WORKERS, "Index manual pages",
          "Make the system's manual pages searchable; off again at every start."),
    _count("summarizer_idle_timeout", 30, _P.WORKERS, "Summarisers look every",
           "How long an idle summariser waits before it looks again.", maximum=86_400, unit="s"),
    _count("summarizer_quiet_minutes", 5, _P.WORKERS, "Quiet before the open conversation",
           "The open conversation is summarised after so long without a message.", minimum=0,
           maximum=1440, unit="minutes"),
    _count("embedding_pipeline_poll_interval", 5, _P.WORKERS, "Embedding looks every",
           "How long the idle embedding pipeline waits before it looks again.", maximum=86_400,
           unit="s"),
    _count("embedding_batch_size", 100, _P.WORKERS, "Texts in one batch",
           "How many texts are embedded at once.", maximum=2048),
    _count("embedding_max_retries", 6, _P.WORKERS, "Tries of a text",
           "After so many failures a text is set aside.", minimum=0, maximum=20),
    Setting("embedding_requests_per_minute", int, None, _P.WORKERS, "Requests to an embedder",
            "The most requests a minute to a remote embedder.", minimum=1, maximum=100_000,
            unit="a minute", optional=True),
    _count("min_message_tokens", 10, _P.WORKERS, "Shortest turn embedded",
           "A turn with fewer tokens is found by its words only.", minimum=0, unit="tokens"),
    _count("min_messages_for_exchange_summary", 1, _P.WORKERS, "Messages before a summary",
           "An exchange with fewer messages is not summarised."),
    _count("min_exchanges_for_conversation_summary", 1, _P.WORKERS, "Exchanges before a summary",
           "A conversation with fewer exchanges is not summarised."),
    _count("turn_max_tokens", 6000, _P.WORKERS, "Longest chunk",
           "A longer turn is embedded in overlapping chunks.", minimum=100, unit="tokens"),
    _count("turn_overlap_tokens", 500, _P.WORKERS, "Overlap of chunks",
           "How much neighbouring chunks share.", minimum=0, unit="tokens"),
    Setting("spend_cap_daily_usd", float, None, _P.WORKERS, "Daily spend cap",
            "Background work stops before it spends more in a day.", minimum=0,
            maximum=1_000_000, unit="USD", optional=True),
    Setting("spend_cap_monthly_usd", float, None, _P.WORKERS, "Monthly spend cap",
            "Background work stops before it spends more in a month.", minimum=0,
            maximum=1_000_000, unit="USD", optional=True),
    Setting("proxy_url", str, None, _P.NETWORK, "Proxy",
            "A proxy for all requests; none means what the environment says.", optional=True),
    Setting("ca_bundle", str, None, _P.NETWORK, "Certificates",
            "A file of trusted certificates; none means the system's.", optional=True),
)  # fmt: skip

# Kept when they are set, and named in the specification; read once routines are built. A key leaves
# this set with its first reader.
_WITHOUT_EFFECT_YET = frozenset({"context_subagent_history"})

SETTINGS: Mapping[str, Setting] = MappingProxyType({setting.key: setting for setting in _ALL})


def setting_for(key: str) -> Setting:
    """Return the setting named `key`; raise InvalidSetting with the nearest names otherwise."""
    if (found := SETTINGS.get(key)) is not None:
        return found
    from difflib import get_close_matches

    near = get_close_matches(key, SETTINGS, n=3)
    hint = f"Did you mean {', '.join(near)}?" if near else "config list shows them all."
    raise InvalidSetting(f"There is no setting '{key}'", hint)

"""The table of settings: key, type, range, unit, default, label and help of each.

The settings dialog, `/rag config`, `commonplace config` and the documentation are generated from it.
`app.storage.tables.settings` stores the values and decides the precedence of flag, environment and setting.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from app.domain.errors import InvalidSetting
from app.domain.records.presets import DEFAULT_PRESET
from app.domain.records.sources import SOURCES
from app.domain.translation import LANGUAGES, format_number, tr
from app.domain.workers import WORKERS

SettingValue = bool | int | float | str | None


class SettingPage(StrEnum):
    """The dialog page of a setting; INTERNAL settings have none."""

    GENERAL = "General"
    MODELS = "Models"
    RECALL = "Memory"
    CONTEXT = "Context"
    WORKERS = "Background work"
    NETWORK = "Network"
    INTERNAL = ""


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting.

    `kind` is the Python type of its value; `minimum` and `maximum` are inclusive, None for no limit;
    `optional` settings may be None ("none" as text). A text is restricted by `choices` or by `pattern`,
    a regular expression for the whole text that `pattern_text` describes. `label` and `help` are shown.
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
    pattern: str = ""
    pattern_text: str = ""

    @property
    def allowed(self) -> str:
        """The description of the allowed values, for help and errors."""
        if self.kind is bool:
            text = tr("true or false")
        elif self.kind is str:
            one_of = tr("one of {choices}").format(choices=", ".join(self.choices))
            text = tr(self.pattern_text) or (one_of if self.choices else tr("any text"))
        else:
            text = self._number_range()
        return tr("{text}, or none").format(text=text) if self.optional else text

    def parse(self, text: str) -> SettingValue:
        """Return the valid value that `text` represents; raise InvalidSetting with the allowed values."""
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
        """Return `value` as the setting's type; raise InvalidSetting when it is not allowed."""
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
            if self.pattern and not re.fullmatch(self.pattern, value):
                raise self._refusal(value)
        elif not self._in_range(value):
            raise self._refusal(value)
        return value

    def format_value(self, value: SettingValue) -> str:
        if value is None:
            return "none"
        return value if isinstance(value, str) else _plain(value)

    def _number_range(self) -> str:
        noun = tr("a whole number") if self.kind is int else tr("a number")
        unit = f" {tr(self.unit)}" if self.unit else ""
        if self.minimum is not None and self.maximum is not None:
            return tr("{noun} from {minimum} to {maximum}{unit}").format(
                noun=noun, minimum=_number(self.minimum), maximum=_number(self.maximum), unit=unit
            )
        if self.minimum is not None:
            return tr("{noun} of at least {minimum}{unit}").format(
                noun=noun, minimum=_number(self.minimum), unit=unit
            )
        return f"{noun}{unit}"

    def _in_range(self, value: float) -> bool:
        above = self.minimum is None or value >= self.minimum
        return above and (self.maximum is None or value <= self.maximum)

    def _refusal(self, value: object) -> InvalidSetting:
        shown = f"'{value}'" if isinstance(value, str) else _plain(value)
        return InvalidSetting(f"{self.key} cannot be {shown}", f"Allowed: {self.allowed}")


def _number(value: float) -> str:
    return format_number(value, 0 if value == int(value) else 2)


def _plain(value: object) -> str:
    """Return a value as text, whole numbers without decimals."""
    return json.dumps(value).removesuffix(".0")


_BOOLEANS = dict.fromkeys(("true", "on", "yes", "1"), True) | dict.fromkeys(
    ("false", "off", "no", "0"), False
)


def _flag(key: str, default: bool, page: SettingPage, label: str, help_text: str) -> Setting:
    return Setting(key, bool, default, page, label, help_text)


def _count(
    key: str, default: int, page: SettingPage, label: str, help_text: str, **more: object
) -> Setting:
    options = {"minimum": 1, "maximum": 100_000} | more
    return Setting(key, int, default, page, label, help_text, **options)  # type: ignore[arg-type]


def _share(key: str, default: float, page: SettingPage, label: str, help_text: str) -> Setting:
    return Setting(key, float, default, page, label, help_text, minimum=0, maximum=1)


# Whether the embedder exists is checked when it is used.
_EMBEDDER = (
    r"builtin(-multilingual)?"
    r"|onnx:[^\x00-\x1f\x7f\ud800-\udfff]+"
    r"|(?!onnx:|builtin(-multilingual)?:)[a-z0-9][a-z0-9._-]{0,39}:[^\s\x00-\x1f\x7f\ud800-\udfff]{1,200}"
)

_MODEL = r"(?!recall:)[a-z0-9][a-z0-9._-]{0,39}:[^\s\x00-\x1f\x7f\ud800-\udfff]{1,200}"

_P = SettingPage
_ALL = (
    Setting("default_model", str, "recall:", _P.MODELS, "Default model",
            "The model of new conversations, as PROVIDER:MODEL. recall: is built in."),
    Setting("background_model", str, None, _P.MODELS, "Model for background work",
            "The model that summarizes and extracts facts. None uses the built-in methods on this computer; "
            "what stands for the oldest turns of a long conversation is then made by its own model.",
            optional=True, pattern=_MODEL, pattern_text="PROVIDER:MODEL of a configured provider"),
    Setting("embedder", str, "builtin", _P.MODELS, "Model for search by meaning",
            "The search model. builtin (English), builtin-multilingual (some 100 languages) and onnx: "
            "run on this computer.",
            pattern=_EMBEDDER,
            pattern_text="builtin, builtin-multilingual, onnx:FOLDER, or PROVIDER:MODEL of a configured provider"),
    Setting("embedder_before", str, "builtin", _P.INTERNAL, "Previous embedder",
            "The embedder that search uses until the new one has embedded as much.",
            pattern=_EMBEDDER, pattern_text="the same values as embedder"),
    Setting("embedder_consent", str, "", _P.INTERNAL, "Embedders with consent",
            "The embedders and servers that history may be sent to."),
    _flag("suggest_embedder", True, _P.INTERNAL, "Suggest an embedder",
          "Whether an embedder that suits the languages of the library is suggested."),
    _flag("tour_done", False, _P.INTERNAL, "Tour shown", "Whether the tour was shown."),
    Setting("background_consent", str, "", _P.INTERNAL, "Background models with consent",
            "The models and servers that history may be sent to."),
    Setting("favorite_models", str, "[]", _P.INTERNAL, "Favorite models",
            "Models that the picker lists first."),
    Setting("shortcuts", str, "{}", _P.INTERNAL, "Keyboard shortcuts",
            "The shortcuts that the user changed, by the name of the action."),
    Setting("recent_models", str, "[]", _P.INTERNAL, "Recent models",
            "Models that were chosen last, newest first."),
    Setting("own_prices", str, "{}", _P.INTERNAL, "Own prices",
            "Prices that the user entered, in USD per million tokens."),
    Setting("provider_timeouts", str, "{}", _P.INTERNAL, "Own reply timeouts",
            "Reply timeouts of single providers, in seconds."),
    Setting("own_windows", str, "{}", _P.INTERNAL, "Own context windows",
            "Context windows that the user entered, in tokens."),
    Setting("refused_windows", str, "{}", _P.INTERNAL, "Learned context windows",
            "Context windows that servers named when they refused a request, in tokens."),
    Setting("mcp_clients", str, "{}", _P.INTERNAL, "Programs that asked to read memory",
            "What was decided for each program that asked to read memory."),
    Setting("suggested_sources", str, "", _P.INTERNAL, "Suggested sources",
            "The sources that were suggested before."),
    Setting("probe_questions", str, "[]", _P.INTERNAL, "Test questions",
            "Questions with the turns that they should find and the ranks of the last run."),
    Setting("clean_slates", str, "[]", _P.INTERNAL, "Segment starts",
            "The exchanges after which the next message begins a new segment."),
    Setting("profile_announced", str, "", _P.INTERNAL, "Announced profile",
            "When the proposal for the profile was made that the user was told of."),
    Setting("project_proposals_dismissed", str, "[]", _P.INTERNAL, "Dismissed proposals",
            "The proposed projects that were dismissed."),
    Setting("summaries_again", str, "", _P.INTERNAL, "Summary regeneration",
            "The time and the model; summaries that other models made before are regenerated."),
    Setting("facts_again", str, "", _P.INTERNAL, "Fact regeneration",
            "The time and the model; facts that other models extracted before are regenerated."),
    Setting("document_folders", str, "{}", _P.INTERNAL, "Documents",
            "The files and folders that were added to the documents, and what of them was removed."),
    Setting("import_history", str, "[]", _P.INTERNAL, "Import history",
            "The last imports and the ids of the conversations that they added."),
    Setting("seen_exports", str, "[]", _P.INTERNAL, "Exports offered",
            "The exports in Downloads that were offered."),
    Setting("tool_servers", str, "[]", _P.INTERNAL, "Tool servers",
            "The servers whose tools models may call, as they were accepted, with permissions."),
    Setting("system_prompt", str, "", _P.MODELS, "System prompt",
            "The instructions at the start of every conversation, unless its preset has its own. "
            "Empty text uses Commonplace's."),
    Setting("default_preset", str, DEFAULT_PRESET, _P.INTERNAL, "Default preset",
            "The uid of the preset of new and imported conversations."),
    Setting("theme", str, "system", _P.GENERAL, "Appearance", "Light, dark, or the same as the system.",
            choices=("system", "light", "dark")),
    Setting("text_size", int, 100, _P.GENERAL, "Text size",
            "The text size in percent of the system's.", minimum=60, maximum=250, unit="%"),
    Setting("language", str, "system", _P.GENERAL, "Language",
            "The language of the window, from the next start on. Commands for the terminal are in English.",
            choices=("system", *LANGUAGES)),
    _flag("reduced_motion", False, _P.GENERAL, "Reduce motion",
          "Nothing fades or moves by itself. Also on if the system asks for it."),
    Setting("tray", str, "ask", _P.GENERAL, "Keep running in the tray",
            "Closing the window keeps the program running, with an icon in the desktop's tray.",
            choices=("ask", "on", "off")),
    Setting("watch_downloads", str, "ask", _P.GENERAL, "New exports in Downloads",
            "Offer exports of ChatGPT and Claude when they appear in Downloads, or ask once, after the first import.",
            choices=("ask", "on", "off")),
    _flag("rag_enabled", True, _P.RECALL, "Recall from other conversations",
          "Add related past conversations and facts to the prompt."),
    _count("rag_conversation_limit", 3, _P.RECALL, "Related conversations",
           "The maximum number of related conversations.", maximum=20),
    _count("rag_exchange_limit_per_conversation", 2, _P.RECALL, "Turns per conversation",
           "The maximum number of turns of each related conversation.", maximum=20),
    _share("rag_min_similarity", 0.7, _P.RECALL, "Minimum relevance",
           "Conversations, turns and facts below this relevance are not quoted."),
    _share("rag_hint_similarity", 0.2, _P.RECALL, "Minimum relevance of hints",
           "At most three items from this relevance on that are not quoted are added as one line each."),
    _count("rag_fact_limit", 3, _P.RECALL, "Facts", "The maximum number of facts.",
           minimum=0, maximum=50),
    _count("rag_history_limit", 2, _P.RECALL, "Turns from all history",
           "The maximum number of additional single turns from all history.", minimum=0, maximum=20),
    _count("rag_max_tokens", 1200, _P.RECALL, "Token budget for related history",
           "The maximum number of tokens for related conversations, turns and facts.", unit="tokens"),
    _count("rag_document_max_tokens", 500, _P.RECALL, "Token budget for documents",
           "The maximum number of tokens for passages of your documents. 0 leaves them out.", minimum=0,
           unit="tokens"),
    Setting("rag_recency_half_life_days", float, 0.0, _P.RECALL, "Recency half-life",
            "The number of days after which what was said counts half. 0 turns this off.", minimum=0, maximum=36_500,
            unit="days"),
    _flag("auto_rag_enabled", True, _P.RECALL, "Recall from earlier in the conversation",
          "Add earlier messages of this conversation that are no longer sent in full."),
    _count("auto_rag_top_k", 3, _P.RECALL, "Earlier messages",
           "The maximum number of earlier messages.", maximum=20),
    _count("auto_rag_max_tokens", 400, _P.RECALL, "Token budget for earlier messages",
           "The maximum number of tokens for earlier messages.", unit="tokens"),
    _share("auto_rag_relevance_threshold", 0.5, _P.RECALL, "Minimum relevance of earlier messages",
           "Earlier messages below this relevance are not added."),
    _count("core_memory_max_tokens", 500, _P.RECALL, "Token budget for core memory",
           "The maximum number of tokens for core memory.", unit="tokens"),
    _flag("profile_enabled", True, _P.RECALL, "Use the profile",
          "Add what you accepted about yourself to every prompt, and propose changes to it."),
    _count("profile_max_tokens", 500, _P.RECALL, "Token budget for the profile",
           "The maximum number of tokens for the profile.", unit="tokens"),
    _flag("mcp_remember", False, _P.GENERAL, "Let other programs save to memory",
          "Programs that may read memory over MCP can also save texts, which are listed under saved memories."),
    _flag("mcp_http", False, _P.INTERNAL, "Memory over HTTP",
          "Programs on this computer that have its key can read memory over MCP by HTTP while the window is open."),
    _count("mcp_http_port", 7316, _P.INTERNAL, "Port of memory over HTTP",
           "The port on this computer for memory over HTTP.", minimum=1024, maximum=65_535),
    _count("prompt_max_tokens", 32_000, _P.CONTEXT, "Maximum prompt",
           "The maximum number of tokens of a prompt, at most three quarters of what the model can read. "
           "Longer conversations are condensed.",
           minimum=1000, maximum=10_000_000, unit="tokens"),
    _count("compaction_max_tokens", 1500, _P.CONTEXT, "Maximum summary of older turns",
           "The maximum number of tokens that stand for the older turns of a long conversation.",
           minimum=50, unit="tokens"),
    _count("context_subagent_history", 5, _P.CONTEXT, "Routine history",
           "The number of finished runs that a routine can see.", minimum=0, maximum=100),
    _count("tool_output_max_chars", 2000, _P.CONTEXT, "Maximum tool result",
           "Longer tool results are truncated in the prompt.", minimum=100, unit="characters"),
    _count("tool_rounds_max", 8, _P.CONTEXT, "Tool rounds",
           "The maximum number of rounds of tool calls for one message.", maximum=100),
    *(_flag(each.enabled_key, each.is_on_by_default, _P.WORKERS, each.setting, each.setting_help)
      for each in WORKERS.values()),
    *(_flag(each.setting, False, _P.WORKERS, f"Follow {each.title}",
            f"Import the sessions of {each.title} on this computer, as they are written. {each.deletes}".strip())
      for each in SOURCES.values()),
    _count("summarizer_idle_timeout", 30, _P.WORKERS, "Summarizer interval",
           "The time after which an idle summarizer checks for new work.", maximum=86_400, unit="s"),
    _count("summarizer_quiet_minutes", 5, _P.WORKERS, "Delay for the open conversation",
           "The open conversation is summarized after this time without a new message.", minimum=0,
           maximum=1440, unit="minutes"),
    _count("embedding_pipeline_poll_interval", 5, _P.WORKERS, "Search model: interval",
           "The time after which idle search by meaning checks for new work.", maximum=86_400,
           unit="s"),
    _count("embedding_batch_size", 100, _P.WORKERS, "Search model: texts at once",
           "The number of texts that the search model reads at once.", maximum=2048),
    _count("embedding_max_retries", 6, _P.WORKERS, "Search model: attempts",
           "The number of failures after which a text is no longer retried automatically.", minimum=0, maximum=20),
    Setting("embedding_requests_per_minute", int, None, _P.WORKERS, "Search model: request limit",
            "The maximum number of requests per minute to a remote search model.", minimum=1, maximum=100_000,
            unit="per minute", optional=True),
    _count("min_message_tokens", 10, _P.WORKERS, "Minimum turn length",
           "Shorter turns are found by their words only.", minimum=0, unit="tokens"),
    _count("min_messages_for_exchange_summary", 1, _P.WORKERS, "Minimum messages per turn",
           "Turns with fewer messages are not summarized."),
    _count("min_exchanges_for_conversation_summary", 1, _P.WORKERS, "Minimum turns per conversation",
           "Conversations with fewer turns are not summarized."),
    _count("turn_max_tokens", 6000, _P.WORKERS, "Maximum chunk length",
           "Longer turns are read by the search model in overlapping parts.", minimum=100, unit="tokens"),
    _count("turn_overlap_tokens", 500, _P.WORKERS, "Chunk overlap",
           "The number of tokens that adjacent chunks share.", minimum=0, unit="tokens"),
    Setting("spend_cap_daily_usd", float, None, _P.WORKERS, "Daily spend limit",
            "The maximum that background work may spend in a day.", minimum=0,
            maximum=1_000_000, unit="USD", optional=True),
    Setting("spend_cap_monthly_usd", float, None, _P.WORKERS, "Monthly spend limit",
            "The maximum that background work may spend in a month.", minimum=0,
            maximum=1_000_000, unit="USD", optional=True),
    _count("reply_timeout", 60, _P.NETWORK, "Reply timeout",
           "The longest wait for the first part of a reply.", minimum=5, maximum=86_400, unit="s"),
    _count("local_reply_timeout", 1800, _P.NETWORK, "Reply timeout of local servers",
           "The same for servers on this computer or in your network, which may read a long prompt for minutes.",
           minimum=5, maximum=86_400, unit="s"),
    Setting("proxy_url", str, None, _P.NETWORK, "Proxy",
            "The proxy for all requests. None uses the environment's proxy.", optional=True),
    Setting("ca_bundle", str, None, _P.NETWORK, "Certificates",
            "A file with trusted certificates. None uses the system's.", optional=True),
)  # fmt: skip

SETTINGS: Mapping[str, Setting] = MappingProxyType({setting.key: setting for setting in _ALL})


def setting_for(key: str) -> Setting:
    """Return the setting named `key`; raise InvalidSetting that suggests similar names."""
    if (found := SETTINGS.get(key)) is not None:
        return found
    from difflib import get_close_matches

    near = get_close_matches(key, SETTINGS, n=3)
    hint = f"Did you mean {', '.join(near)}?" if near else "Run 'config list' to see all settings."
    raise InvalidSetting(f"There is no setting '{key}'", hint)

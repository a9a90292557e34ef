"""Embedder suggestion: the multilingual one, where the English one cannot read the library.

A new library has it from the start if the user's system is not in English.
"""

from dataclasses import dataclass

from app.domain.translation import ENGLISH, format_percent, system_language, tr
from app.language.languages import is_english
from app.memory.embedders import BUILT_IN, MULTILINGUAL, EmbedderDirectory
from app.storage.tables.passages import Passages
from app.storage.tables.settings import Settings

_SAMPLE = 400  # exchanges; the share is then within .05 of the truth
_FEWEST_MESSAGES = 20  # of known language, before a share says anything
_FOREIGN_SHARE = 0.2


@dataclass(frozen=True, slots=True)
class EmbedderSuggestion:
    """An embedder that suits the library better, and why."""

    choice: str
    reason: str


class EmbedderSuggestions:
    """Suggests an embedder until the user has dismissed that. Blocking."""

    def __init__(
        self, settings: Settings, embedders: EmbedderDirectory, passages: Passages
    ) -> None:
        self._settings = settings
        self._embedders = embedders
        self._passages = passages

    def read(self) -> EmbedderSuggestion | None:
        """Return what to suggest now; None if the embedder suits or the user dismissed it.

        Judged by a sample of the messages, in some 30 ms.
        """
        is_wanted = self._settings.flag("suggest_embedder")
        if not is_wanted or self._settings.text("embedder") != BUILT_IN:
            return None
        judged = [is_english(text) for text in self._passages.sample_messages(_SAMPLE)]
        known = [each for each in judged if each is not None]
        share = known.count(False) / max(1, len(known))
        if len(known) < _FEWEST_MESSAGES or share < _FOREIGN_SHARE:
            return None
        reason = tr(
            "{share} of your messages are not in English, but search by meaning uses a model that reads only English. Another one, which reads some 100 languages, is built in."
        ).format(share=format_percent(share))
        return EmbedderSuggestion(MULTILINGUAL, reason)

    def accept(self, suggestion: EmbedderSuggestion) -> None:
        """Make the suggested embedder the chosen one; raises StorageError."""
        self._embedders.choose(suggestion.choice)

    def dismiss(self) -> None:
        """Suggest no embedder any more; raises StorageError."""
        self._settings.set("suggest_embedder", value=False)


def choose_first_embedder(settings: Settings) -> None:
    """Choose the embedder of a new library by the language of the user's system."""
    if system_language() != ENGLISH:
        for key in ("embedder", "embedder_before"):
            settings.set(key, MULTILINGUAL)

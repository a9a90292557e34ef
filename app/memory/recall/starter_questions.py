"""Starter questions: a few that imported conversations can answer, made from their titles."""

import re
from collections.abc import Collection, Sequence
from functools import cache

from app.domain.conversations import Conversation, TitleOrigin
from app.domain.ids import ConversationId
from app.domain.text import is_question
from app.domain.translation import language
from app.language.languages import DEFAULT_LANGUAGE, language_of, read_lines
from app.storage.engine.store import Store
from app.storage.tables.conversations import Conversations, ListFilter
from app.storage.tables.passages.recall_reads import RecallReads

_COUNT = 3
_CONSIDERED = 200  # of the conversations that were changed last
_LEAST_CHARS, _MOST_CHARS = 6, 60
_INTERFACE = {"de": "german"}  # the languages of the interface as those of texts are called
_KANA, _HAN = re.compile("[\u3040-\u30ff]"), re.compile("[\u4e00-\u9fff]")


class StarterQuestions:
    """Makes questions from the library. Blocking."""

    def __init__(self, store: Store) -> None:
        self._conversations = Conversations(store)
        self._reads = RecallReads(store)

    def make(self, ids: Collection[ConversationId]) -> Sequence[str]:
        """Return up to three questions about different conversations, in their languages.

        Where a title does not tell its language, that of the interface is taken.
        They are about those with the most turns whose title names a subject; a title that is a
        question is asked as it is.
        """
        listed = (each for each in self._conversations.listed(ListFilter()) if each.id in ids)
        titled = [each for each in listed if _names_subject(each)][:_CONSIDERED]
        talks = self._reads.talks(each.id for each in titled)
        titled.sort(key=lambda each: -talks[each.id].exchange_count)
        best = {each.title.casefold(): each for each in reversed(titled)}
        chosen = [*best.values()][::-1][:_COUNT]
        summaries = [talks[each.id].summary for each in chosen]
        return [_question(each.title, summaries[at], at) for at, each in enumerate(chosen)]


def _names_subject(conversation: Conversation) -> bool:
    is_made = conversation.title_origin is not TitleOrigin.FIRST_WORDS
    title = conversation.title
    has_east_asian = bool(_KANA.search(title) or _HAN.search(title))
    is_fit = _LEAST_CHARS <= len(title) <= _MOST_CHARS or has_east_asian
    return is_made and is_fit and not conversation.private and not conversation.archived


def _question(title: str, summary: str, place: int) -> str:
    if is_question(title):
        return title
    forms = _forms()
    return forms.get(_language(title, summary), forms[DEFAULT_LANGUAGE])[place].format(title)


def _language(title: str, summary: str) -> str:
    for text in (title, summary):
        if _KANA.search(text):
            return "japanese"
        if _HAN.search(text):
            return "chinese"
    return language_of(f"{title}. {summary}", _INTERFACE.get(language(), DEFAULT_LANGUAGE))


@cache
def _forms() -> dict[str, tuple[str, ...]]:
    return dict(read_lines("questions"))

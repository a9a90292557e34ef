"""Whether words are the user's: core memory keeps only what the user has stated.

Text that a tool read, a file holds or recall brought back may carry instructions, and core memory
goes into every prompt; what a question mentions need not be so, and what the assistant wrote proves
nothing either way. So every stretch of a sentence must stand in what the user stated somewhere in
the conversation, or in core memory as it is, nearly in the same words. That "not" is missing is not
seen; the user sees every change.
"""

import re
from collections import deque
from collections.abc import Iterable

from app.chat.tools.stated import SENTENCE_END, stated_in
from app.chat.tools.toolbox import ToolContext
from app.domain.conversations import Message, Role, Text
from app.domain.errors import InvalidInput
from app.domain.text import one_line
from app.index.analyser import slices, surface_of
from app.index.languages import is_stop_word, language_of, language_of_word, stem
from app.storage.exchanges import Exchanges
from app.storage.store import Store

_STRETCH_WORDS = 3
_SAID_SHARE = 0.6  # two of three words, but both of two
_SAID_WITHIN_WORDS = 20
_STEM_CHARS = 4  # German stems keep the ending that tells "wohnt" from "wohne"
_SHOWN_CHARS = 120
_THE_USER = frozenset({"user", "s", "nutzer", "benutzer", "utilisateur", "usuario", "utente"})
_THE_USER_UNSPACED = re.compile("用户|用戶|使用者|ユーザー[はがの]?|사용자[는가의]?")

_Words = frozenset[str]


class SaidByUser:
    """Compares words with what the user stated. Blocking; thread-safe."""

    def __init__(self, store: Store) -> None:
        self._exchanges = Exchanges(store)

    def check(self, text: str, context: ToolContext, standing: str) -> None:
        """Raise InvalidInput if the user has not stated a sentence of `text`.

        Sentences that are in core memory as it is, `standing`, may stay, and be said otherwise.
        """
        language = language_of(text)
        kept = _phrase(standing)
        stretches = {
            clause: _stretches(clause, language)
            for clause in SENTENCE_END.split(text)
            if _phrase(clause) not in kept
        }
        wanted = frozenset(word for each in stretches.values() for few in each for word in few)
        if not wanted:
            return
        messages = self._exchanges.messages_in(context.conversation.id)
        stated = _Places([*_stated(messages), standing], wanted, language)
        for clause, parts in stretches.items():
            if not all(stated.say(few) for few in parts):
                raise InvalidInput(
                    f"The user has not said '{one_line(clause, _SHOWN_CHARS)}' here, or only asked "
                    "or quoted it; nothing was written to core memory",
                    "Use the user's own words, leave this sentence out, or ask the user whether to "
                    "keep it and in which words.",
                )


class _Places:
    """Where the stems of `wanted` words stand in texts, which lie far apart from each other."""

    def __init__(self, texts: Iterable[str], wanted: _Words, language: str) -> None:
        self._places: dict[str, list[int]] = {word: [] for word in wanted}
        stems: dict[str, str] = {}
        place = 0
        for text in texts:
            for word in (word for piece in slices(text) for word in surface_of(piece)):
                if (form := stems.get(word)) is None:
                    form = stems[word] = _stem(word, language)
                if form in self._places:
                    self._places[form].append(place)
                place += 1
            place += _SAID_WITHIN_WORDS

    def say(self, words: _Words) -> bool:
        """Return whether enough of `words` stand near each other."""
        enough = _SAID_SHARE * len(words)
        near: deque[tuple[int, str]] = deque()
        for place, word in sorted((at, each) for each in words for at in self._places[each]):
            near.append((place, word))
            while place - near[0][0] >= _SAID_WITHIN_WORDS:
                near.popleft()
            if len(near) >= enough and len({each for _, each in near}) >= enough:
                return True
        return not words


def _stated(messages: Iterable[Message]) -> list[str]:
    return [
        stated_in(block.text)
        for message in messages
        if message.role is Role.USER
        for block in message.blocks
        if isinstance(block, Text)
    ]


def _stretches(clause: str, language: str) -> frozenset[_Words]:
    """Return each three weighty words in a row, as stems; a shorter clause is one stretch."""
    own = _THE_USER_UNSPACED.sub(" ", clause)
    words = [word for word in surface_of(own) if word not in _THE_USER]
    words = [word for word in words if not is_stop_word(word, language)] or words
    stems = [_stem(word, language) for word in words]
    count = max(1, len(stems) - _STRETCH_WORDS + 1) if stems else 0
    return frozenset(frozenset(stems[at : at + _STRETCH_WORDS]) for at in range(count))


def _stem(word: str, latin: str) -> str:
    form = stem(word, language_of_word(word, latin))
    return form[:_STEM_CHARS] if form.isalpha() else form


def _phrase(text: str) -> str:
    return f" {' '.join(surface_of(text))} "

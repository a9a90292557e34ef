"""The check that text for core memory was stated by the user.

Core memory goes into every prompt, while text from tools, files or recall may carry instructions; a
question need not be true, and the assistant's text proves nothing. So every few words of a sentence
must occur close together in a user's statement in the conversation, or in core memory as it is. A
missing "not" is not detected; the user sees every change.
"""

import re
from collections import deque
from collections.abc import Iterable

from app.chat.tools.stated import SENTENCE_END, stated_in
from app.chat.tools.toolbox import ToolContext
from app.domain.conversations import Message, Role, Text
from app.domain.errors import InvalidInput
from app.domain.text import one_line
from app.language.analyzer import slices, surface_words_of
from app.language.languages import is_stop_word, language_of, language_of_word, stem
from app.storage.engine.store import Store
from app.storage.tables.exchanges import Exchanges

_STRETCH_WORDS = 3
_MATCH_SHARE = 0.6  # two of three words, but both of two
_MATCH_WITHIN_WORDS = 20
_STEM_CHARS = 4  # German stems keep the ending that tells "wohnt" from "wohne"
_SHOWN_CHARS = 120
_THE_USER = frozenset({"user", "s", "nutzer", "benutzer", "utilisateur", "usuario", "utente"})
_THE_USER_UNSPACED = re.compile("用户|用戶|使用者|ユーザー[はがの]?|사용자[는가의]?")

_Words = frozenset[str]


def check_stated(store: Store, text: str, context: ToolContext, current: str) -> None:
    """Raise InvalidInput if the user has not stated a sentence of `text`.

    Sentences of the present core memory, `current`, may be kept and rewritten. Blocking.
    """
    language = language_of(text)
    kept = _phrase(current)
    stretches = {
        clause: _stretches(clause, language)
        for clause in SENTENCE_END.split(text)
        if _phrase(clause) not in kept
    }
    wanted = frozenset(word for each in stretches.values() for few in each for word in few)
    if not wanted:
        return
    messages = Exchanges(store).messages_in(context.conversation.id)
    stated = _Positions([*_stated(messages), current], wanted, language)
    for clause, parts in stretches.items():
        if not all(stated.contain(few) for few in parts):
            raise InvalidInput(
                f"The user has not stated '{one_line(clause, _SHOWN_CHARS)}' here, or only in a "
                "question or quotation; nothing was written to core memory",
                "Use the user's own words, leave this sentence out, or ask the user whether to "
                "keep it and how to phrase it.",
            )


class _Positions:
    """The positions of `wanted` stems in texts; different texts are far apart."""

    def __init__(self, texts: Iterable[str], wanted: _Words, language: str) -> None:
        self._positions: dict[str, list[int]] = {word: [] for word in wanted}
        stems: dict[str, str] = {}
        position = 0
        for text in texts:
            for word in (word for piece in slices(text) for word in surface_words_of(piece)):
                if (form := stems.get(word)) is None:
                    form = stems[word] = _stem(word, language)
                if form in self._positions:
                    self._positions[form].append(position)
                position += 1
            position += _MATCH_WITHIN_WORDS

    def contain(self, words: _Words) -> bool:
        """Return whether enough of `words` are close to each other."""
        enough = _MATCH_SHARE * len(words)
        near: deque[tuple[int, str]] = deque()
        for position, word in sorted((at, each) for each in words for at in self._positions[each]):
            near.append((position, word))
            while position - near[0][0] >= _MATCH_WITHIN_WORDS:
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
    """Return each three content words in a row, as stems; a shorter clause is one stretch."""
    own = _THE_USER_UNSPACED.sub(" ", clause)
    words = [word for word in surface_words_of(own) if word not in _THE_USER]
    words = [word for word in words if not is_stop_word(word, language)] or words
    stems = [_stem(word, language) for word in words]
    count = max(1, len(stems) - _STRETCH_WORDS + 1) if stems else 0
    return frozenset(frozenset(stems[at : at + _STRETCH_WORDS]) for at in range(count))


def _stem(word: str, latin: str) -> str:
    form = stem(word, language_of_word(word, latin))
    return form[:_STEM_CHARS] if form.isalpha() else form


def _phrase(text: str) -> str:
    return f" {' '.join(surface_words_of(text))} "

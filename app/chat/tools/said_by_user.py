"""Whether words are the user's: what only a quotation says must not become core memory.

Text that a tool read, a file holds or recall brought back may carry instructions, and core memory
goes into every prompt. So a sentence any stretch of which stands in such a text of the conversation,
however long ago, and that the user has not typed, is refused. What the assistant wrote proves
nothing either way. A model that says the same in other words is not caught; the user sees every
change.
"""

import re
from collections import deque
from collections.abc import Iterable, Iterator

from app.chat.tools.toolbox import ToolContext
from app.domain.conversations import Attachment, Message, Role, Text, ToolResult
from app.domain.errors import InvalidInput
from app.domain.recalls import PlanPartKind
from app.domain.text import one_line
from app.index.analyser import slices, surface_of
from app.index.languages import is_stop_word, language_of, language_of_word, stem
from app.storage.exchanges import Exchanges
from app.storage.prompts import Prompts
from app.storage.store import Store

_STRETCH_WORDS = 3
_SAID_SHARE = 0.6  # two of three words, but both of two
_SAID_WITHIN_WORDS = 20
_READ_WITHIN_WORDS = 8
_STEM_CHARS = 4  # German stems keep the ending that tells "wohnt" from "wohne"
_SHOWN_CHARS = 120
_QUOTING = (PlanPartKind.FACTS, PlanPartKind.RELATED, PlanPartKind.EARLIER)
_CLAUSE_END = re.compile(r"[.;!?]+(?=\s|$)|[\n。！？；]+")
_THE_USER = frozenset({"user", "s", "nutzer", "benutzer", "utilisateur", "usuario", "utente"})

_Words = frozenset[str]


class SaidByUser:
    """Compares words with what the user said and with what was quoted. Blocking; thread-safe."""

    def __init__(self, store: Store) -> None:
        self._exchanges = Exchanges(store)
        self._prompts = Prompts(store)

    def check(self, text: str, context: ToolContext, standing: str) -> None:
        """Raise InvalidInput if a sentence of `text` was read somewhere and not said by the user.

        Sentences that are in core memory as it is, `standing`, may stay.
        """
        language = language_of(text)
        kept = _phrase(standing)
        stretches = {
            clause: _stretches(clause, language)
            for clause in _CLAUSE_END.split(text)
            if _phrase(clause) not in kept
        }
        wanted = frozenset(word for each in stretches.values() for few in each for word in few)
        if not wanted:
            return
        here = context.conversation.id
        messages = self._exchanges.messages_in(here)
        typed = _Places(_typed(messages), wanted, language)
        quoted = [*_read(messages), *self._prompts.words_in(here, _QUOTING)]
        read = _Places(quoted, wanted, language)
        for clause, parts in stretches.items():
            if any(_is_only_read(few, typed, read) for few in parts):
                raise InvalidInput(
                    f"Only a quotation says '{one_line(clause, _SHOWN_CHARS)}', not the user; "
                    "nothing was written to core memory",
                    "Leave this sentence out, or ask the user whether to keep it and in which words.",
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

    def together(self, words: _Words, within: int) -> _Words:
        """Return the most of `words` that stand within so many words of each other."""
        best: _Words = frozenset()
        near: deque[tuple[int, str]] = deque()
        for place, word in sorted((at, each) for each in words for at in self._places[each]):
            near.append((place, word))
            while place - near[0][0] >= within:
                near.popleft()
            if len(near) > len(best):
                found = frozenset(each for _, each in near)
                best = found if len(found) > len(best) else best
                if len(best) == len(words):
                    break
        return best


def _is_only_read(words: _Words, typed: _Places, read: _Places) -> bool:
    said = typed.together(words, _SAID_WITHIN_WORDS)
    if len(said) >= _SAID_SHARE * len(words):
        return False
    unsaid = words - said if len(words - said) > 1 else words
    return read.together(unsaid, _READ_WITHIN_WORDS) == unsaid


def _typed(messages: Iterable[Message]) -> list[str]:
    return [
        block.text
        for message in messages
        if message.role is Role.USER
        for block in message.blocks
        if isinstance(block, Text)
    ]


def _read(messages: Iterable[Message]) -> Iterator[str]:
    for message in messages:
        for block in message.blocks:
            if isinstance(block, ToolResult | Attachment):
                yield block.text


def _stretches(clause: str, language: str) -> frozenset[_Words]:
    """Return each three weighty words in a row, as stems; a shorter clause is one stretch."""
    words = [word for word in surface_of(clause) if word not in _THE_USER]
    if len(words) > _STRETCH_WORDS:
        words = [word for word in words if not is_stop_word(word, language)] or words
    stems = [_stem(word, language) for word in words]
    count = max(1, len(stems) - _STRETCH_WORDS + 1) if stems else 0
    return frozenset(frozenset(stems[at : at + _STRETCH_WORDS]) for at in range(count))


def _stem(word: str, latin: str) -> str:
    form = stem(word, language_of_word(word, latin))
    return form[:_STEM_CHARS] if form.isalpha() else form


def _phrase(text: str) -> str:
    return f" {' '.join(surface_of(text))} "

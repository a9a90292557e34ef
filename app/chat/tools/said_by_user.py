"""Whether words are the user's: what only a quotation says must not become core memory.

Text that a tool read, a file holds or recall brought back may carry instructions, and core memory
goes into every prompt. So a line that stands in such a text, and that the user has not said, is
refused. A model that says the same in other words is not caught; the user sees every change.
"""

from collections.abc import Iterable

from app.chat.tools.toolbox import ToolContext
from app.domain.conversations import Attachment, Message, Role, Text, ToolResult
from app.domain.errors import InvalidInput
from app.domain.recalls import PlanPartKind
from app.index.analyser import surface_of
from app.storage.exchanges import Exchanges
from app.storage.prompts import Prompts
from app.storage.store import Store

_RUN_WORDS = 3
_MOST_OF_IT = 0.5
_QUOTING = (PlanPartKind.FACTS, PlanPartKind.RELATED, PlanPartKind.EARLIER)

_Run = tuple[str, ...]


class SaidByUser:
    """Compares words with what the user said and with what was quoted. Blocking; thread-safe."""

    def __init__(self, store: Store) -> None:
        self._exchanges = Exchanges(store)
        self._prompts = Prompts(store)

    def check(self, text: str, context: ToolContext) -> None:
        """Raise InvalidInput if most of `text` was read somewhere and not said by the user."""
        runs = _runs(text)
        messages = self._exchanges.messages_in(context.conversation.id)
        if _share(runs, _typed(messages)) >= _MOST_OF_IT:
            return
        if _share(runs, [*_read(messages), *self._recalled(context)]) >= _MOST_OF_IT:
            raise InvalidInput(
                "Core memory takes nothing that only a quotation says",
                "Ask the user whether to keep it, and in which words.",
            )

    def _recalled(self, context: ToolContext) -> Iterable[str]:
        prompt = self._prompts.of(context.exchange_id)
        for part in prompt.parts if prompt is not None else ():
            if part.kind in _QUOTING:
                yield "\n".join(piece.text for piece in part.pieces)


def _typed(messages: Iterable[Message]) -> list[str]:
    return [
        block.text
        for message in messages
        if message.role is Role.USER
        for block in message.blocks
        if isinstance(block, Text)
    ]


def _read(messages: Iterable[Message]) -> list[str]:
    return [
        block.text
        for message in messages
        for block in message.blocks
        if isinstance(block, ToolResult | Attachment)
    ]


def _runs(text: str) -> frozenset[_Run]:
    """Return the runs of three words in a text; a shorter text is one run."""
    words = surface_of(text)
    count = max(1, len(words) - _RUN_WORDS + 1)
    return frozenset(tuple(words[start : start + _RUN_WORDS]) for start in range(count))


def _share(runs: frozenset[_Run], texts: Iterable[str]) -> float:
    """Return which share of `runs` stands in any of the texts."""
    found: set[_Run] = set()
    for text in texts:
        words = surface_of(text)
        for run in runs - found:
            if _stands_in(run, words):
                found.add(run)
    return len(found) / len(runs)


def _stands_in(run: _Run, words: list[str]) -> bool:
    if not run or run[0] not in words:
        return False
    size = len(run)
    return any(
        words[start] == run[0] and tuple(words[start : start + size]) == run
        for start in range(len(words) - size + 1)
    )

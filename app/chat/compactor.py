"""The compactor: it prepares the text that will stand for the oldest turns of a long conversation.

This happens after a turn, never while a message is sent: from 70 % of the ceiling on, for as many
turns as will be left out at 85 %. Messages stay as they are; a `SummaryPut` of the kind "context"
names the last exchange that it covers. `history` uses it once a prompt is full.
"""

import logging
import queue
import threading
from collections.abc import Callable, Sequence

from app.chat.history import CONTEXT, compaction_text, extract, joined, markdown_of, past_position
from app.chat.sent_turns import SentTurns
from app.domain.change_set import ChangeSet
from app.domain.changes import SpendAdded, SummaryPut
from app.domain.conversations import Exchange, ExchangeStatus
from app.domain.errors import KnownError, Repeating
from app.domain.ids import ExchangeId
from app.domain.recall import PlanPartKind, StoredPrompt
from app.domain.text import content_hash
from app.domain.turns import TurnMarkdown
from app.domain.workers import WorkerName
from app.language.extractive import MODEL
from app.language.sentences import shorten_middle
from app.memory.context.plan import (
    FULL_SHARE,
    LEFT_SHARE,
    PREPARED_SHARE,
    KeptTurns,
    compacted,
    compaction_tokens,
    kept_tokens,
    message_tokens,
)
from app.storage.engine.stamps import now
from app.storage.engine.store import Store
from app.storage.tables.conversations import Conversations
from app.storage.tables.exchanges import Exchanges, path_to
from app.storage.tables.prompts import Prompts
from app.storage.tables.settings import Settings
from app.storage.tables.summaries import Summaries
from app.workers.background_model import ModelClient, UnusableAnswer
from app.workers.prompts_and_answers import Quoted, fill_prompt

_log = logging.getLogger(__name__)
_STOP_TIMEOUT_S = 3.0
_FIXED = (
    PlanPartKind.SYSTEM_PROMPT, PlanPartKind.PROFILE, PlanPartKind.CORE_MEMORY,
    PlanPartKind.TOOLS, PlanPartKind.COMPACTION,
)  # fmt: skip
_WORDS_PER_TOKEN = 0.6
_READ_SHARE = 0.5  # of the background model's context
_BYTES_PER_TOKEN = 3  # cautiously: a prompt that is too long is refused
_SIDE_SHARE = 0.4  # of what is read at once, for one side of a turn


class Compactor:
    """Prepares compactions after turns, in a thread of its own.

    `model_for` returns who is asked, of the model to which a prompt was sent and its server's origin,
    which `origin_of` returns: the background model if one is chosen, else that model itself, which has
    read these turns. Sentences are extracted where its answer cannot be used. The next turn tries again
    where it fails, or costs nothing but would delay a message. Private conversations are skipped.
    """

    def __init__(
        self,
        store: Store,
        settings: Settings,
        model_for: Callable[[str, str], ModelClient],
        origin_of: Callable[[str], str],
    ) -> None:
        self._store = store
        self._settings = settings
        self._model_for, self._origin_of = model_for, origin_of
        self._conversations = Conversations(store)
        self._exchanges = Exchanges(store)
        self._prompts = Prompts(store)
        self._summaries = Summaries(store)
        self._turns = SentTurns(store)
        self._changed: queue.SimpleQueue[ExchangeId | None] = queue.SimpleQueue()
        self._expected: dict[ExchangeId, str] = {}  # under way, with the origin of its server
        self._is_stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._unsubscribe: Callable[[], None] = lambda: None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._serve, name="compactor", daemon=True)
        self._thread.start()
        self._unsubscribe = self._store.subscribe(self._on_changed)

    def stop(self) -> None:
        """Stop after the current compaction, at most 3 s; the next turn continues. Blocking."""
        self._unsubscribe()
        self._is_stopping.set()
        self._changed.put(None)
        if self._thread is not None:
            self._thread.join(_STOP_TIMEOUT_S)

    def expect(self, prompt: StoredPrompt) -> None:
        """Check an exchange when it ends, however that is; others, such as imported ones, are not checked.

        Its server is that of its first prompt.
        """
        self._expected.setdefault(prompt.exchange_id, self._origin_of(prompt.model))
        self._changed.put(prompt.exchange_id)  # it may have been stopped already

    def prepare(self, exchange_id: ExchangeId, origin: str) -> bool:
        """Prepare the compaction of an exchange's segment if it is long; return whether it was.

        Blocking. Raises KnownError when it cannot be stored, and where the next turn should try again.
        """
        runs = self._prompts.runs([exchange_id]).get(exchange_id)
        if not runs or self._conversations.get(runs[-1].conversation_id).private:
            return False
        last, sent = self._exchanges.get(exchange_id), runs[-1]
        said = self._exchanges.messages_of(last)
        own = sum(map(message_tokens, said))
        # Without a reply, the model may not have received the prompt.
        if not any(each.model == sent.model and each.created_at >= sent.sent_at for each in said):
            return False
        # Most turns end here: the past turns, which may be thousands, are not read.
        if sum(part.tokens for part in sent.parts) + own <= sent.limit_tokens * PREPARED_SHARE:
            return False
        path = path_to(last, self._exchanges.of(last.conversation_id))
        segment = [each for each in path if each.segment_number == last.segment_number]
        start, shortened = past_position(segment, sent)
        turns = self._turns.of(segment[start:], now())
        sizes = [turn.sizes for turn in turns]
        covered = _to_cover(sizes, KeptTurns(0, shortened - start), sent)
        past = [each.id for each in segment[start:]]
        if not covered or self._summaries.latest(CONTEXT, past):
            return False
        oldest = [markdown_of(turn.stored) for turn in turns[:covered]]
        most = compaction_tokens(self._settings.number("compaction_max_tokens"), sent.limit_tokens)
        asked = self._model_for(sent.model, origin)
        self._write(segment[start + covered - 1], compaction_text(sent), oldest, most, asked)
        return True

    def _write(
        self,
        last: Exchange,
        before: str,
        turns: Sequence[TurnMarkdown],
        most: int,
        asked: ModelClient,
    ) -> None:
        model = MODEL
        spent: tuple[SpendAdded, ...] = ()
        try:
            text, model, spent = self._asked(asked, before, turns, most)
        except (Repeating, UnusableAnswer) as error:  # which cost something and would again
            _log.info("a compaction is extracted without a model: %s", error)
            text = joined(before, extract(turns), most)
        if not text:
            return
        words = "\n".join(f"{turn.asked}\n{turn.answered}" for turn in turns)
        self._store.save(
            SummaryPut(
                CONTEXT, last.id, last.conversation_id, text, model, content_hash(words), now()
            ),
            *spent,
        )

    def _asked(
        self, model: ModelClient, before: str, turns: Sequence[TurnMarkdown], most_tokens: int
    ) -> tuple[str, str, tuple[SpendAdded, ...]]:
        """Return the model's text, its name and the last cost; earlier costs are stored.

        What is too long for one request is read in parts, each with the notes on the parts before.
        """
        yields = model.is_free

        def is_cancelled() -> bool:
            return self._is_stopping.is_set() or (yields and bool(self._expected))

        room_bytes = int(model.context_tokens() * _READ_SHARE) * _BYTES_PER_TOKEN
        spent: tuple[SpendAdded, ...] = ()
        for part in _parts(turns, room_bytes):
            self._store.save(*spent)
            notes = [Quoted("notes on what came before", before)] if before else []
            prompt = fill_prompt(
                "compaction", [*notes, *part], words=str(int(most_tokens * _WORDS_PER_TOKEN))
            )
            purpose = WorkerName.CONVERSATION_SUMMARIZER
            answer = model.ask(prompt, purpose, is_cancelled)
            before, spent = answer.text.strip(), (answer.spent,)
        return before, model.model, spent

    # -- the thread

    def _serve(self) -> None:
        while (exchange_id := self._changed.get()) is not None:
            try:
                expected = [*self._expected]
                found = self._exchanges.by_ids(expected)
                for each in expected:
                    if each not in found:  # it was deleted
                        del self._expected[each]
                if exchange_id in found and found[exchange_id].status is not ExchangeStatus.RUNNING:
                    self.prepare(exchange_id, self._expected.pop(exchange_id))
            except KnownError as error:
                _log.info("a compaction was not prepared: %s", error)
            except Exception:  # noqa: BLE001 - the edge of a thread: the next turn tries again
                _log.exception("a compaction failed unexpectedly")

    def _on_changed(self, changed: ChangeSet) -> None:
        for exchange_id in changed.exchanges:
            if exchange_id in self._expected:
                self._changed.put(exchange_id)


def _to_cover(sizes: Sequence[tuple[int, int]], kept: KeptTurns, sent: StoredPrompt) -> int:
    """Return how many turns a full prompt leaves out; 0 while it is not nearly full."""
    around = sum(part.tokens for part in sent.parts if part.kind in _FIXED)
    total = around + kept_tokens(sizes, kept)
    if total <= sent.limit_tokens * PREPARED_SHARE:
        return 0
    goal = total - sent.limit_tokens * (FULL_SHARE - LEFT_SHARE)
    return compacted(sizes, kept, around, goal, sent.limit_tokens).dropped


def _parts(turns: Sequence[TurnMarkdown], room_bytes: int) -> Sequence[Sequence[Quoted]]:
    """Return turns as quotations, as many together as fit."""
    parts: list[list[Quoted]] = [[]]
    used = 0
    for turn in turns:
        files = [("attached file", f"{name}\n{text}") for name, text in turn.files]
        user = ", ".join(filter(None, ("user", turn.day)))
        for label, text in ((user, turn.asked), *files, ("assistant", turn.answered)):
            words = shorten_middle(text, int(room_bytes * _SIDE_SHARE))
            size = len(words.encode())
            if parts[-1] and used + size > room_bytes:
                parts.append([])
                used = 0
            if words.strip():
                parts[-1].append(Quoted(label, words))
                used += size
    return parts

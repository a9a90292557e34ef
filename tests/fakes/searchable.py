"""Libraries to search and to recall from, with a search by meaning that needs no model."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from app.domain.changes import ConversationEdited, ExchangePut, MessagesAdded, PassagesPut
from app.domain.conversations import Exchange, Message, Role, Text
from app.domain.ids import ConversationId, new_uid
from app.domain.passages import PassageKind
from app.domain.recall import RecallSettings, RetrievalResult, SegmentContext
from app.domain.records.facts import BY_USER, Fact, FactCategory
from app.domain.results import SearchResponse, SearchResult
from app.domain.turns import turn_passage
from app.index.relevance import Background
from app.index.text_index import TantivyTextIndex
from app.index.text_sync import TextIndexSync
from app.index.vector_index import ExactVectorIndex
from app.memory.recall.service import RecallService
from app.memory.search.query_vectors import QueryVector
from app.memory.search.service import SearchService
from app.storage.engine.store import Store
from app.storage.tables.facts import fact_changes
from app.storage.tables.passages.queries import Passages
from app.storage.tables.prompts import Feedback
from app.storage.tables.settings import Settings
from tests.fakes.embedders import BagOfWords
from tests.fakes.stored import AT, ConversationRecord, add_all, add_conversation, new_conversation
from tests.fakes.summarizers import summarized

FLOOR = 0.7  # the default of rag_min_similarity
CATS = frozenset({"feline", "kittens", "cats"})
CAT = "Which vet looks after my cat Minka"
VET = (CAT, "Doctor Arden in Mill Lane looks after Minka; the next vaccination is in May.")
OTHERS = (
    "How long does sourdough proof in a cold kitchen",
    "Which bolt fits the saddle of a touring bicycle", "Explain how tides follow the moon",
    "Write a limerick on a lighthouse keeper", "What does a mortgage broker charge",
    "How do I prune roses after winter", "Compare oil paint with acrylic for portraits",
    "Which trains cross the Alps at night", "How do bees find their way home",
    "What should I pack for a week of sailing",
)  # fmt: skip


class SynonymSearch:
    """Search by meaning for a store: words for cats mean the same, other words only themselves.

    Attributes:
        asked: The questions, in order.
        problem: The problem that it reports.
        is_there: Whether it answers.
        lacks: The passages without a vector.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._embedder = BagOfWords(dimension=256)
        self.asked: list[str] = []
        self.problem = ""
        self.is_there = True
        self.lacks: set[int] = set()
        self._cached: tuple[object, ExactVectorIndex] | None = None

    def query_vector(self, question: str) -> QueryVector | None:
        self.asked.append(question)
        if not self.is_there:
            return None
        vector = self._embedder.embed([_meaning(question)])[0]
        return QueryVector(
            vector, self._index(), Background(0.1, 0.1), np.eye(1, 256, dtype=np.float32)[0], 0.0
        )

    def similarities(self, question: str, texts: Sequence[str]) -> Sequence[float]:
        if not texts or not self.is_there:
            return ()
        vectors = self._embedder.embed([_meaning(each) for each in (question, *texts)])
        cosines: list[float] = (vectors[1:] @ vectors[0]).tolist()
        return cosines

    def _index(self) -> ExactVectorIndex:
        """Return the vectors of the current passages."""
        position = self._store.read(lambda c: c.execute("SELECT position FROM state").fetchone())
        state = (position, frozenset(self.lacks))
        if self._cached is None or self._cached[0] != state:
            index = ExactVectorIndex(self._embedder.space.dimension)
            for text in Passages(self._store).texts(set(range(1, 200)) - self.lacks):
                texts = [_meaning(part.embedded) for part in text.parts]
                ids = np.array([part.id for part in text.parts], np.int64)
                index.put(ids, self._embedder.embed(texts))
            self._cached = (state, index)
        return self._cached[1]


def _meaning(text: str) -> str:
    words = (word.strip(".,?!") for word in text.casefold().split())
    return " ".join("cat" if word in CATS else word for word in words)


class Library:
    """A store with its text index, searched by words (`service`) or also by meaning (`with_meaning`)."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.index = TantivyTextIndex(store.paths.index / "text", store.generation)
        self.sync = TextIndexSync(store, self.index)
        self.vector_search = SynonymSearch(store)
        self.settings = Settings(store)
        self.service = self._search_service(None)
        self.with_meaning = self._search_service(self.vector_search)

    def _search_service(self, meaning: SynonymSearch | None) -> SearchService:
        return SearchService(self.store, self.settings, self.index, self.sync, meaning)  # type: ignore[arg-type]

    def search(self, query: str, limit: int = 20, *kinds: PassageKind) -> tuple[SearchResult, ...]:
        self.sync.catch_up()
        return self.service.search(query, limit, kinds or None).results

    def titles(self, query: str) -> list[str]:
        return [each.conversation_title for each in self.search(query)]

    def by_meaning(self, query: str) -> SearchResponse:
        self.sync.catch_up()
        return self.with_meaning.search(query)

    def edit(self, whole: ConversationRecord, **fields: object) -> None:
        self.store.save(ConversationEdited(whole.conversation.id, **fields))  # type: ignore[arg-type]

    def answer_again(self, whole: ConversationRecord, text: str) -> Exchange:
        """Add another answer to the last question of a conversation, in a branch of its own."""
        last = whole.exchanges[-1]
        question, _ = whole.messages[-2:]
        answer = Message(
            self.store.ids.message(), new_uid(), whole.conversation.id, question.id,
            Role.ASSISTANT, (Text(text),), AT, "openai:m",
        )  # fmt: skip
        again = replace(last, id=self.store.ids.exchange(), message_ids=(question.id, answer.id))
        passage = turn_passage(self.store.ids.passage(), again, (question, answer))
        assert passage is not None
        self.store.save(MessagesAdded((answer,)), ExchangePut(again), PassagesPut((passage,)))
        return again

    def summarize(
        self, whole: ConversationRecord, text: str, *, conversation: bool = False
    ) -> None:
        """Store a summary of the first turn, or of the conversation."""
        summarized(self.store, whole, text, conversation=conversation)

    def fact(self, text: str, whole: ConversationRecord | None = None, **fields: object) -> Fact:
        """Store a fact, of the first message of a conversation if one is given."""
        source = (None, None, None)
        if whole is not None:
            exchange = whole.exchanges[0]
            source = (whole.conversation.id, exchange.id, exchange.message_ids[0])  # type: ignore[assignment]
        made = Fact(
            self.store.ids.passage(), new_uid(), text, FactCategory.OTHER, "", *source, AT,
            BY_USER, AT,
        )  # fmt: skip
        made = replace(made, **fields)  # type: ignore[arg-type]
        self.store.save(*fact_changes(made))
        return made


class RecallLibrary(Library):
    """A library with conversations about a cat and ten other subjects, and recall from it."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.feedback = Feedback(store)
        self.about_cat = add_conversation(store, VET, title="Minka")
        add_all(store, (new_conversation(store, each, title=each.split()[-1]) for each in OTHERS))
        self.recall_by_words = RecallService(store, self.settings, self.service)
        self.recall_service = RecallService(store, self.settings, self.with_meaning)

    def recall(
        self,
        question: str,
        conversation_id: ConversationId | None = None,
        segment: SegmentContext | None = None,
        **options: object,
    ) -> RetrievalResult:
        self.sync.catch_up()
        return self.recall_service.retrieve(
            question, conversation_id, segment or SegmentContext(), RecallSettings(**options)  # type: ignore[arg-type]
        )  # fmt: skip

    def recalled_titles(self, question: str) -> list[str]:
        """Return the conversations that a prompt would get."""
        found = self.recall(question).conversations
        return [each.title for each in found if each.match.relevance >= FLOOR]

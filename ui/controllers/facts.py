"""The window of facts at work: its lists come from the pool, its wishes go there."""

from collections.abc import Callable, Sequence

from PySide6.QtCore import QObject

from app.bootstrap import Services
from app.domain.errors import InvalidInput, KnownError
from app.domain.events import Changed
from app.domain.facts import FactCategory
from app.domain.ids import ConversationId, ExchangeId, MessageId
from app.storage.facts import FactFilter, KnownFact
from ui.bridge import Bridge
from ui.controllers.asking import ask_to_forget
from ui.errors import words_for
from ui.theme import Appearance
from ui.views.facts_dialog import FactQuestion, FactsDialog
from ui.views.main_window import MainWindow

_MOST = 5_000
_MOST_RANKED = 50

OpenTurn = Callable[[ConversationId, ExchangeId | None, MessageId | None], None]


class FactsController(QObject):
    """Opens the window of facts, which stays as it was when it is opened again."""

    def __init__(
        self,
        services: Services,
        bridge: Bridge,
        window: MainWindow,
        appearance: Appearance,
        open_turn: OpenTurn,
    ) -> None:
        super().__init__(window)
        self._services = services
        self._bridge = bridge
        self._window = window
        self._appearance = appearance
        self._open_turn = open_turn
        self._dialog: FactsDialog | None = None
        bridge.changed.connect(self._on_bridge_changed)
        window.actions_by_name["facts"].triggered.connect(self._on_triggered)

    def open(self, fact_id: int | None = None) -> None:
        """Show the window, at a fact if one is named."""
        dialog = self._dialog or self._made()
        if fact_id is not None:
            dialog.want(fact_id)
        dialog.ask()
        dialog.show()
        dialog.raise_()
        dialog.activateWindow()
        dialog.box.setFocus()

    def _on_triggered(self) -> None:
        self.open()

    def _made(self) -> FactsDialog:
        self._dialog = dialog = FactsDialog(self._appearance.theme, self._window)
        self._appearance.theme_changed.connect(dialog.set_theme)
        book, pane = self._services.fact_book, dialog.pane
        dialog.asked.connect(self._on_asked)
        dialog.chosen.connect(self._show)
        dialog.add_requested.connect(self._on_add_requested)
        pane.save_requested.connect(
            lambda each, text, category: self._do(each, lambda: book.edit(each, text, category))
        )
        pane.pin_requested.connect(
            lambda each, pinned: self._do(each, lambda: book.pin(each, pinned))
        )
        pane.restore_requested.connect(
            lambda each, made_at: self._do(each, lambda: book.restore(each, made_at))
        )
        pane.reinstate_requested.connect(lambda each: self._do(each, lambda: book.reinstate(each)))
        pane.source_requested.connect(self._on_source_requested)
        pane.forget_requested.connect(self._ask_forget)
        return dialog

    # -- listing

    def _on_asked(self, question: FactQuestion) -> None:
        self._bridge.start("facts", self._list(question))

    async def _list(self, question: FactQuestion) -> None:
        facts, total = await self._bridge.run(lambda: self._found(question))
        if self._dialog is not None:
            self._dialog.show_facts(facts, total)

    def _found(self, question: FactQuestion) -> tuple[Sequence[KnownFact], int]:
        """Return the facts that answer, and how many there are in all. On the pool."""
        which = FactFilter(question.text, question.category, ended=question.ended, limit=_MOST)
        if question.text and not question.ended:
            try:
                found = self._services.fact_book.found(
                    question.text, question.category, _MOST_RANKED
                )
                if found.facts:
                    return found.facts, found.total
            except InvalidInput:
                pass  # what the search language cannot take, words may find
        return self._services.facts.listed(which), self._services.facts.count(which)

    def _show(self, fact_id: int, *, anew: bool = False) -> None:
        self._bridge.start("fact", self._shown(fact_id, anew=anew))

    async def _shown(self, fact_id: int, *, anew: bool) -> None:
        facts = self._services.facts
        known, versions = await self._bridge.run(
            lambda: (facts.by_ids([fact_id]), facts.versions(fact_id))
        )
        if self._dialog is not None:
            for each in known.values():
                self._dialog.pane.show_fact(each, versions, anew=anew)

    def _on_bridge_changed(self, changed: Changed) -> None:
        dialog = self._dialog
        if dialog is None or not dialog.isVisible():
            return
        if changed.learned or changed.conversations:
            dialog.ask()
            if (fact_id := dialog.pane.fact_id) is not None:
                self._show(fact_id)

    # -- deeds

    def _on_add_requested(self, words: str) -> None:
        self._bridge.carry_out(self._added(words))

    async def _added(self, words: str) -> None:
        category = (self._dialog and self._dialog.question.category) or FactCategory.OTHER
        try:
            fact = await self._bridge.write(lambda: self._services.fact_book.add(words, category))
        except KnownError as error:
            self._tell(error)
            return
        if self._dialog is not None:
            self._dialog.clear_new()
            self._dialog.want(fact.id)
            self._dialog.ask()

    def _do(self, fact_id: int, deed: Callable[[], object]) -> None:
        self._bridge.carry_out(self._done(fact_id, deed))

    async def _done(self, fact_id: int, deed: Callable[[], object]) -> None:
        try:
            await self._bridge.write(deed)
        except KnownError as error:
            self._tell(error)
        else:
            self._show(fact_id, anew=True)

    def _ask_forget(self, known: KnownFact) -> None:
        ask_to_forget(
            self._dialog or self._window,
            f"\u201c{known.fact.text}\u201d",
            "The fact is erased in all its versions, from the database, the journal and every "
            "backup, and is not learned again. What was said in the conversation stays. This "
            "cannot be undone.",
            lambda: self._bridge.carry_out(self._forgotten(known.fact.id)),
        )

    async def _forgotten(self, fact_id: int) -> None:
        try:
            left = await self._bridge.write(lambda: self._services.fact_book.forget(fact_id))
        except KnownError as error:
            self._tell(error)
            return
        self._services.index_sync.catch_up_soon()
        self._window.chat.banner.tell(" ".join(("The fact is forgotten.", *left)), brief=False)

    def _on_source_requested(self, known: KnownFact) -> None:
        fact = known.fact
        if fact.conversation_id is not None and self._dialog is not None:
            self._dialog.hide()
            self._open_turn(fact.conversation_id, fact.exchange_id, fact.message_id)

    def _tell(self, error: KnownError) -> None:
        if self._dialog is not None:
            self._dialog.show_error(*words_for(error))

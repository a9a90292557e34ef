"""The pages of facts and of summaries: search, add, edit, restore and delete them."""

from collections.abc import Callable, Sequence
from functools import partial

from app.chat.library import Library
from app.domain.errors import InvalidInput, KnownError
from app.domain.ids import ConversationId
from app.domain.records.facts import Fact, FactCategory
from app.domain.text import one_line
from app.domain.translation import format_turn, quoted, tr
from app.memory.facts import FactService
from app.memory.summaries import SummaryService, SummaryTarget
from app.storage.tables.facts import FactFilter, Facts, KnownFact
from app.storage.tables.passages.queries import Passages
from app.storage.tables.summaries import Summaries
from ui.presenters.conversation.open_conversation import ConversationPresenter
from ui.presenters.presenter import OpenPage, Presenter
from ui.views.dialogs.confirm import confirm_deletion, confirm_unsaved
from ui.views.memory.facts_view import FactQuery, FactsView
from ui.views.memory.summaries_pane import SummariesPane, SummarizedText
from ui.widgets.banner import Banner

_LISTED_MAX = 5_000
_RANKED_MAX = 50
_QUESTION_CHARS = 80


class FactsPresenter(Presenter):
    """Shows facts while they are visible.

    `open_page` shows a page of the memory pane; `on_deleted` is called after a fact was deleted.
    """

    _facts: Facts
    _service: FactService
    _view: FactsView
    _messages: Banner
    _conversation: ConversationPresenter
    _open_page: OpenPage
    _on_deleted: Callable[[], object]

    def _set_up(self) -> None:
        self._bridge.subscribe(self.refresh, "memory", "conversations", while_shown=self._view)
        self._conversation.opened.connect(self.refresh)
        service, view, pane = self._service, self._view, self._view.pane
        view.list_requested.connect(self._list)
        view.selected.connect(self._show)
        view.add_requested.connect(self._add)
        view.leave_requested.connect(self.ask_before_leaving)
        for requested, change in (
            (pane.save_requested, service.edit),
            (pane.pin_requested, service.pin),
            (pane.restore_requested, service.restore),
            (pane.reinstate_requested, service.reinstate),
        ):
            requested.connect(partial(self._change, change))
        pane.source_requested.connect(self._on_source_requested)
        pane.forget_requested.connect(self._on_forget_requested)

    def open(self, fact_id: int | None = None) -> None:
        """Show the page, at a fact if one is given."""
        if fact_id is not None:
            self._view.select_when_listed(fact_id)
        self._open_page("facts")
        self._view.request_list()
        self._view.setFocus()

    def refresh(self, *_: object) -> None:
        """Read what is shown again, if it is visible."""
        if self._view.isVisible():
            self._view.request_list()
            if (fact_id := self._view.pane.fact_id) is not None:
                self._show(fact_id)

    def ask_before_leaving(self, leave: Callable[[], object]) -> None:
        """Call `leave`, after asking about a fact that is edited and not saved."""
        pane = self._view.pane
        if not pane.is_edited:
            leave()
            return
        self._open_page("facts")

        def save() -> None:
            assert pane.fact_id is not None
            edit = (pane.fact_id, pane.text.toPlainText(), pane.chosen_category)
            self._change(self._service.edit, *edit, then=leave)

        confirm_unsaved(self._view, tr("this fact"), save, pane.undo, leave)

    # -- reading

    def _list(self, query: FactQuery) -> None:
        self._bridge.load(
            "facts",
            partial(self._find, query, self._conversation.conversation_id),
            lambda found: self._view.show_facts(*found),
            self._show_error,
        )

    def _find(
        self, query: FactQuery, opened: ConversationId | None
    ) -> tuple[Sequence[KnownFact], int]:
        """Return the facts that match, and how many there are in all; blocking."""
        if query.here and opened is None:
            return (), 0
        only = opened if query.here else None
        which = FactFilter(query.text, query.category, only, ended=query.ended, limit=_LISTED_MAX)
        if query.text and not query.ended and not query.here:
            try:
                found = self._service.found(query.text, query.category, _RANKED_MAX)
                if found.facts:
                    return found.facts, found.total
            except InvalidInput:
                pass  # not a valid search query: find its words
        return self._facts.listed(which), self._facts.count(which)

    def _show(self, fact_id: int) -> None:
        self._bridge.start("fact", self._read(fact_id), self._show_error)

    async def _read(self, fact_id: int, *, replaces_edit: bool = False) -> None:
        known, versions = await self._bridge.run(
            lambda: (self._facts.by_ids([fact_id]), self._facts.versions(fact_id))
        )
        for each in known.values():
            self._view.pane.show_fact(each, versions, replaces_edit=replaces_edit)

    # -- changing

    def _add(self, text: str) -> None:
        view, category = self._view, self._view.query.category or FactCategory.OTHER

        def show(fact: Fact) -> None:
            view.new.clear()
            view.here.setChecked(False)  # it is from no conversation
            view.select_when_listed(fact.id)
            view.request_list()

        self._bridge.save(lambda: self._service.add(text, category), show, self._show_error)

    def _change(
        self,
        change: Callable[..., object],
        fact_id: int,
        *given: object,
        then: Callable[[], object] = lambda: None,
    ) -> None:
        """Change a fact by calling `change` with its id and what is `given`, and show it."""

        async def run() -> None:
            await self._bridge.write(lambda: change(fact_id, *given))
            await self._read(fact_id, replaces_edit=True)
            then()

        self._bridge.submit(run(), self._show_error)

    def _on_forget_requested(self, known: KnownFact) -> None:
        def report(remains: Sequence[str]) -> None:
            self._on_deleted()
            text = " ".join((tr("The fact was forgotten."), *remains))
            self._messages.show_message(text, brief=False)

        confirm_deletion(
            self._view,
            quoted(known.fact.text),
            tr(
                "All versions of the fact go, and it will not be extracted again. The conversation it comes "
                "from stays."
            ),
            lambda: self._bridge.save(
                lambda: self._service.forget(known.fact.id), report, self._show_error
            ),
        )

    def _on_source_requested(self, known: KnownFact) -> None:
        fact = known.fact
        if fact.conversation_id is not None:
            self._conversation.open(fact.conversation_id, fact.exchange_id, fact.message_id)

    def _show_error(self, error: KnownError) -> None:
        if self._view.isVisible():
            self._view.show_error(error)
        else:
            self._messages.show_error(error)


class SummariesPresenter(Presenter):
    """Shows summaries while their page is visible; an edit stays until it is saved or undone.

    `open_page` shows a page of the memory pane.
    """

    _library: Library
    _questions: Passages
    _summaries: Summaries
    _service: SummaryService
    _pane: SummariesPane
    _messages: Banner
    _conversation: ConversationPresenter
    _open_page: OpenPage

    def _set_up(self) -> None:
        pane, service = self._pane, self._service
        pane.shown.connect(self.refresh)
        pane.source_chosen.connect(lambda source: self._bridge.start("summary", self._show(source)))
        pane.save_requested.connect(partial(self._change, service.write))
        pane.restore_requested.connect(partial(self._change, service.restore, replaces_edit=True))
        pane.leave_requested.connect(self.ask_before_leaving)
        self._conversation.opened.connect(self.refresh)
        self._bridge.subscribe(self.refresh, "passages", "messages_in", while_shown=pane)

    def refresh(self, *_: object) -> None:
        """Show the summaries of the open conversation, unless one is being edited."""
        pane, view = self._pane, self._conversation.view
        if not pane.isVisible() or pane.is_edited:
            return
        if view is None or view.conversation.private or view.conversation.deleted_at:
            pane.show_nothing(
                tr(
                    "The summaries of the open conversation are shown here, unless it is private or in "
                    "the trash."
                )
            )
            return
        of, title = view.conversation.id, view.conversation.title
        self._bridge.load(
            "summaries",
            lambda: self._sources(of),
            partial(self._show_sources, title),
            pane.show_error,
        )

    def ask_before_leaving(self, leave: Callable[[], object]) -> None:
        """Call `leave`, after asking about a summary that is edited and not saved."""
        pane, source = self._pane, self._pane.source
        if source is None or not pane.is_edited:
            leave()
            return
        self._open_page("summaries")

        def save() -> None:
            self._change(self._service.write, source, pane.text.toPlainText(), then=leave)

        confirm_unsaved(pane, tr("this summary"), save, pane.undo, leave)

    def _sources(self, conversation_id: ConversationId) -> Sequence[SummarizedText]:
        """Return the conversation and the turns of its path; blocking."""
        path = self._library.open(conversation_id).path
        questions = self._questions.questions(each.id for each in path)
        whole = SummarizedText(
            SummaryTarget.CONVERSATION, conversation_id, tr("The whole conversation")
        )
        turns = (
            SummarizedText(
                SummaryTarget.EXCHANGE,
                each.id,
                f"{format_turn(each.turn_number).capitalize()}: {one_line(questions.get(each.id, ''), _QUESTION_CHARS)}",
            )
            for each in path
        )
        return (whole, *turns)

    def _show_sources(self, title: str, sources: Sequence[SummarizedText]) -> None:
        if not self._pane.is_edited:  # typed while they were read
            self._pane.show_sources(title, sources)

    async def _show(self, source: SummarizedText, *, replaces_edit: bool = False) -> None:
        versions = await self._bridge.run(
            lambda: self._summaries.versions(source.of, source.source_id)
        )
        if self._pane.source == source:
            self._pane.show_versions(versions, replaces_edit=replaces_edit)

    def _change(
        self,
        change: Callable[..., object],
        source: SummarizedText,
        value: object,
        *,
        replaces_edit: bool = False,
        then: Callable[[], object] = lambda: None,
    ) -> None:
        """Change a summary; an error is shown where the user is by then."""

        async def run() -> None:
            await self._bridge.write(lambda: change(source.of, source.source_id, value))
            await self._show(source, replaces_edit=replaces_edit)
            then()
            self.refresh()

        def on_error(error: KnownError) -> None:
            if self._pane.isVisible() and self._pane.source == source:
                self._pane.show_error(error)
            else:
                self._messages.show_error(error)

        self._bridge.submit(run(), on_error)

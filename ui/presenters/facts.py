"""The facts dialog: search, add, edit, pin, restore and delete facts."""

from collections.abc import Callable, Sequence
from functools import partial

from app.domain.changes import ChangeSet
from app.domain.errors import InvalidInput, KnownError
from app.domain.facts import Fact, FactCategory
from app.memory.facts import FactService
from app.storage.tables.facts import FactFilter, Facts, KnownFact
from ui.presenters.presenter import OpenTurn, Presenter
from ui.theme import Appearance
from ui.views.dialogs.confirm import confirm_deletion, confirm_unsaved
from ui.views.dialogs.facts_dialog import FactQuery, FactsDialog
from ui.widgets.banner import Banner

_LISTED_MAX = 5_000
_RANKED_MAX = 50


class FactsPresenter(Presenter):
    """Opens the dialog, which keeps its state while it is closed.

    `open_turn` shows the turn of a fact; `on_deleted` is called after a fact was deleted.
    """

    _facts: Facts
    _service: FactService
    _messages: Banner
    _appearance: Appearance
    _open_turn: OpenTurn
    _on_deleted: Callable[[], object]

    def __post_init__(self) -> None:
        super().__post_init__()
        self.dialog: FactsDialog | None = None
        self._bridge.subscribe(self._on_changed, "memory", "conversations")

    def open(self, fact_id: int | None = None) -> FactsDialog:
        """Show the dialog, at a fact if one is given; return it."""
        dialog = self.dialog or self._make_dialog()
        if fact_id is not None:
            dialog.select_when_listed(fact_id)
        dialog.request_list()
        dialog.show()
        dialog.raise_()
        dialog.activateWindow()
        dialog.box.setFocus()
        return dialog

    def ask_before_leaving(self, leave: Callable[[], object]) -> None:
        """Call `leave`, after asking about a fact that is edited and not saved."""
        dialog = self.dialog
        if dialog is None or not dialog.pane.is_edited:
            leave()
            return
        dialog.show()
        pane = dialog.pane

        def save() -> None:
            assert pane.fact_id is not None
            edit = (pane.fact_id, pane.text.toPlainText(), pane.chosen_category)
            self._change(self._service.edit, *edit, then=leave)

        confirm_unsaved(dialog, "this fact", save, pane.undo, leave)

    def _make_dialog(self) -> FactsDialog:
        self.dialog = dialog = FactsDialog(self._appearance.theme, self._messages.window())
        self._appearance.theme_changed.connect(dialog.set_theme)
        service, pane = self._service, dialog.pane
        dialog.list_requested.connect(self._list)
        dialog.selected.connect(self._show)
        dialog.add_requested.connect(self._add)
        dialog.leave_requested.connect(self.ask_before_leaving)
        for requested, change in (
            (pane.save_requested, service.edit),
            (pane.pin_requested, service.pin),
            (pane.restore_requested, service.restore),
            (pane.reinstate_requested, service.reinstate),
        ):
            requested.connect(partial(self._change, change))
        pane.source_requested.connect(self._on_source_requested)
        pane.forget_requested.connect(self._on_forget_requested)
        return dialog

    # -- reading

    def _list(self, query: FactQuery) -> None:
        def show(found: tuple[Sequence[KnownFact], int]) -> None:
            if self.dialog is not None:
                self.dialog.show_facts(*found)

        self._bridge.load("facts", lambda: self._find(query), show, self._show_error)

    def _find(self, query: FactQuery) -> tuple[Sequence[KnownFact], int]:
        """Return the facts that match, and how many there are in all; blocking."""
        which = FactFilter(query.text, query.category, ended=query.ended, limit=_LISTED_MAX)
        if query.text and not query.ended:
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
        if self.dialog is not None:
            for each in known.values():
                self.dialog.pane.show_fact(each, versions, replaces_edit=replaces_edit)

    def _on_changed(self, _changed: ChangeSet) -> None:
        dialog = self.dialog
        if dialog is None or not dialog.isVisible():
            return
        dialog.request_list()
        if (fact_id := dialog.pane.fact_id) is not None:
            self._show(fact_id)

    # -- changing

    def _add(self, text: str) -> None:
        assert self.dialog is not None
        dialog, category = self.dialog, self.dialog.query.category or FactCategory.OTHER

        def show(fact: Fact) -> None:
            dialog.new.clear()
            dialog.select_when_listed(fact.id)
            dialog.request_list()

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
            text = " ".join(("The fact was forgotten.", *remains))
            self._messages.show_message(text, brief=False)

        confirm_deletion(
            self.dialog or self._messages.window(),
            f"\u201c{known.fact.text}\u201d",
            "All versions of the fact are deleted from the database, the journal and every "
            "backup, and it will not be extracted again. The conversation it comes from stays. "
            "This cannot be undone.",
            lambda: self._bridge.save(
                lambda: self._service.forget(known.fact.id), report, self._show_error
            ),
        )

    def _on_source_requested(self, known: KnownFact) -> None:
        fact = known.fact
        if fact.conversation_id is not None and self.dialog is not None:
            self.dialog.hide()
            self._open_turn(fact.conversation_id, fact.exchange_id, fact.message_id)

    def _show_error(self, error: KnownError) -> None:
        if self.dialog is not None and self.dialog.isVisible():
            self.dialog.show_error(error)
        else:
            self._messages.show_error(error)

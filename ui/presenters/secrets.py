"""Keys and passwords: where they stand, and forgetting a value wherever it is stored, after a question."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence

from app.domain.translation import tr
from app.memory.secrets import SecretPlace, ValueService, places_text
from ui.presenters.conversation import ConversationPresenter
from ui.presenters.presenter import Presenter
from ui.views.dialogs.confirm import confirm_removal, deletion_details
from ui.views.dialogs.secrets_dialog import SecretsDialog
from ui.widgets.banner import Banner

_Found = tuple[Sequence[str], Mapping[str, int]]


class SecretsPresenter(Presenter):
    """Shows the dialog. `find` yields places until its argument says to stop; it blocks."""

    _find: Callable[[Callable[[], bool]], Iterator[SecretPlace]]
    _values: ValueService
    _messages: Banner
    _conversation: ConversationPresenter

    def open(self) -> SecretsDialog:
        """Show the dialog; return it."""
        dialog, closed = SecretsDialog(self._messages.window()), threading.Event()
        dialog.open_requested.connect(lambda place: self._show(place, dialog))
        dialog.forget_requested.connect(
            lambda place: self._ask(
                lambda: self._values.in_messages([place.message_id]), dialog, closed
            )
        )
        dialog.forget_text_requested.connect(
            lambda text: self._ask(lambda: (text,), dialog, closed)
        )
        dialog.finished.connect(lambda _: closed.set())
        self._load(dialog, closed)
        return self._open_dialog(dialog)

    def _load(self, dialog: SecretsDialog, closed: threading.Event) -> None:
        dialog.begin()
        self._bridge.load(
            "secrets",
            lambda: list(self._find(closed.is_set)),
            dialog.show_places,
            dialog.show_error,
        )

    def _show(self, place: SecretPlace, dialog: SecretsDialog) -> None:
        dialog.accept()
        self._conversation.open(place.conversation_id, place.exchange_id, place.message_id)

    def _ask(
        self, values: Callable[[], Sequence[str]], dialog: SecretsDialog, closed: threading.Event
    ) -> None:
        """Ask, with the number of records, then forget values."""

        def count() -> _Found:
            found = values()
            return found, self._values.places(found)

        def show(remains: Sequence[str]) -> None:
            self._messages.show_message(" ".join((tr("It was forgotten."), *remains)), brief=False)
            if (here := self._conversation.conversation_id) is not None:
                self._conversation.open(here)
            if not closed.is_set():
                self._load(dialog, closed)

        def ask(found: _Found) -> None:
            values, counts = found
            if not counts:
                text = tr("Nothing contains this text. Capital letters and spaces count.")
                dialog.status.setText(text)
                return
            details = tr(
                "Messages, titles and instructions keep the rest of their text; facts, summaries and "
                "stored prompts with it are deleted. Attached files are not searched."
            )
            forget, title = self._values.forget, tr("Forget")
            confirm_removal(
                dialog,
                title,
                tr("Forget it in {places}?").format(places=places_text(counts)),
                deletion_details(details),
                lambda: self._bridge.save(lambda: forget(values), show, dialog.show_error),
                title,
            )

        self._bridge.load("value places", count, ask, dialog.show_error)

"""The cost of a message before it is sent, shown at the composer after a pause in typing."""

from collections.abc import Callable

from PySide6.QtCore import QTimer

from app.chat.message_cost import SHOWN_FROM_USD, MessageCosts
from app.domain.changes import ChangeSet
from app.domain.conversations import Text
from app.domain.formatting import money
from app.domain.translation import tr
from ui.presenters.conversation import ConversationPresenter
from ui.presenters.presenter import Presenter
from ui.widgets.composer import Composer

_PAUSE_MS = 700
_NAME = "message cost"


class MessageCostPresenter(Presenter):
    """Shows what sending the typed text costs, from one cent on.

    `model_for_new` and `preset_for_new` return those of a conversation that begins.
    """

    _costs: MessageCosts
    _composer: Composer
    _conversation: ConversationPresenter
    _model_for_new: Callable[[], str | None]
    _preset_for_new: Callable[[], str | None]

    def _set_up(self) -> None:
        self._pause = QTimer(self, singleShot=True, interval=_PAUSE_MS)
        self._pause.timeout.connect(self._estimate)
        self._composer.box.textChanged.connect(self._on_draft_changed)
        self._composer.files.changed.connect(self._on_draft_changed)
        self._conversation.opened.connect(self.refresh)
        self._conversation.updated.connect(self.refresh)
        self._conversation.project_chosen.connect(self.refresh)
        self._bridge.subscribe(
            self._on_changed, "messages_in", "presets", "default_preset", "default_model",
            "own_prices", "system_prompt",
        )  # fmt: skip

    @property
    def is_waiting(self) -> bool:
        """Whether the text is still being typed."""
        return self._pause.isActive()

    def refresh(self, *_: object) -> None:
        """Estimate again after a pause, such as when another model was chosen."""
        self._bridge.cancel(_NAME)
        self._pause.start()

    def _on_draft_changed(self) -> None:
        if not self._composer.text.strip() and not self._composer.draft.files:
            self._composer.show_cost("")
        self.refresh()

    def _on_changed(self, changed: ChangeSet) -> None:
        here = self._conversation.conversation_id
        if changed.settings or changed.presets or here in changed.messages_in:
            self.refresh()

    def _estimate(self) -> None:
        draft, here = self._composer.draft, self._conversation.conversation_id
        if draft.text.startswith("/") or not (draft.text.strip() or draft.files):
            self._show(None)
            return
        new = self._model_for_new(), self._preset_for_new(), self._conversation.project
        self._bridge.load(
            _NAME,
            lambda: self._costs.cost_usd((Text(draft.text), *draft.files), here, *new),
            self._show,
            lambda _: self._show(None),
        )

    def _show(self, cost_usd: float | None) -> None:
        text = ""
        if cost_usd is not None and cost_usd >= SHOWN_FROM_USD:
            text = tr("About {cost} to send").format(cost=money(cost_usd))
        self._composer.show_cost(text)

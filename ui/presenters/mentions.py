"""Mentions in the composer: titles of past conversations to choose from after an @."""

from collections.abc import Sequence

from app.commands.table import CompletionItem
from app.domain.formatting import format_day
from app.domain.ids import ConversationId
from app.memory.mentions import Mentionable, Mentions
from ui.presenters.conversation import ConversationPresenter
from ui.presenters.presenter import Presenter
from ui.widgets.composer import Composer

_MOST = 8


class MentionPresenter(Presenter):
    """Completes what is typed after an @, and remembers which conversation was chosen."""

    _mentions: Mentions
    _composer: Composer
    _conversation: ConversationPresenter

    def _set_up(self) -> None:
        self._shown: dict[str, ConversationId] = {}  # by the text of the completion
        self._composer.completer.mention_typed.connect(self._on_typed)
        self._composer.completer.mention_chosen.connect(self._on_chosen)

    def _on_typed(self, typed: str) -> None:
        here = self._conversation.conversation_id
        self._bridge.load(
            "mentions",
            lambda: self._mentions.matching(typed, _MOST, here),
            lambda found: self._show(typed, found),
            lambda _: None,
        )

    def _show(self, typed: str, found: Sequence[Mentionable]) -> None:
        items = [
            CompletionItem(each.title, each.title, format_day(each.updated_at)) for each in found
        ]
        self._shown = {each.title: each.id for each in reversed(found)}
        self._composer.completer.show_mentions(typed, items)

    def _on_chosen(self, title: str) -> None:
        if (chosen := self._shown.get(title)) is not None:
            self._mentions.choose(title, chosen)

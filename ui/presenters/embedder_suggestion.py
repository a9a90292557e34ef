"""The suggestion of an embedder that suits the library's languages, in the banner."""

from app.domain.changes import ChangeSet
from app.domain.errors import KnownError
from app.domain.translation import tr
from app.memory.embedder_suggestion import EmbedderSuggestion, EmbedderSuggestions
from ui.bridge import Refresh
from ui.presenters.presenter import Presenter
from ui.widgets.banner import Banner

_CHECK_AFTER_MS = 10_000


class EmbedderSuggestionPresenter(Presenter):
    """Suggests once, at the start or when messages were added, as soon as the banner is free."""

    _suggestions: EmbedderSuggestions
    _messages: Banner
    _check_after_ms: int = _CHECK_AFTER_MS

    def __post_init__(self) -> None:
        super().__post_init__()
        self._is_over = False
        self._refresh = Refresh(
            self, self._bridge, "embedder suggestion", self._check_after_ms, self._show
        )
        self._bridge.subscribe(self._on_changed, "passages")
        self._refresh.request()

    async def _show(self) -> None:
        if not self._messages.isHidden():
            self._refresh.request()
            return
        suggestion = await self._bridge.run(self._suggestions.read)
        if suggestion is not None and self._messages.isHidden():
            self._is_over = True
            self._messages.show_message(
                suggestion.reason,
                tr("Switch"),
                lambda: self._bridge.submit(self._accept(suggestion), self._on_error),
                brief=False,
                closed=lambda: self._bridge.submit(self._dismiss(), self._on_error),
            )

    async def _accept(self, suggestion: EmbedderSuggestion) -> None:
        await self._bridge.write(lambda: self._suggestions.accept(suggestion))
        self._messages.show_message(
            tr(
                "The other search model is reading your history. Until that is done, search answers as before."
            ),
            brief=True,
        )

    async def _dismiss(self) -> None:
        await self._bridge.write(self._suggestions.dismiss)

    def _on_changed(self, _: ChangeSet) -> None:
        if not self._is_over:
            self._refresh.request()

    def _on_error(self, error: KnownError) -> None:
        self._messages.show_error(error)

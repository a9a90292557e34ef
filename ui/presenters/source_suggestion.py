"""The suggestion to follow a program whose sessions are on this computer, in the banner."""

from app.domain.errors import KnownError
from app.domain.formatting import format_size
from app.domain.sources import SOURCES, SourceState
from app.domain.text import sentences
from app.domain.translation import tr, trn
from app.workers.sources import FollowedSources
from ui.bridge import Refresh
from ui.presenters.presenter import Presenter
from ui.widgets.banner import Banner

_CHECK_AFTER_MS = 4_000


class SourceSuggestionPresenter(Presenter):
    """Suggests each source once, one at a start, as soon as the banner is free."""

    _sources: FollowedSources
    _messages: Banner
    _check_after_ms: int = _CHECK_AFTER_MS

    def __post_init__(self) -> None:
        super().__post_init__()
        self._refresh = Refresh(
            self, self._bridge, "source suggestion", self._check_after_ms, self._show
        )
        self._refresh.request()

    async def _show(self) -> None:
        if not self._messages.isHidden():
            self._refresh.request()
            return
        state = await self._bridge.run(self._sources.suggestion)
        if state is None or not self._messages.isHidden():
            return
        spec = SOURCES[state.name]
        self._messages.show_message(
            sentences(
                tr("{program} keeps {files} ({size}) on this computer").format(
                    program=spec.title,
                    files=trn("{count} session file", "{count} session files", state.files),
                    size=format_size(state.size_bytes),
                ),
                tr(spec.deletes),
                tr("Import them, and new ones as they are written?"),
            ),
            tr("Import and follow"),
            lambda: self._bridge.submit(self._follow(state), self._on_error),
            brief=False,
            closed=lambda: self._bridge.submit(self._dismiss(state), self._on_error),
        )

    async def _follow(self, state: SourceState) -> None:
        def follow() -> None:
            self._sources.note_suggested(state.name)
            self._sources.switch(state.name, is_on=True)

        await self._bridge.write(follow)
        self._messages.show_message(
            tr(
                "The sessions of {program} are being imported. The memory pane shows the progress; "
                "Settings, Background tasks switches it off."
            ).format(program=SOURCES[state.name].title),
            brief=True,
        )

    async def _dismiss(self, state: SourceState) -> None:
        await self._bridge.write(lambda: self._sources.note_suggested(state.name))

    def _on_error(self, error: KnownError) -> None:
        self._messages.show_error(error)

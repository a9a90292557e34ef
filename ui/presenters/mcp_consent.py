"""The question whether another program may read memory, in the banner."""

from app.domain.errors import KnownError
from app.domain.translation import tr
from app.mcp.access import Access, McpAccess
from ui.presenters.presenter import Presenter
from ui.widgets.banner import Banner


class McpConsentPresenter(Presenter):
    """Asks for each program once, when it first wants to read; closing the banner denies it."""

    _access: McpAccess
    _messages: Banner

    def __post_init__(self) -> None:
        super().__post_init__()
        self._asked: set[str] = set()
        self._bridge.subscribe(lambda _: self._ask(), "mcp_clients")
        self._ask()

    def _ask(self) -> None:
        waiting = [
            name
            for name, access in self._access.decisions().items()
            if access is Access.ASK and name not in self._asked
        ]
        if not waiting:
            return
        name = waiting[0]
        self._asked.add(name)
        self._messages.show_message(
            tr(
                "\u201c{name}\u201d asks to read your memory. What it reads goes to the model that it uses."
            ).format(name=name),
            tr("Allow"),
            lambda: self._decide(name, Access.ALLOWED),
            brief=False,
            closed=lambda: self._decide(name, Access.DENIED),
        )

    def _decide(self, name: str, access: Access) -> None:
        async def decide() -> None:
            await self._bridge.write(lambda: self._access.decide(name, access))
            if access is Access.ALLOWED:
                self._messages.show_message(
                    tr("\u201c{name}\u201d may read your memory from now on.").format(name=name),
                    brief=True,
                )

        self._bridge.submit(decide(), self._on_error)

    def _on_error(self, error: KnownError) -> None:
        self._messages.show_error(error)

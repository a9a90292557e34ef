"""Suggestions in the banner: another embedder, a program to follow, projects, a program that asks to read memory."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from app.chat.projects import ProjectProposals
from app.domain.records.sources import SOURCES, SourceState
from app.domain.text import sentences
from app.domain.translation import format_size, tr, trn
from app.mcp.access import Access, McpAccess
from app.memory.search.embedders import EmbedderSuggestions
from app.workers.followed import FollowedSources
from ui.bridge import Refresh
from ui.presenters.presenter import Presenter
from ui.widgets.banner import Banner

_INVITED = 3  # programs named on the button


@dataclass(frozen=True, slots=True)
class Suggestion:
    """What is suggested; `accept` and `dismiss` block, and `outcome`, if any, is shown after the first.

    `invitation` names it on a button where the page has a place for one.
    """

    text: str
    action: str
    outcome: str
    accept: Callable[[], object]
    dismiss: Callable[[], object]
    invitation: str = ""


class SuggestionPresenter(Presenter):
    """Suggests something once, as soon as the banner is free.

    `read` returns what, None for nothing; it blocks. It is called at the start and after changes of
    `topics`, so many milliseconds later. `follow_up` is called once the suggestion was accepted. `invite` takes the
    invitation and what shows the whole, and returns whether it has shown the button instead.
    """

    _messages: Banner
    _read: Callable[[], Suggestion | None]
    _check_after_ms: int
    _topics: Sequence[str] = ()
    _follow_up: Callable[[], object] = lambda: None
    _invite: Callable[[str, Callable[[], object]], bool] = lambda _text, _show: False

    def _set_up(self) -> None:
        self._is_over = False
        name = f"suggestion {id(self)}"
        self._refresh = Refresh(self, self._bridge, name, self._check_after_ms, self._show)
        if self._topics:
            self._bridge.subscribe(lambda _: self._request(), *self._topics)
        self._request()

    def _request(self) -> None:
        if not self._is_over:
            self._refresh.request()

    async def _show(self) -> None:
        if not self._messages.isHidden():
            self._refresh.request()
            return
        suggestion = await self._bridge.run(self._read)
        if suggestion is not None and self._messages.isHidden():
            self._is_over = True
            if not self._invite(suggestion.invitation, self._show_invited):
                self._suggest(suggestion)

    def _show_invited(self) -> None:
        """Show what there is now: the button may be older than what it names."""
        self._bridge.load("invited", self._read, self._suggest)

    def _suggest(self, suggestion: Suggestion | None) -> None:
        if suggestion is None:
            text = tr("There is nothing to import any more.")
            self._messages.show_message(text, brief=True)
            return
        self._messages.show_message(
            suggestion.text,
            suggestion.action,
            lambda: self._bridge.save(suggestion.accept, lambda _: self._end(suggestion)),
            brief=False,
            closed=lambda: self._bridge.save(suggestion.dismiss),
        )

    def _end(self, suggestion: Suggestion) -> None:
        if suggestion.outcome:
            self._messages.show_message(suggestion.outcome, brief=True)
        self._follow_up()


def project_suggestion(proposals: ProjectProposals) -> Suggestion | None:
    """Return that there are proposed projects, once; blocking."""
    if not (found := proposals.unannounced()):
        return None
    groups = trn(
        "{count} group of conversations could be a project",
        "{count} groups of conversations could be projects",
        len(found),
    )
    text = tr("{groups}, such as “{name}”.").format(groups=groups, name=found[0].name)
    return Suggestion(text, tr("Show"), "", proposals.note_announced, proposals.note_announced)


def embedder_suggestion(service: EmbedderSuggestions) -> Suggestion | None:
    """Return the embedder that suits the library's languages better; blocking."""
    if (found := service.read()) is None:
        return None
    outcome = tr(
        "The other search model is reading your history. Until that is done, search answers as before."
    )
    accept = partial(service.accept, found)
    return Suggestion(found.reason, tr("Switch"), outcome, accept, service.dismiss)


def source_suggestion(sources: FollowedSources) -> Suggestion | None:
    """Return the programs whose sessions are on this computer, each once; blocking."""
    if not (found := sources.suggestions()):
        return None
    names = [each.name for each in found]
    dismiss = partial(sources.note_suggested, names)

    def accept() -> None:
        dismiss()
        for name in names:
            sources.switch(name, is_on=True)

    specs = [SOURCES[each] for each in names]
    text = sentences(
        tr("Sessions on this computer: {found}").format(found="; ".join(map(_found_text, found))),
        *(tr(each.deletes) for each in specs),
        tr("Import them, and new ones as they are written?"),
    )
    titles = ", ".join(each.title for each in specs)
    outcome = tr(
        "The sessions of {program} are being imported. The memory pane shows the progress; "
        "Settings, Other programs switches each off."
    ).format(program=titles)
    invitation = tr("Import the sessions of {program}\u2026").format(
        program=", ".join(each.title for each in specs[:_INVITED])
    )
    return Suggestion(text, tr("Import and follow"), outcome, accept, dismiss, invitation)


def _found_text(state: SourceState) -> str:
    files = trn("{count} session file", "{count} session files", state.files)
    if state.messages:
        messages = trn("about {count} message", "about {count} messages", state.messages)
        files = f"{files}, {messages}"
    return tr("{program} with {files} ({size})").format(
        program=SOURCES[state.name].title, files=files, size=format_size(state.size_bytes)
    )


class McpConsentPresenter(Presenter):
    """Asks for each program once, when it first wants to read; closing the banner denies it."""

    _access: McpAccess
    _messages: Banner

    def _set_up(self) -> None:
        self._asked: set[str] = set()
        self._bridge.subscribe(lambda _: self._ask(), "mcp_clients")
        self._ask()

    def _ask(self) -> None:
        decisions = self._access.decisions()
        waiting = (name for name, access in decisions.items() if access is Access.ASK)
        if (name := next((each for each in waiting if each not in self._asked), None)) is None:
            return
        self._asked.add(name)
        allowed = tr("\u201c{name}\u201d may read your memory from now on.").format(name=name)
        self._messages.show_message(
            tr(
                "\u201c{name}\u201d asks to read your memory. What it reads goes to the model that it uses."
            ).format(name=name),
            tr("Allow"),
            lambda: self._bridge.save(
                lambda: self._access.decide(name, Access.ALLOWED),
                lambda _: self._messages.show_message(allowed, brief=True),
            ),
            brief=False,
            closed=lambda: self._bridge.save(lambda: self._access.decide(name, Access.DENIED)),
        )

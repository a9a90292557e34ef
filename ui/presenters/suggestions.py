"""Offers: another embedder, programs to follow, projects, a profile; and the question of a program that asks to read memory."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from app.chat.projects import ProjectProposals
from app.domain.records.sources import SOURCES, SourceState
from app.domain.text import sentences
from app.domain.translation import format_size, tr, trn
from app.mcp.access import Access, McpAccess
from app.memory.profile import ProfileService
from app.memory.search.embedders import EmbedderSuggestions
from app.workers.followed import FollowedSources
from ui.bridge import Refresh
from ui.presenters.presenter import Presenter
from ui.widgets.banner import Banner

_NAMED = 3  # programs in an offer


@dataclass(frozen=True, slots=True)
class Suggestion:
    """What is suggested; `accept` and `dismiss` block, and `outcome`, if any, is shown after the first.

    `offer` says it in few words; without a longer `text` it is accepted where it is offered.
    """

    offer: str
    text: str
    action: str
    outcome: str
    accept: Callable[[], object]
    dismiss: Callable[[], object]


Place = Callable[[str, Callable[[], object], Callable[[], object]], bool]


class SuggestionPresenter(Presenter):
    """Offers something once; the banner shows the whole on demand.

    `read` returns what, None for nothing; it blocks. It is called at the start and after changes of
    `topics`, so many milliseconds later. `follow_up` is called once the suggestion was accepted. `places` take the
    offer, what shows the whole and what dismisses it; the first that returns True has it. With `withdraw`, which
    takes an offer back, each new one is offered, and taken back when it does not stand any more.
    """

    _messages: Banner
    _places: Sequence[Place]
    _read: Callable[[], Suggestion | None]
    _check_after_ms: int
    _topics: Sequence[str] = ()
    _follow_up: Callable[[], object] = lambda: None
    _withdraw: Callable[[str], object] | None = None

    def _set_up(self) -> None:
        self._is_over = False
        self._offered = ""
        name = f"suggestion {id(self)}"
        self._refresh = Refresh(self, self._bridge, name, self._check_after_ms, self._offer)
        if self._topics:
            self._bridge.subscribe(lambda _: self._request(), *self._topics)
        self._request()

    def _request(self) -> None:
        if not self._is_over:
            self._refresh.request()

    async def _offer(self) -> None:
        found = await self._bridge.run(self._read)
        if self._withdraw and self._offered and (found is None or found.offer != self._offered):
            self._withdraw(self._offered)
            self._offered = ""
        if found is not None and not self._offered and not self._is_over:
            dismiss = partial(self._bridge.save, found.dismiss, self._on_decided)
            if any(place(found.offer, self._open, dismiss) for place in self._places):
                self._offered, self._is_over = found.offer, self._withdraw is None

    def _open(self) -> None:
        """Show what there is now: the offer may be older than what it names."""
        self._bridge.load("offer", self._read, self._suggest)

    def _suggest(self, suggestion: Suggestion | None) -> None:
        if suggestion is None:
            self._messages.show_message(tr("There is nothing to offer any more."), brief=True)
            self._on_decided()
            return

        def accept() -> None:
            self._bridge.save(suggestion.accept, lambda _: self._end(suggestion))

        if not suggestion.text:
            accept()
            return
        dismiss = partial(self._bridge.save, suggestion.dismiss)
        self._messages.show_message(
            suggestion.text, suggestion.action, accept, brief=False, closed=dismiss
        )

    def _on_decided(self, _done: object = None) -> None:
        self._offered = ""

    def _end(self, suggestion: Suggestion) -> None:
        self._on_decided()
        if suggestion.outcome:
            self._messages.show_message(suggestion.outcome, brief=True)
        self._follow_up()


def profile_suggestion(profile: ProfileService) -> Suggestion | None:
    """Return what is proposed for the profile, each proposal once; blocking."""
    if not (diff := profile.unannounced()):
        return None
    line, *others = (*diff.added, *diff.removed)
    if diff.added:
        offer = tr("Add to your profile? \u201c{line}\u201d").format(line=line.text)
    else:
        offer = tr("Remove from your profile? \u201c{line}\u201d").format(line=line.text)
    if others:
        more = trn("{count} more change.", "{count} more changes.", len(others))
        offer = f"{offer} {more}"
    return Suggestion(offer, "", "", "", profile.note_announced, profile.note_announced)


def project_suggestion(proposals: ProjectProposals) -> Suggestion | None:
    """Return that there are proposed projects, once; blocking."""
    if not (found := proposals.unannounced()):
        return None
    groups = trn(
        "{count} group of conversations could be a project",
        "{count} groups of conversations could be projects",
        len(found),
    )
    offer = tr("{groups}, such as “{name}”").format(groups=groups, name=found[0].name)
    return Suggestion(offer, "", "", "", proposals.note_announced, proposals.note_announced)


def embedder_suggestion(service: EmbedderSuggestions) -> Suggestion | None:
    """Return the embedder that suits the library's languages better; blocking."""
    if (found := service.read()) is None:
        return None
    outcome = tr(
        "The other search model is reading your history. Until that is done, search answers as before."
    )
    accept = partial(service.accept, found)
    offer = tr("Another search model suits your conversations better\u2026")
    return Suggestion(offer, found.reason, tr("Switch"), outcome, accept, service.dismiss)


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
    offer = tr("Import the sessions of {program}\u2026").format(
        program=", ".join(each.title for each in specs[:_NAMED])
    )
    return Suggestion(offer, text, tr("Import and follow"), outcome, accept, dismiss)


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

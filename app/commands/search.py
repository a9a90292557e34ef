"""`/search`, `/open` and `/brief`: results are numbered and can be opened by number."""

from collections.abc import Callable, Collection, Sequence

from app.chat.library import Library
from app.commands.command import (
    Action,
    Command,
    CommandCall,
    Form,
    OpenDocument,
    OpenTurn,
    Outcome,
    wrong_form,
)
from app.domain.errors import IndexUnavailable, InvalidInput, NotFound
from app.domain.links import link_to, parse_document, parse_link, parse_page
from app.domain.passages import DOCUMENT_KINDS, PassageKind
from app.domain.results import SearchResponse, SearchResult, details
from app.domain.text import escape_markdown, one_line
from app.domain.translation import format_percent, tr
from app.index.query import parse_query
from app.index.text_sync import TextIndexSync
from app.memory.recall.brief import Briefs
from app.memory.search.scope import Boundary
from app.memory.search.service import SearchService

_LIMIT = 10
_SNIPPET_CHARS = 240
_SEARCH_FORMS = (
    Form(
        "/search",
        "QUERY",
        "Words, “an exact phrase”, -word, tag:, source:, project:, before:, after:",
    ),
)
_BRIEF_TOKENS = 2000
_BRIEF_FORMS = (
    Form("/brief", "QUESTION", "What memory holds on a question, quoted and linked, to hand over"),
)
_OPEN_FORMS = (
    Form("/open", "N", "Open a result of the last /search by its number"),
    Form("/open", "ID[:TURN]", "Open a conversation at a turn; also commonplace://ID/TURN"),
)


def search_commands(
    search: SearchService, sync: TextIndexSync, library: Library, briefs: Briefs
) -> tuple[Command, ...]:
    both = _SearchCommands(search, sync, library)

    def brief(call: CommandCall) -> Outcome:
        if not call.rest:
            raise wrong_form(call, _BRIEF_FORMS)
        sync.catch_up_a_little()
        return Outcome(briefs.write(call.rest, _BRIEF_TOKENS, project_of(call, library)))

    return (
        Command("brief", tr("Hand over what memory holds"), _BRIEF_FORMS, brief),
        Command("search", tr("Search all conversations"), _SEARCH_FORMS, both.search),
        Command("open", tr("Open a result or a turn"), _OPEN_FORMS, both.open),
    )


class _SearchCommands:
    """The two commands of a window, with the results of the last search."""

    def __init__(self, search: SearchService, sync: TextIndexSync, library: Library) -> None:
        self._search = search
        self._sync = sync
        self._library = library
        self._results: Sequence[SearchResult] = ()

    def search(self, call: CommandCall) -> Outcome:
        """Search, and keep the results for `open`."""
        if not call.rest:
            raise wrong_form(call, _SEARCH_FORMS)
        self._sync.catch_up_a_little()
        boundary = boundary_of(self._search, call.rest, project_of(call, self._library))
        response = search_or_rebuild(self._search, self._sync, call.rest, _LIMIT, boundary=boundary)
        self._results = response.results
        lines = [_result_lines(number, each) for number, each in enumerate(response.results, 1)]
        lines.append(tr("`/open N` opens a result.") if lines else nothing_found(response))
        notes = (*coverage_notes(response), *boundary_notes(boundary))
        return Outcome("\n\n".join((*lines, *notes)))

    def open(self, call: CommandCall) -> Outcome:
        """Open a result by its number, or a conversation, turn, manual page or document."""
        if len(call.words) != 1:
            raise wrong_form(call, _OPEN_FORMS)
        if call.rest.isdecimal() and 0 < int(call.rest) <= len(self._results):
            return Outcome(action=self._action_for(self._results[int(call.rest) - 1]))
        if (name := parse_page(call.rest)) is not None:
            return Outcome(action=OpenDocument(call.rest, name))
        if parse_document(call.rest) is not None:
            return Outcome(action=OpenDocument(call.rest, call.rest))
        conversation_id, turn, exchange_id = parse_link(call.rest)
        if exchange_id is not None:
            self._library.open(conversation_id, exchange_id)
            return Outcome(action=OpenTurn(conversation_id, exchange_id))
        if turn is not None:
            exchange = self._library.exchange_at(conversation_id, turn)
            return Outcome(action=OpenTurn(conversation_id, exchange.id))
        try:
            self._library.open(conversation_id)
        except NotFound as error:
            raise NotFound(
                f"There is no result {conversation_id} and no conversation {conversation_id}",
                f"The last search has {len(self._results)} results; /search finds others.",
            ) from error
        return Outcome(action=OpenTurn(conversation_id))

    def _action_for(self, result: SearchResult) -> Action:
        if result.kind in DOCUMENT_KINDS:
            return OpenDocument(result.place, result.conversation_title)
        if result.conversation_id is None:
            raise InvalidInput("This result has no turn to open", "Choose another result.")
        return OpenTurn(result.conversation_id, result.exchange_id)


def search_or_rebuild(
    search: SearchService,
    sync: TextIndexSync,
    query: str,
    limit: int,
    kinds: Collection[PassageKind] | None = None,
    cancelled: Callable[[], bool] = lambda: False,
    boundary: Boundary | None = None,
) -> SearchResponse:
    """Search inside a boundary; an index found damaged begins to be rebuilt first. Blocking.

    Raises InvalidInput, IndexUnavailable.
    """
    try:
        return search.search(query, limit=limit, kinds=kinds, boundary=boundary)
    except IndexUnavailable:
        sync.catch_up_a_little(cancelled)
        return search.search(query, limit=limit, kinds=kinds, boundary=boundary)


def project_of(call: CommandCall, library: Library) -> str | None:
    """Return the uid of the project that a command is typed in; None for none."""
    here = call.context.conversation_id
    return call.context.project if here is None else library.project_of(here)


def boundary_of(search: SearchService, query: str, project: str | None) -> Boundary | None:
    """Return the boundary of a search that is typed in a project, by its uid; None for none.

    A query that names a project by `project:` is asked of everything. Raises InvalidInput.
    """
    return None if parse_query(query).projects else search.boundaries.of(project)


def boundary_notes(boundary: Boundary | None) -> list[str]:
    """Return what a boundary kept a search from, as sentences."""
    if boundary is None:
        return []
    if boundary.project is not None and boundary.is_bounded:
        words = tr('Only the project "{name}" was searched; project:NAME searches another one.')
        return [words.format(name=boundary.project.name)]
    if boundary.closed:
        words = tr(
            "Projects that keep their memory to themselves were left out; project:NAME searches one."
        )
        return [words]
    return []


def nothing_found(response: SearchResponse) -> str:
    """Return why there are no results, as sentences."""
    if response.unmatched:
        filters = ", ".join(response.unmatched)
        return tr("Nothing was found: nothing at all matches {filters}.").format(filters=filters)
    return tr("Nothing was found. Try other or fewer words.")


def coverage_notes(response: SearchResponse) -> list[str]:
    """Return what a search may have missed, as sentences."""
    notes = []
    if response.covered_share < 1:
        notes.append(
            tr("{covered_share} of your history can be searched so far.").format(
                covered_share=format_percent(response.covered_share)
            )
        )
    if response.notice:
        notes.append(tr("Only matching words were found. {notice}").format(notice=response.notice))
    return notes


def _result_lines(number: int, result: SearchResult) -> str:
    """Return a result as a list item; its title links to its turn."""
    title = escape_markdown(one_line(result.conversation_title, 100)) or tr("Untitled")
    if result.conversation_id is not None:
        turn, exchange = result.turn_number or 0, result.exchange_id
        link = link_to(result.conversation_id, turn, exchange, is_shown=result.is_shown)
        title = f"[{title}]({link})"
    weak = tr(", a weak match") if result.is_weak else ""
    figures = (f"{result.relevance:.0%}{weak}", *details(result), result.place)
    lines = [" \N{MIDDLE DOT} ".join((f"{number}. **{title}**", *figures))]
    question = one_line(result.user_question, _SNIPPET_CHARS)
    snippet = one_line(result.snippet, _SNIPPET_CHARS)
    lines += [escape_markdown(each) for each in dict.fromkeys((question, snippet)) if each]
    return "  \n   ".join(lines)

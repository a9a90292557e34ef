"""`/search` and `/open`: what was found is numbered, and opened by its number."""

from collections.abc import Callable, Collection, Sequence

from app.chat.commands.values import (
    Action,
    Command,
    CommandOutput,
    Form,
    Given,
    OpenPage,
    OpenTurn,
    wrong_form,
)
from app.chat.library import Library
from app.chat.places import name_of_page, parse_link, parse_page
from app.domain.errors import IndexUnavailable, InvalidInput, NotFound
from app.domain.links import link_to
from app.domain.passages import PassageKind, SearchAnswer, SearchResult
from app.domain.text import as_markdown, one_line
from app.memory.index_sync import IndexSync
from app.memory.search import SearchService

_LIMIT = 10
_SNIPPET_CHARS = 240
_SEARCH_FORMS = (Form("/search", "QUERY", "Words, “an exact phrase”, -not, tag:, before:, after:"),)
_OPEN_FORMS = (
    Form("/open", "N", "The result of that number of the last /search"),
    Form("/open", "ID[:TURN]", "A conversation, at a turn; commonplace://ID/TURN too"),
)


class Finding:
    """The two commands of one window; the last results are kept in between."""

    def __init__(self, search: SearchService, sync: IndexSync, library: Library) -> None:
        self._search = search
        self._sync = sync
        self._library = library
        self._results: Sequence[SearchResult] = ()

    def commands(self) -> tuple[Command, ...]:
        """Return the commands."""
        return (
            Command("search", "Search everything that was said", _SEARCH_FORMS, self._on_search),
            Command("open", "Open a result or a turn", _OPEN_FORMS, self._on_open),
        )

    def _on_search(self, given: Given) -> CommandOutput:
        if not given.rest:
            raise wrong_form(given, _SEARCH_FORMS)
        self._sync.catch_up_a_little()
        answer = searched(self._search, self._sync, given.rest, _LIMIT)
        self._results = answer.results
        lines = [_result_lines(number, each) for number, each in enumerate(answer.results, 1)]
        if not lines:
            lines = ["Nothing was found. Try other or fewer words."]
        else:
            lines.append("`/open N` opens a result.")
        return CommandOutput("\n\n".join((*lines, *remarks_on(answer))))

    def _on_open(self, given: Given) -> CommandOutput:
        if len(given.words) != 1:
            raise wrong_form(given, _OPEN_FORMS)
        if given.rest.isdecimal() and 0 < int(given.rest) <= len(self._results):
            return CommandOutput(action=self._action_for(self._results[int(given.rest) - 1]))
        if (page := parse_page(given.rest)) is not None:
            return CommandOutput(action=OpenPage(page, page))
        conversation_id, turn, exchange_id = parse_link(given.rest)
        if exchange_id is not None:
            self._library.open(conversation_id, exchange_id)
            return CommandOutput(action=OpenTurn(conversation_id, exchange_id))
        if turn is not None:
            exchange = self._library.exchange_at(conversation_id, turn)
            return CommandOutput(action=OpenTurn(conversation_id, exchange.id))
        try:
            self._library.open(conversation_id)
        except NotFound as error:
            raise NotFound(
                f"There is no result {conversation_id} and no conversation {conversation_id}",
                f"The last search has {len(self._results)} results; /search finds others.",
            ) from error
        return CommandOutput(action=OpenTurn(conversation_id))

    def _action_for(self, result: SearchResult) -> Action:
        if result.kind is PassageKind.MAN_PAGE:
            return OpenPage(result.source, result.conversation_title)
        if result.conversation_id is None:
            raise InvalidInput("This result has no turn to open", "Choose another one.")
        return OpenTurn(result.conversation_id, result.exchange_id)


def searched(
    search: SearchService,
    sync: IndexSync,
    query: str,
    limit: int,
    kinds: Collection[PassageKind] | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> SearchAnswer:
    """Return what a query finds; a damaged index is built anew first. Blocking.

    Raises InvalidInput, IndexUnavailable.
    """
    try:
        return search.search(query, limit=limit, kinds=kinds)
    except IndexUnavailable:
        sync.catch_up(cancelled)
        return search.search(query, limit=limit, kinds=kinds)


def remarks_on(answer: SearchAnswer) -> list[str]:
    """Return what an answer may have missed, in sentences."""
    remarks = []
    if answer.covered_share < 1:
        remarks.append(f"{answer.covered_share:.0%} of your history is searchable so far.")
    if answer.notice:
        remarks.append(f"Found by words only. {answer.notice}")
    return remarks


def place_of(result: SearchResult) -> str:
    """Return how people name the place of a result: ID:TURN, ID or man:PAGE.SECTION.

    What belongs to no conversation is named by its kind and id, such as "fact 12".
    """
    if result.kind is PassageKind.MAN_PAGE:
        return name_of_page(result.source)
    if result.conversation_id is None:
        return f"{result.kind.value} {result.passage_id}"
    turn = "" if result.turn_number is None else f":{result.turn_number}"
    return f"{result.conversation_id}{turn}"


def _result_lines(number: int, result: SearchResult) -> str:
    """Return a result as an item of a numbered list, its title a link to its turn."""
    title = as_markdown(one_line(result.conversation_title, 100)) or "Untitled"
    if result.conversation_id is not None:
        turn, exchange = result.turn_number or 0, result.exchange_id
        link = link_to(result.conversation_id, turn, exchange, is_shown=result.is_shown)
        title = f"[{title}]({link})"
    weak = ", a weak match" if result.is_weak else ""
    day = f"{result.created_at.astimezone():%Y-%m-%d}"
    figures = (f"{result.relevance:.0%}{weak}", day, place_of(result))
    lines = [" \N{MIDDLE DOT} ".join((f"{number}. **{title}**", *figures))]
    question = one_line(result.user_question, _SNIPPET_CHARS)
    snippet = one_line(result.snippet, _SNIPPET_CHARS)
    lines += [as_markdown(each) for each in dict.fromkeys((question, snippet)) if each]
    return "  \n   ".join(lines)

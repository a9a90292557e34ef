"""List model of search results: turns by conversation, then facts, memories, pages and documents by kind."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from PySide6.QtCore import QObject, Qt

from app.domain.passages import DOCUMENT_KINDS, PassageKind
from app.domain.results import SearchResult, details
from app.domain.translation import format_day, format_percent, tr, trn
from ui.models.conversations import GroupedListModel, Heading, Index, ListRole, source_title

_KINDS = (
    (tr("Facts"), PassageKind.FACT),
    (tr("Saved memories"), PassageKind.MEMORY),
    (tr("Manual pages"), PassageKind.MAN_PAGE),
    (tr("Documents"), PassageKind.DOCUMENT),
)
_KINDS_APART = {kind for _, kind in _KINDS}
_UNTITLED = {PassageKind.FACT: tr("A fact of your own"), PassageKind.MEMORY: tr("Saved by you")}
_DOT = " \N{MIDDLE DOT} "
_MIN_SHOWN = 0.005
_MOST_NEAR = 5
_MOST_OF_ONE = 3  # results of a conversation, while it is collapsed
_NEAREST = -1  # instead of a conversation: those whose results are only near
_NOTHING_FOUND = tr("Nothing found \N{MIDDLE DOT} the nearest")


@dataclass(frozen=True, slots=True)
class ResultGroup:
    """The row of a conversation above its results: the best of them, and how many there are."""

    best: SearchResult
    count: int

    @property
    def title(self) -> str:
        """The conversation's title."""
        return title_text(self.best)


@dataclass(frozen=True, slots=True)
class FoldRow:
    """The row below a conversation's results that shows the `hidden` ones, or (0) hides them again.

    Instead of a conversation it can stand for all whose results are only near.
    """

    conversation_id: int
    hidden: int

    @property
    def title(self) -> str:
        if not self.hidden:
            return tr("Show fewer")
        if self.conversation_id == _NEAREST:
            return trn("Show {count} weak match", "Show {count} weak matches", self.hidden)
        return trn("Show {count} more", "Show {count} more", self.hidden)


Row = Heading | ResultGroup | SearchResult | FoldRow


def title_text(result: SearchResult) -> str:
    """Return a result's title: its conversation's, or a label for what has none."""
    return result.conversation_title or _UNTITLED.get(result.kind, "")


def lead_text(result: SearchResult) -> tuple[str, tuple[tuple[int, int], ...]]:
    """Return a row's first line with its marks: the question, a page's title, "" for others."""
    if result.kind in DOCUMENT_KINDS:
        return title_text(result), ()
    if result.user_question == result.snippet:
        return "", ()
    return result.user_question, result.question_marks


def relevance_text(result: SearchResult) -> str:
    """Return the relevance in percent; weak matches are marked by more than a color.

    One that rounds to nothing has no figure: it has some of the words, which are marked.
    """
    share = format_percent(result.relevance)
    if not result.is_weak:
        return share
    is_nothing = result.relevance < _MIN_SHOWN
    return tr("weak") if is_nothing else tr("weak · {share}").format(share=share)


def origin_text(result: SearchResult) -> str:
    """Return the day and the model, if it is known (3 May 2026 · gpt-4o), and what else is special."""
    words = details(result, format_day)
    if result.kind is PassageKind.CONVERSATION_SUMMARY:
        words.insert(0, tr("Summary"))
    if result.kind in _UNTITLED:
        words.append(title_text(result))
    return _DOT.join(words)


def group_text(group: ResultGroup) -> str:
    """Return the right end of a conversation's row: where it was imported from, and its results."""
    counted = [str(group.count)] if group.count > 1 else []
    return _DOT.join([*filter(None, [source_title(group.best.source)]), *counted])


def _tooltip(row: SearchResult | ResultGroup | FoldRow) -> str:
    """Return a row's tool tip."""
    if isinstance(row, FoldRow):
        return ""
    if isinstance(row, ResultGroup):
        return "\n".join(filter(None, (row.title, source_title(row.best.source))))
    path = row.source if row.kind is PassageKind.DOCUMENT else ""
    lines = [title_text(row), path, row.user_question, origin_text(row)]
    if row.is_weak:
        lines.append(tr("Weak match: less relevant than what is recalled"))
    return "\n".join(filter(None, lines))


def _spoken(row: SearchResult | ResultGroup | FoldRow) -> str:
    if isinstance(row, FoldRow):
        return row.title
    if isinstance(row, ResultGroup):
        named = (row.title, source_title(row.best.source), _counted_results(row.count))
        return ", ".join(filter(None, named))
    weak = tr(", a weak match") if row.is_weak else ""
    return tr("{user_question} {snippet}, {relevance} relevant{weak}, {origin}, {title}").format(
        user_question=row.user_question,
        snippet=row.snippet,
        relevance=format_percent(row.relevance),
        weak=weak,
        origin=origin_text(row),
        title=title_text(row),
    )


def _counted_results(count: int) -> str:
    return trn("{count} result", "{count} results", count)


def is_found(result: SearchResult) -> bool:
    """Return whether a result is more than just one of the nearest: meaning ranks every passage."""
    has_words = bool(result.marks or result.question_marks)
    return not result.is_weak or result.is_hint or has_words


def _identity(row: object) -> object:
    """Return the passage of a result; what identifies the other rows."""
    if isinstance(row, ResultGroup):
        return "group", row.best.conversation_id
    if isinstance(row, FoldRow):
        return "fold", row.conversation_id
    return row.passage_id if isinstance(row, SearchResult) else None


class ResultListModel(GroupedListModel):
    """The results of one search, grouped by conversation, the one with the best result first.

    Of a conversation with more than three results three are shown until it is expanded. What is only near is
    shown on request, if anything is as relevant as what is recalled or hinted at.
    """

    identity: ClassVar = staticmethod(_identity)
    texts: ClassVar = {
        Qt.ItemDataRole.DisplayRole: lambda row: (
            lead_text(row)[0] or row.snippet if isinstance(row, SearchResult) else row.title
        ),
        Qt.ItemDataRole.ToolTipRole: _tooltip,
        Qt.ItemDataRole.AccessibleTextRole: _spoken,
        ListRole.SUBTITLE: lambda row: row.snippet if isinstance(row, SearchResult) else "",
        ListRole.TRAILING: lambda row: (
            relevance_text(row)
            if isinstance(row, SearchResult)
            else group_text(row)
            if isinstance(row, ResultGroup)
            else ""
        ),
    }

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._results: tuple[SearchResult, ...] = ()
        self._expanded: set[int] = set()
        self._is_list = False
        self._hides_near = False
        self.is_found = False

    def show_results(
        self, results: Sequence[SearchResult], *, is_list: bool = False, is_same_query: bool = False
    ) -> bool:
        """Show results, given best first; return whether any of them is more than just the nearest.

        Those of a list have no relevance. With another query than before, every conversation is collapsed.
        """
        if not is_same_query:
            self._expanded.clear()
        self._is_list = is_list
        self.is_found = any(map(is_found, results))
        self._hides_near = not is_list and any(each.is_hint or not each.is_weak for each in results)
        self._results = tuple(results if self.is_found else results[:_MOST_NEAR])
        self.show_rows(list(self._made()))
        return self.is_found

    def set_expanded(self, conversation_id: int | None, expanded: bool) -> None:
        """Show all results of a conversation, or three."""
        if conversation_id is not None and expanded != (conversation_id in self._expanded):
            self._expanded ^= {conversation_id}
            self.show_rows(list(self._made()))

    def _made(self) -> Iterator[Row]:
        groups: dict[int, list[SearchResult]] = {}
        for result in self._results:
            if result.kind not in _KINDS_APART and result.conversation_id is not None:
                groups.setdefault(result.conversation_id, []).append(result)
        if self._results and not self.is_found:
            yield Heading(_NOTHING_FOUND)
        near = self._only_near(groups)
        main = {each: group for each, group in groups.items() if each not in near}
        shows_near = _NEAREST in self._expanded or not self._hides_near
        apart = self._apart(shows_near=shows_near)
        # What was said comes first, but no weak match above a fact or document that is none.
        strong = {name: own for name, own in apart.items() if not own[0].is_weak}
        if strong:
            said = {each: group for each, group in main.items() if not group[0].is_weak}
            yield from self._rows_in_conversations(said)
            yield from self._rows_apart(strong)
            main = {each: group for each, group in main.items() if each not in said}
            apart = {name: own for name, own in apart.items() if name not in strong}
        yield from self._rows_in_conversations(main)
        if shows_near:
            yield from self._rows_of({each: groups[each] for each in near})
        yield from self._rows_apart(apart)
        if hidden := self._count_near(groups, near):
            yield FoldRow(_NEAREST, 0 if shows_near else hidden)

    def _rows_in_conversations(self, groups: Mapping[int, Sequence[SearchResult]]) -> Iterator[Row]:
        if groups and self.is_found:
            found = _counted_results(sum(map(len, groups.values())))
            talks = trn("{count} conversation", "{count} conversations", len(groups))
            yield Heading(
                tr("{results} in {conversations}").format(results=found, conversations=talks)
            )
        yield from self._rows_of(groups)

    def _apart(self, *, shows_near: bool) -> dict[str, list[SearchResult]]:
        """Return the facts, memories, pages and documents to show, by heading."""
        found = {
            name: [
                each
                for each in self._results
                if each.kind is kind and (shows_near or is_found(each))
            ]
            for name, kind in _KINDS
        }
        return {name: own for name, own in found.items() if own}

    def _rows_apart(self, apart: Mapping[str, Sequence[SearchResult]]) -> Iterator[Row]:
        for name, own in apart.items():
            if self.is_found:
                yield Heading(f"{name}{_DOT}{len(own)}")
            yield from own

    def _only_near(self, groups: Mapping[int, Sequence[SearchResult]]) -> list[int]:
        """Return the conversations of which nothing was found, if there is an answer elsewhere."""
        if not self._hides_near:
            return []
        return [each for each, group in groups.items() if not any(map(is_found, group))]

    def _count_near(self, groups: Mapping[int, Sequence[SearchResult]], near: list[int]) -> int:
        """Return how many results the row stands for that shows what is only near."""
        if not self._hides_near:
            return 0
        apart = [each for each in self._results if each.kind in _KINDS_APART and not is_found(each)]
        return len(apart) + sum(len(groups[each]) for each in near)

    def _rows_of(self, groups: Mapping[int, Sequence[SearchResult]]) -> Iterator[Row]:
        for conversation_id, group in groups.items():
            yield ResultGroup(group[0], len(group))
            found = [*filter(is_found, group)] if self._hides_near else group
            few = (found or group)[:_MOST_OF_ONE]
            shown = group if conversation_id in self._expanded else few
            yield from shown
            if len(group) > len(few):
                yield FoldRow(conversation_id, len(group) - len(shown))

    # Qt overrides

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        """Return the data of a row; a list is not ranked."""
        if role == ListRole.TRAILING and self._is_list and self._is_result(index):
            return ""
        return super().data(index, role)

    def _is_result(self, index: Index) -> bool:
        return isinstance(super().data(index, ListRole.VALUE), SearchResult)

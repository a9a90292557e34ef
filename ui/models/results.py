"""Search results as rows, grouped by kind; a result that cannot be shown in a group has none."""

from collections.abc import Sequence
from html import escape

from PySide6.QtCore import Qt

from app.domain.passages import PassageKind, SearchResult
from ui.models.conversations import GroupedListModel, Heading, ListRole, day_words

_GROUPS = (
    ("Turns", (PassageKind.TURN, PassageKind.EXCHANGE_SUMMARY, PassageKind.TOOL_SUMMARY)),
    ("Conversations", (PassageKind.CONVERSATION_SUMMARY,)),
    ("Facts", (PassageKind.FACT,)),
    ("Saved memories", (PassageKind.MEMORY,)),
    ("Manual pages", (PassageKind.MAN_PAGE,)),
    ("Documents", (PassageKind.DOCUMENT,)),
)
_UNTITLED = {PassageKind.FACT: "A fact of your own", PassageKind.MEMORY: "Saved by you"}
_LEAST_SHOWN = 0.005


class ResultListModel(GroupedListModel):
    """The results of one search, best first within each group."""

    def show_results(self, results: Sequence[SearchResult]) -> None:
        """Show results, given best first."""
        rows: list[object] = []
        for name, kinds in _GROUPS:
            group = [result for result in results if result.kind in kinds]
            if group:
                rows += [Heading(f"{name} \N{MIDDLE DOT} {len(group)}"), *group]
        self.show_rows(rows)

    def identity_of(self, row: object) -> object:
        """Return the passage's id."""
        assert isinstance(row, SearchResult)
        return row.passage_id

    def text_of(self, row: object, role: int) -> object:
        """Return the result's lines; the delegate draws the snippet with its marks itself."""
        assert isinstance(row, SearchResult)
        if role == Qt.ItemDataRole.DisplayRole:
            return title_words(row)
        if role == ListRole.SUBTITLE:
            return row.user_question
        if role == ListRole.ASIDE:
            return relevance_words(row)
        if role == Qt.ItemDataRole.AccessibleTextRole:
            weak = ", a weak match" if row.is_weak else ""
            return (
                f"{title_words(row)}, {row.relevance:.0%} relevant{weak}, {origin_words(row)}. "
                f"{row.user_question} {row.snippet}"
            )
        if role == Qt.ItemDataRole.ToolTipRole:
            return _tooltip(row)
        return None


def title_words(result: SearchResult) -> str:
    """Return what stands at the head of a result; what no conversation said has no title."""
    if not result.conversation_title:
        return _UNTITLED.get(result.kind, "")
    return result.conversation_title


def relevance_words(result: SearchResult) -> str:
    """Return what stands at the right end of a result; a weak match is told by more than a colour."""
    share = f"{result.relevance:.0%}" if result.relevance >= _LEAST_SHOWN else "< 1%"
    return f"weak \N{MIDDLE DOT} {share}" if result.is_weak else share


def origin_words(result: SearchResult) -> str:
    """Return day and model, as far as it is known: 3 May 2026 · gpt-4o."""
    model = (result.model or "").partition(":")[2] or result.model
    day = day_words(result.created_at)
    return f"{day} \N{MIDDLE DOT} {model}" if model else day


def _tooltip(result: SearchResult) -> str:
    """Return a result's tool tip, as HTML in which nothing of its words is markup."""
    lines = [title_words(result), origin_words(result)]
    if result.archived:
        lines.append("Archived")
    if result.is_weak:
        lines.append("Weak match: less relevant than what recall would bring back")
    return "<br>".join(escape(line) for line in lines)

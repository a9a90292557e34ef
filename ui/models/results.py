"""Search results as rows, grouped by kind; a result that cannot be shown in a group has none."""

from collections.abc import Sequence

from PySide6.QtCore import Qt

from app.domain.passages import PassageKind, SearchResult
from ui.models.conversations import GroupedListModel, Heading, ListRole, day_words

_GROUPS = (
    ("Turns", (PassageKind.TURN, PassageKind.EXCHANGE_SUMMARY, PassageKind.TOOL_SUMMARY)),
    ("Conversations", (PassageKind.CONVERSATION_SUMMARY,)),
    ("Facts", (PassageKind.FACT, PassageKind.MEMORY)),
    ("Manual pages", (PassageKind.MAN_PAGE,)),
    ("Documents", (PassageKind.DOCUMENT,)),
)


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
        day = day_words(row.created_at)
        if role == Qt.ItemDataRole.DisplayRole:
            return row.conversation_title
        if role == ListRole.SUBTITLE:
            return row.user_question
        if role == ListRole.ASIDE:
            return f"{row.relevance:.0%}"
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return (
                f"{row.conversation_title}, {row.relevance:.0%} relevant, {day}. "
                f"{row.user_question} {row.snippet}"
            )
        if role == Qt.ItemDataRole.ToolTipRole:
            model = f" \N{MIDDLE DOT} {row.model}" if row.model else ""
            return f"{row.conversation_title}\n{day}{model}"
        return None

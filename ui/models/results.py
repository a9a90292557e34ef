"""List model of search results, grouped by kind."""

from collections.abc import Sequence
from html import escape
from operator import attrgetter
from typing import ClassVar

from PySide6.QtCore import Qt

from app.domain.formatting import format_day, format_percent
from app.domain.passages import PassageKind
from app.domain.results import SearchResult, details
from app.domain.translation import tr
from ui.models.conversations import GroupedListModel, Heading, ListRole

_GROUPS = (
    (tr("Turns"), (PassageKind.TURN, PassageKind.EXCHANGE_SUMMARY, PassageKind.TOOL_SUMMARY)),
    (tr("Conversations"), (PassageKind.CONVERSATION_SUMMARY,)),
    (tr("Facts"), (PassageKind.FACT,)),
    (tr("Saved memories"), (PassageKind.MEMORY,)),
    (tr("Manual pages"), (PassageKind.MAN_PAGE,)),
    (tr("Documents"), (PassageKind.DOCUMENT,)),
)
_UNTITLED = {PassageKind.FACT: tr("A fact of your own"), PassageKind.MEMORY: tr("Saved by you")}
_MIN_SHOWN = 0.005
_MOST_NEAR = 5
_NOTHING_FOUND = tr("Nothing found \N{MIDDLE DOT} the nearest")


def title_text(result: SearchResult) -> str:
    """Return a result's title: its conversation's, or a label for what has none."""
    return result.conversation_title or _UNTITLED.get(result.kind, "")


def relevance_text(result: SearchResult) -> str:
    """Return the text at the right end of a result; weak matches are marked by more than a color."""
    share = f"{result.relevance:.0%}" if result.relevance >= _MIN_SHOWN else "< 1%"
    return tr("weak · {share}").format(share=share) if result.is_weak else share


def origin_text(result: SearchResult) -> str:
    """Return the day and the model, if it is known: 3 May 2026 · gpt-4o."""
    return " \N{MIDDLE DOT} ".join(details(result, format_day))


def _tooltip(result: SearchResult) -> str:
    """Return a result's tool tip as HTML, with its text escaped."""
    lines = [title_text(result), origin_text(result)]
    if result.is_weak:
        lines.append(tr("Weak match: less relevant than the passages that are recalled"))
    return "<br>".join(escape(line) for line in lines)


def _spoken(result: SearchResult) -> str:
    weak = tr(", a weak match") if result.is_weak else ""
    return tr(
        "{title_text}, {relevance} relevant{weak}, {origin_text}. {user_question} {snippet}"
    ).format(
        title_text=title_text(result),
        relevance=format_percent(result.relevance),
        weak=weak,
        origin_text=origin_text(result),
        user_question=result.user_question,
        snippet=result.snippet,
    )


def is_found(result: SearchResult) -> bool:
    """Return whether a result is more than just one of the nearest: meaning ranks every passage."""
    return not result.is_weak or result.is_hint or bool(result.marks)


class ResultListModel(GroupedListModel):
    """The results of one search, best first within each group; the delegate paints the snippets."""

    identity: ClassVar = attrgetter("passage_id")
    texts: ClassVar = {
        Qt.ItemDataRole.DisplayRole: title_text,
        Qt.ItemDataRole.ToolTipRole: _tooltip,
        Qt.ItemDataRole.AccessibleTextRole: _spoken,
        ListRole.SUBTITLE: attrgetter("user_question"),
        ListRole.TRAILING: relevance_text,
    }

    def show_results(self, results: Sequence[SearchResult]) -> bool:
        """Show results, given best first; return whether any of them is more than just the nearest."""
        rows: list[object] = []
        found = results if any(map(is_found, results)) else ()
        if results and not found:
            rows = [Heading(_NOTHING_FOUND), *results[:_MOST_NEAR]]
        for name, kinds in _GROUPS:
            group = [result for result in found if result.kind in kinds]
            if group:
                rows += [Heading(f"{name} \N{MIDDLE DOT} {len(group)}"), *group]
        self.show_rows(rows)
        return bool(found)

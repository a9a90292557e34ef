"""Texts about what was or would be recalled, for `/rag`, the command line and the preview."""

from collections.abc import Sequence

from app.chat.inspector import LastRecall
from app.chat.recall_preview import Preview
from app.domain.links import document_link, link_to
from app.domain.passages import PassageKind
from app.domain.recall import RecalledItemDetails, RecallLayer
from app.domain.records.documents import FileState
from app.domain.text import escape_markdown, one_line, translate_lines

_TEXT_CHARS = 80
_OWN_WORDS = (PassageKind.FACT, PassageKind.MEMORY)
NOTHING_FOUND = "Nothing was found that answers this question."


def summary_text(places: Sequence[RecalledItemDetails]) -> str:
    """Return how many items were included in the prompt: 3 of 9 items found are included."""
    count = sum(each.item.injected for each in places)
    items = "item" if len(places) == 1 else "items"
    return f"{count} of {len(places)} {items} found {'is' if count == 1 else 'are'} included"


def budget_text(preview: Preview) -> str:
    """Return the use of recall's budgets: 212 of 1,200 tokens (rag_max_tokens)."""
    return ", ".join(
        f"{each.tokens:,} of {each.most_tokens:,} tokens ({each.key})"
        for each in preview.spent
        if each.key in ("rag_max_tokens", "auto_rag_max_tokens")
        or (each.key == "rag_document_max_tokens" and each.tokens)
    )


def name_text(place: RecalledItemDetails) -> str:
    """Return the name of a found item: its text, or title and question."""
    text = one_line(place.text, _TEXT_CHARS)
    if place.item.kind in _OWN_WORDS:
        return text or "deleted text"
    is_document = place.item.kind is PassageKind.DOCUMENT
    title = place.title or ("deleted document" if is_document else "deleted conversation")
    if place.title and place.file is not FileState.SAME:
        title += f" ({place.file.value})"
    if place.item.layer is RecallLayer.CONVERSATION or not text:
        return title
    return f"{title}: {text}"


def outcome_text(place: RecalledItemDetails) -> str:
    """Return the tokens of an included item, or why it is left out."""
    if place.item.injected:
        return f"{place.item.tokens:,} tokens"
    return f"left out: {place.item.dropped_by}"


def preview_markdown(preview: Preview) -> str:
    """Return a preview as Markdown: the items found in the order of the prompt, with links."""
    lines = [escape_markdown(translate_lines(preview.notice))] if preview.notice else []
    if not preview.places:
        return "\n\n".join(lines or [NOTHING_FOUND])
    lines.append(f"{summary_text(preview.places)}: {budget_text(preview)}.")
    lines.append(_table(preview.places))
    return "\n\n".join(lines)


def last_recall_text(last: LastRecall | None) -> str:
    """Return when recall last ran, for which question, and what it found, as Markdown."""
    if last is None:
        return "Recall has not run yet."
    prompt = last.prompt
    link = link_to(prompt.conversation_id, last.turn_number)
    question = escape_markdown(one_line(last.question, _TEXT_CHARS)) or "a question"
    found = f"{summary_text(last.places)}." if last.places else "Nothing was found."
    lines = [
        f"Last run on {prompt.sent_at.astimezone():%Y-%m-%d, %H:%M}: [{question}]({link}). {found}"
    ]
    if prompt.notice:
        lines.append(escape_markdown(translate_lines(prompt.notice)))
    if injected := [each for each in last.places if each.item.injected]:
        lines.append(_table(injected))
    return "\n\n".join(lines)


def _table(places: Sequence[RecalledItemDetails]) -> str:
    rows = [
        f"| {each.item.passage_id} | {each.item.layer.value}: {_linked(each)} "
        f"| {each.item.relevance:.0%} | {escape_markdown(outcome_text(each))} |"
        for each in places
    ]
    head = ("| Passage | | Relevance | |", "|---|---|---|---|")
    return "\n".join((*head, *rows))


def _linked(place: RecalledItemDetails) -> str:
    words = escape_markdown(name_text(place))
    if place.item.kind is PassageKind.DOCUMENT:
        return f"[{words}]({document_link(place.item.passage_id)})"
    if place.item.conversation_id is None:
        return words
    return f"[{words}]({link_to(place.item.conversation_id, place.turn_number or 0)})"

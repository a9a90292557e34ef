"""What was, or would be, recalled, in words: for `/rag` and the command line."""

from collections.abc import Sequence

from app.chat.last_recall import LastRecall
from app.chat.previewing import Preview
from app.domain.links import link_to
from app.domain.passages import PassageKind
from app.domain.recalls import RecalledPlace, RecallLayer
from app.domain.text import as_markdown, one_line

_TEXT_CHARS = 80
_OWN_WORDS = (PassageKind.FACT, PassageKind.MEMORY)
NOTHING_FOUND = "Nothing was found that this question could be answered from."


def summary_words(places: Sequence[RecalledPlace]) -> str:
    """Return how much was found and brought in: 3 of 9 things found are brought in."""
    count = sum(each.item.injected for each in places)
    things = "thing" if len(places) == 1 else "things"
    verb = "is" if count == 1 else "are"
    return f"{count} of {len(places)} {things} found {verb} brought in"


def budget_words(preview: Preview) -> str:
    """Return what of its budgets recall uses: 212 of 1,200 tokens (rag_max_tokens)."""
    return ", ".join(
        f"{each.tokens:,} of {each.most_tokens:,} tokens ({each.key})"
        for each in preview.spent
        if each.key in ("rag_max_tokens", "auto_rag_max_tokens")
    )


def name_words(place: RecalledPlace) -> str:
    """Return what something found is called: its own words, or title and question."""
    text = one_line(place.text, _TEXT_CHARS)
    if place.item.kind in _OWN_WORDS:
        return text or "a text that is gone"
    title = place.title or "a conversation that is gone"
    if place.item.layer is RecallLayer.CONVERSATION or not text:
        return title
    return f"{title}: {text}"


def fate_words(place: RecalledPlace) -> str:
    """Return what becomes of something found: brought in, or why not."""
    if place.item.injected:
        return f"{place.item.tokens:,} tokens"
    return f"left out: {place.item.dropped_by}"


def preview_markdown(preview: Preview) -> str:
    """Return a preview as Markdown: what is found in the order of the prompt, linked, and its fate."""
    lines = [as_markdown(preview.notice)] if preview.notice else []
    if not preview.places:
        return "\n\n".join(lines or [NOTHING_FOUND])
    lines.append(f"{summary_words(preview.places)}: {budget_words(preview)}.")
    lines.append(_table(preview.places))
    return "\n\n".join(lines)


def last_words(last: LastRecall) -> str:
    """Return when recall was asked last, for what, and what it found."""
    recalled = last.read()
    if recalled is None:
        return "Nothing has been looked for yet."
    prompt = recalled.prompt
    link = link_to(prompt.conversation_id, recalled.turn_number)
    question = as_markdown(one_line(recalled.question, _TEXT_CHARS)) or "a question"
    words = (
        f"Last looked for on {prompt.sent_at.astimezone():%Y-%m-%d, %H:%M}: [{question}]({link})"
    )
    found = f"{summary_words(recalled.places)}." if recalled.places else "Nothing was found."
    lines = [f"{words}. {found}"]
    if prompt.notice:
        lines.append(as_markdown(prompt.notice))
    injected = [each for each in recalled.places if each.item.injected]
    if injected:
        lines.append(_table(injected))
    return "\n\n".join(lines)


def _table(places: Sequence[RecalledPlace]) -> str:
    rows = [
        f"| {each.item.passage_id} | {each.item.layer.value}: {_linked(each)} "
        f"| {each.item.relevance:.0%} | {as_markdown(fate_words(each))} |"
        for each in places
    ]
    head = ("| Passage | | Relevance | |", "|---|---|---|---|")
    return "\n".join((*head, *rows))


def _linked(place: RecalledPlace) -> str:
    words = as_markdown(name_words(place))
    if place.item.conversation_id is None:
        return words
    return f"[{words}]({link_to(place.item.conversation_id, place.turn_number or 0)})"

"""Labels: of the sources of an answer, and of settings in texts of the services, which name them by key."""

import re

from app.chat.inspector import Source
from app.domain.passages import PassageKind
from app.domain.recall import RecalledItemDetails, RecallLayer, Verdict
from app.domain.records.documents import FileState
from app.domain.settings_schema import SETTINGS
from app.domain.text import one_line
from app.domain.translation import (
    format_day,
    format_number,
    format_percent,
    format_turn,
    quoted,
    tr,
)

_KEYS = "|".join(key for key in SETTINGS if "_" in key)
_NAMED = re.compile(rf"\b({_KEYS})\b(?:( \w+ )([01](?:[.,]\d+)?)(?![.,]?\d))?")
_DOT = " \N{MIDDLE DOT} "
_TITLE_CHARS = 36
_TEXT_CHARS = 44
_SOURCE_CHARS = 90
_LAYERS = {
    RecallLayer.MENTION: ("message-square", tr("Asked for")),
    RecallLayer.FACT: ("lightbulb", tr("Fact")),
    RecallLayer.CONVERSATION: ("message-square", tr("Conversation")),
    RecallLayer.EXCHANGE: ("quote", tr("Turn of it")),
    RecallLayer.HISTORY: ("quote", tr("Turn")),
    RecallLayer.HINT: ("waypoints", tr("Possibly related")),
    RecallLayer.DOCUMENT: ("paperclip", tr("Document")),
    RecallLayer.EARLIER: ("history", tr("Earlier in this conversation")),
}
_MEMORY = ("pencil", tr("Memory"))
_FILES = {
    FileState.SAME: "",
    FileState.CHANGED: f"{_DOT}{tr('changed since')}",
    FileState.GONE: f"{_DOT}{tr('file is gone')}",
}
VERDICT_TEXTS = {
    Verdict.UP: ("thumbs-up", tr("you rated it useful")),
    Verdict.DOWN: ("thumbs-down", tr("you rated it not useful")),
    Verdict.NEVER: ("x", tr("you asked not to use it again")),
}


def with_setting_labels(text: str) -> str:
    """Return text with the label of each setting that it names by its key, and relevances in percent."""
    return _NAMED.sub(_labelled, text)


def _labelled(found: re.Match[str]) -> str:
    key, between, value = found.groups()
    setting = SETTINGS[key]
    label = quoted(tr(setting.label))
    if value is None:
        return label
    if setting.kind is float and setting.maximum == 1:
        value = format_percent(float(value.replace(",", ".")))
    return f"{label}{between}{value}"


def icon_of(place: RecalledItemDetails) -> str:
    """Return the icon of the kind of a source."""
    return _kind(place)[0]


def kind_text(place: RecalledItemDetails) -> str:
    return _kind(place)[1]


def source_text(place: RecalledItemDetails, most_chars: int = _SOURCE_CHARS) -> str:
    """Return the label of a source: the text of a fact, the conversation and number of a turn."""
    if _is_text(place):
        return one_line(place.text or tr("a deleted text"), most_chars)
    title = _title(place, most_chars)
    if place.item.layer is RecallLayer.CONVERSATION or place.turn_number is None:
        return title
    return f"{title}, {format_turn(place.turn_number)}"


def inner_text(place: RecalledItemDetails) -> str:
    """Return the label of a turn below its conversation: its number and question."""
    number = tr("a turn") if place.turn_number is None else format_turn(place.turn_number)
    return one_line(f"{number}: {place.text}" if place.text else number, _SOURCE_CHARS)


def chip_text(place: RecalledItemDetails, *, with_turn: bool) -> str:
    """Return the label of a chip: a fact's text; a conversation's title and day, or turn."""
    if _is_text(place):
        return source_text(place, _TEXT_CHARS)
    if place.item.layer is RecallLayer.EARLIER:
        return (
            tr("Earlier here")
            if place.turn_number is None
            else format_turn(place.turn_number).capitalize()
        )
    title = _title(place, _TITLE_CHARS)
    if with_turn:
        return source_text(place, _TITLE_CHARS)
    return title if place.said_at is None else f"{title}{_DOT}{format_day(place.said_at)}"


def tip_text(source: Source) -> str:
    """Return the tooltip of a chip: kind, relevance, label and question."""
    place = source.place
    parts = [
        tr("{kind_text}, {relevance} relevant").format(
            kind_text=kind_text(place), relevance=format_percent(place.item.relevance)
        )
    ]
    if _is_text(place) and place.title:
        is_memory = place.item.kind is PassageKind.MEMORY
        parts.append(
            (
                tr("saved by a model in \u201c{title}\u201d")
                if is_memory
                else tr("said in \u201c{title}\u201d")
            ).format(title=place.title)
        )
    elif not _is_text(place):
        parts.append(source_text(place))
    words = ", ".join(parts)
    if not _is_text(place) and place.text:
        words += f": {one_line(place.text, 160)}"
    cited = tr(" Cited in the answer.") if source.cited else ""
    end = "" if words.endswith((".", "?", "!", "\N{HORIZONTAL ELLIPSIS}")) else "."
    return f"{words}{end}{cited} {opens_text(place)}"


def opens_text(place: RecalledItemDetails) -> str:
    """Return what opening a source shows, as text."""
    item = place.item
    if place.file is not FileState.SAME:
        is_there = place.file is FileState.CHANGED
        return tr("Opens what stands there now.") if is_there else tr("Its text is not kept.")
    if item.conversation_id is None or (item.kind is PassageKind.FACT and not place.exchange_id):
        return tr("Opens the fact.") if item.kind is PassageKind.FACT else tr("Opens the text.")
    if place.exchange_id is not None:
        return tr("Opens the turn.")
    if item.layer is RecallLayer.CONVERSATION:
        return tr("It was found by its summary. Opens the conversation.")
    return tr("Opens the conversation.")


def figures(source: Source) -> str:
    """Return all measures of a source, in one line."""
    item = source.place.item
    return _DOT.join(
        (
            tr("rank {rank}").format(rank=source.rank),
            tr("relevance {relevance}").format(relevance=format_percent(item.relevance)),
            cosine_text(item.cosine),
            tr("{coverage} of the question's words").format(coverage=format_percent(item.coverage)),
            tr("{tokens} tokens").format(tokens=format_number(item.tokens)),
            used_text(source),
            tr("passage {passage_id}").format(passage_id=item.passage_id),
        )
    )


def cosine_text(cosine: float | None) -> str:
    if cosine is None:
        return tr("no vector")
    return tr("cosine {cosine}").format(cosine=format_number(cosine, 3))


def used_text(source: Source) -> str:
    """Return whether a source was sent and cited, why not, and the user's rating."""
    item = source.place.item
    if not item.injected:
        words = (
            tr("not sent: {dropped_by}").format(dropped_by=with_setting_labels(item.dropped_by))
            if item.dropped_by
            else tr("not sent")
        )
    else:
        words = tr("sent and cited") if source.cited else tr("sent, not cited")
    return words if source.verdict is None else f"{words}; {VERDICT_TEXTS[source.verdict][1]}"


def _title(place: RecalledItemDetails, most_chars: int) -> str:
    """Return the title of a source, and what became of its file."""
    is_document = place.item.kind is PassageKind.DOCUMENT
    deleted = tr("a deleted document") if is_document else tr("a deleted conversation")
    return one_line(place.title or deleted, most_chars) + (
        _FILES[place.file] if place.title else ""
    )


def _kind(place: RecalledItemDetails) -> tuple[str, str]:
    return _MEMORY if place.item.kind is PassageKind.MEMORY else _LAYERS[place.item.layer]


def _is_text(place: RecalledItemDetails) -> bool:
    """Return whether a source is labeled by its text, not by its turn."""
    return place.item.kind in (PassageKind.FACT, PassageKind.MEMORY)

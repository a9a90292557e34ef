"""How something recalled is called in words: its kind, its place, what was measured, what became of it."""

from app.chat.inspecting import Source
from app.domain.passages import PassageKind
from app.domain.recalls import RecalledPlace, RecallLayer, Verdict
from app.domain.text import one_line
from ui.models.conversations import day_words
from ui.models.setting_words import labelled

_DOT = " \N{MIDDLE DOT} "
_TITLE_CHARS = 36
_TEXT_CHARS = 44
_SOURCE_CHARS = 90
_LAYERS = {
    RecallLayer.FACT: ("\N{BLACK FOUR POINTED STAR}", "Fact"),
    RecallLayer.CONVERSATION: ("\N{IDENTICAL TO}", "Conversation"),
    RecallLayer.EXCHANGE: ("\N{HEAVY DOUBLE TURNED COMMA QUOTATION MARK ORNAMENT}", "Turn of it"),
    RecallLayer.HISTORY: ("\N{HEAVY DOUBLE TURNED COMMA QUOTATION MARK ORNAMENT}", "Turn"),
    RecallLayer.EARLIER: ("\N{UPWARDS ARROW}", "Earlier in this conversation"),
}
_MEMORY = ("\N{LOWER RIGHT PENCIL}", "Memory")
VERDICT_WORDS = {
    Verdict.UP: ("\N{BLACK UP-POINTING TRIANGLE}", "you found it useful"),
    Verdict.DOWN: ("\N{BLACK DOWN-POINTING TRIANGLE}", "you found it not useful"),
    Verdict.NEVER: ("\N{MULTIPLICATION SIGN}", "you asked never to use it again"),
}


def sign_of(place: RecalledPlace) -> str:
    """Return the kind of a source in one character."""
    return _kind(place)[0]


def kind_words(place: RecalledPlace) -> str:
    """Return the kind of a source."""
    return _kind(place)[1]


def source_words(place: RecalledPlace, most_chars: int = _SOURCE_CHARS) -> str:
    """Return what a source is called: a fact by its text, a turn by its place."""
    if _is_text(place):
        return one_line(place.text or "a text that is gone", most_chars)
    title = one_line(place.title or "a conversation that is gone", most_chars)
    is_turn = place.item.layer is not RecallLayer.CONVERSATION and place.turn_number is not None
    return f"{title}, turn {place.turn_number}" if is_turn else title


def inner_words(place: RecalledPlace) -> str:
    """Return what a turn is called that stands below its conversation: its number and question."""
    number = "a turn" if place.turn_number is None else f"turn {place.turn_number}"
    return one_line(f"{number}: {place.text}" if place.text else number, _SOURCE_CHARS)


def chip_words(place: RecalledPlace, *, with_turn: bool) -> str:
    """Return what a chip says: a fact's text; a conversation's title and the day, or the turn."""
    if _is_text(place):
        return source_words(place, _TEXT_CHARS)
    if place.item.layer is RecallLayer.EARLIER:
        return "Earlier here" if place.turn_number is None else f"Turn {place.turn_number}"
    title = one_line(place.title or "a conversation that is gone", _TITLE_CHARS)
    if with_turn:
        return source_words(place, _TITLE_CHARS)
    return title if place.said_at is None else f"{title}{_DOT}{day_words(place.said_at)}"


def tip_words(source: Source) -> str:
    """Return what a chip says when asked: kind, place, relevance, and the question that began it."""
    place = source.place
    parts = [f"{kind_words(place)}, {place.item.relevance:.0%} relevant"]
    if _is_text(place) and place.title:
        is_memory = place.item.kind is PassageKind.MEMORY
        parts.append(
            f"{'saved by a model' if is_memory else 'said'} in \N{LEFT DOUBLE QUOTATION MARK}{place.title}\N{RIGHT DOUBLE QUOTATION MARK}"
        )
    elif not _is_text(place):
        parts.append(source_words(place))
    words = ", ".join(parts)
    if not _is_text(place) and place.text:
        words += f": {one_line(place.text, 160)}"
    cited = " Cited in the answer." if source.cited else ""
    end = "" if words.endswith((".", "?", "!", "\N{HORIZONTAL ELLIPSIS}")) else "."
    return f"{words}{end}{cited} {opens_words(place)}"


def opens_words(place: RecalledPlace) -> str:
    """Return what opening a source shows."""
    item = place.item
    if item.conversation_id is None or (item.kind is PassageKind.FACT and not place.exchange_id):
        return "Opens the fact." if item.kind is PassageKind.FACT else "Opens the text."
    if place.exchange_id is not None:
        return "Opens the turn."
    is_known_whole = item.layer is RecallLayer.CONVERSATION
    return (
        f"{'It was found by its summary: opens' if is_known_whole else 'Opens'} the conversation."
    )


def figures(source: Source) -> str:
    """Return all that was measured of a source, in a line."""
    item = source.place.item
    cosine = "no vector" if item.cosine is None else f"cosine {item.cosine:.3f}"
    return _DOT.join(
        (
            f"rank {source.rank}",
            f"relevance {item.relevance:.0%}",
            cosine,
            f"{item.coverage:.0%} of the question's words",
            f"{item.tokens:,} tokens",
            used_words(source),
            f"passage {item.passage_id}",
        )
    )


def used_words(source: Source) -> str:
    """Return what became of a source, why not if it was not sent, and what the user thinks of it."""
    item = source.place.item
    if not item.injected:
        words = f"left out: {labelled(item.dropped_by)}" if item.dropped_by else "left out"
    else:
        words = "sent and cited" if source.cited else "sent, not cited"
    return words if source.verdict is None else f"{words}; {VERDICT_WORDS[source.verdict][1]}"


def _kind(place: RecalledPlace) -> tuple[str, str]:
    return _MEMORY if place.item.kind is PassageKind.MEMORY else _LAYERS[place.item.layer]


def _is_text(place: RecalledPlace) -> bool:
    """Return whether it is known by its own words, not by where it was said."""
    return place.item.kind in (PassageKind.FACT, PassageKind.MEMORY)

"""What the text index holds of a passage: a document for each part, and how its fields weigh.

`body` holds the terms of a message, `context` those of its context (`traits.context_of`): the message
with its neighbours where they are short. `tools` and `title` weigh less. The numbers beside them are
what the ranking needs to know of a message: its traits and who stands around it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from zlib import crc32

import tantivy

from app.domain.passages import Part, PassageText
from app.index.analyser import Analysed, analyse, compounds_in
from app.index.dates import date_terms
from app.index.languages import language_of
from app.index.traits import NEAR, Traits, context_of, traits_of

FORMAT = 3  # raise it with every change of fields or analysis: older indexes are rebuilt

BODY = "body"
CONTEXT = "context"
WEIGHTS = {BODY: 1.0, "tools": 0.3, "title": 0.2}
SURFACE = "surface"
COMPOUNDS = "compounds"
PASSAGE = "passage"
PART = "part"
KIND = "kind"
LEADS = "leads"  # 1 for the first part of each passage: counts them
TRAITS = "traits"
SPEAKER = "speaker"
BEFORE = tuple(f"before_{step}" for step in range(1, NEAR + 1))
AFTER = tuple(f"after_{step}" for step in range(1, NEAR + 1))

_LANGUAGE_CHARS = 80  # fewer may hold too few small words to tell
_BREAK = " ¶ "  # no phrase reaches from one text into the other


def schema() -> tantivy.Schema:
    """Return the index's fields; all text is analysed before it comes here."""
    builder = tantivy.SchemaBuilder()
    for field in (PASSAGE, PART):
        builder.add_integer_field(field, indexed=True, fast=True)
    builder.add_integer_field(LEADS, indexed=True)
    builder.add_text_field(KIND, tokenizer_name="raw", index_option="basic")
    for field in (TRAITS, SPEAKER, *BEFORE, *AFTER):
        builder.add_integer_field(field, fast=True)
    for field in (*WEIGHTS, CONTEXT, COMPOUNDS):
        builder.add_text_field(field, tokenizer_name="whitespace", index_option="freq")
    builder.add_text_field(SURFACE, tokenizer_name="whitespace", index_option="position")
    return builder.build()


def speaker_number(name: str) -> int:
    """Return what stands for a speaker's name (case folded) in the index; 0 for none."""
    return crc32(name.encode()) if name else 0


@dataclass(frozen=True, slots=True)
class _Read:
    """A part's words, analysed."""

    part: Part
    language: str
    said: Analysed
    traits: Traits


class DocumentMaker:
    """Makes documents of passages; each part is analysed once, also as another's neighbour."""

    def __init__(self) -> None:
        self._read: dict[int, _Read] = {}

    def documents(self, passage: PassageText) -> Iterator[tuple[tantivy.Document, str]]:
        """Yield a document for each part and the language of its words; one at least."""
        sequence = [*passage.before, *passage.parts, *passage.after]
        whole = language_of(" ".join(part.text[:400] for part in passage.parts))
        read = [self._analysed(part, whole) for part in sequence]
        dated = date_terms(passage.created_at)
        title = analyse(passage.title, read[0].language if read else whole).terms
        first = len(passage.before)
        for at in range(first, first + len(passage.parts)):
            made = _document(passage, read, at, dated)
            made.add_text("title", title)
            made.add_text(KIND, passage.kind.value)
            made.add_integer(LEADS, int(at == first))
            yield made, read[at].language
        if not passage.parts:  # so that the passage counts as taken in
            made = tantivy.Document()
            made.add_integer(PASSAGE, passage.id)
            made.add_text(KIND, passage.kind.value)
            made.add_integer(LEADS, 1)
            made.add_text("title", title)
            yield made, whole

    def _analysed(self, part: Part, whole: str) -> _Read:
        known = self._read.get(part.id)
        if known is None or (known.part is not part and known.part != part):
            short = len(part.text) <= _LANGUAGE_CHARS
            language = whole if short else language_of(part.text, whole)
            said = analyse(part.text, language)
            known = self._read[part.id] = _Read(part, language, said, traits_of(part))
        return known


def _document(passage: PassageText, read: list[_Read], at: int, dated: str) -> tantivy.Document:
    own = read[at]
    tools = analyse(f"{own.part.calls}\n{own.part.results}".strip(), own.language)
    context = context_of([each.traits.words for each in read], at)
    made = tantivy.Document()
    made.add_integer(PASSAGE, passage.id)
    made.add_integer(PART, own.part.id)
    made.add_integer(TRAITS, own.traits.packed())
    made.add_integer(SPEAKER, speaker_number(own.traits.speaker))
    before = [read[each].part.id for each in range(at - 1, context.start - 1, -1)]
    after = [read[each].part.id for each in range(at + 1, context.stop)]
    for fields, ids in ((BEFORE, before), (AFTER, after)):
        for number, field in enumerate(fields):
            made.add_integer(field, ids[number] if number < len(ids) else 0)
    made.add_text(BODY, f"{own.said.terms} {dated}")
    made.add_text(CONTEXT, " ".join([*(read[each].said.terms for each in context), dated]))
    if tools.terms:
        made.add_text("tools", tools.terms)
    made.add_text(SURFACE, _BREAK.join((own.said.surface, tools.surface)))
    if compounds := compounds_in(own.said.terms, own.language):
        made.add_text(COMPOUNDS, " ".join(f"{each} <{each[::-1]}" for each in sorted(compounds)))
    return made

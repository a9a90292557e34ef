"""Text index schema: a document for each part of a passage, and the weights of its fields.

`body` holds the terms of a message, `context` those of its context
(`message_traits.context_range`): the message with its neighbors where they are short. `title` holds
those of the conversation's title, and so does `opening` in its first turn: there they count like
words of the messages. The numeric fields are what the ranking needs: the traits of the message and
the parts around it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from zlib import crc32

import tantivy

from app.domain.passages import PassageKind, PassagePart, PassageText
from app.index.message_traits import NEAR, Traits, context_range, message_traits
from app.language.analyzer import AnalyzedText, analyze, compounds_in
from app.language.date_terms import date_terms, written_date_terms
from app.language.languages import language_of

FORMAT = 11  # increase it with every change of fields or analysis: older indexes are rebuilt

BODY = "body"
CONTEXT = "context"
OPENING = "opening"
TITLE = "title"
WEIGHTS = {BODY: 1.0, OPENING: 1.0, "tools": 0.3, TITLE: 0.2}
SURFACE = "surface"
COMPOUNDS = "compounds"
PASSAGE = "passage"
PART = "part"
KIND = "kind"
LEADS = "leads"  # 1 for the first part of each passage, to count passages
TRAITS = "traits"
LABEL = "label"
BEFORE = tuple(f"before_{step}" for step in range(1, NEAR + 1))
AFTER = tuple(f"after_{step}" for step in range(1, NEAR + 1))

_LANGUAGE_CHARS = 80  # shorter texts may have too few stop words to identify the language
_WORD = re.compile(r"[^\s,;()\[\]]+")
_BREAK = " ¶ "  # prevents phrase matches across two texts


def index_schema() -> tantivy.Schema:
    """Return the fields; texts are analyzed before they are added."""
    builder = tantivy.SchemaBuilder()
    for field in (PASSAGE, PART):
        builder.add_integer_field(field, indexed=True, fast=True)
    builder.add_integer_field(LEADS, indexed=True)
    builder.add_text_field(KIND, tokenizer_name="raw", index_option="basic")
    for field in (TRAITS, LABEL, *BEFORE, *AFTER):
        builder.add_integer_field(field, fast=True)
    for field in (*WEIGHTS, CONTEXT, COMPOUNDS):
        builder.add_text_field(field, tokenizer_name="whitespace", index_option="freq")
    builder.add_text_field(SURFACE, tokenizer_name="whitespace", index_option="position")
    return builder.build()


def label_number(label: str) -> int:
    """Return the number of a message's label (case folded) in the index; 0 for none."""
    return crc32(label.encode()) if label else 0


@dataclass(frozen=True, slots=True)
class _AnalyzedPart:
    """A part with its analyzed words."""

    part: PassagePart
    language: str
    said: AnalyzedText
    traits: Traits


class PassageDocuments:
    """Builds the documents of passages; each part is analyzed once, also as a neighbor."""

    def __init__(self) -> None:
        self._read: dict[int, _AnalyzedPart] = {}

    def documents(self, passage: PassageText) -> Iterator[tuple[tantivy.Document, str]]:
        """Yield a document for each part (at least one) with the language of its words."""
        sequence = [*passage.before, *passage.parts, *passage.after]
        whole = language_of(" ".join(part.text[:400] for part in passage.parts))
        read = [self._analyzed(part, whole) for part in sequence]
        dated = _dates_of(passage, read)
        title = analyze(passage.title, read[0].language if read else whole).terms
        first = len(passage.before)
        for at in range(first, first + len(passage.parts)):
            made = _document(passage, read, at, dated)
            made.add_text(TITLE, title)
            if not passage.before and passage.kind is PassageKind.TURN:
                made.add_text(OPENING, title)
            made.add_text(KIND, passage.kind.value)
            made.add_integer(LEADS, int(at == first))
            yield made, read[at].language
        if not passage.parts:  # so that the passage is counted as indexed
            made = tantivy.Document()
            made.add_integer(PASSAGE, passage.id)
            made.add_text(KIND, passage.kind.value)
            made.add_integer(LEADS, 1)
            made.add_text(TITLE, title)
            yield made, whole

    def _analyzed(self, part: PassagePart, whole: str) -> _AnalyzedPart:
        known = self._read.get(part.id)
        if known is None or (known.part is not part and known.part != part):
            short = len(part.text) <= _LANGUAGE_CHARS
            language = whole if short else language_of(part.text, whole)
            said = analyze(part.text, language)
            known = self._read[part.id] = _AnalyzedPart(part, language, said, message_traits(part))
        return known


def _dates_of(passage: PassageText, read: list[_AnalyzedPart]) -> str:
    """Return the terms of a passage's date. That of a file counts only without dates in its name and text."""
    if passage.kind is not PassageKind.DOCUMENT:
        return date_terms(passage.created_at)
    named = [term for word in _WORD.findall(passage.title) for term in written_date_terms(word)]
    if named or any("month=" in each.said.terms for each in read):
        return " ".join(named)
    return date_terms(passage.created_at)


def _document(
    passage: PassageText, read: list[_AnalyzedPart], at: int, dated: str
) -> tantivy.Document:
    own = read[at]
    tools = analyze(f"{own.part.calls}\n{own.part.results}".strip(), own.language)
    context = context_range([each.traits.words for each in read], at)
    made = tantivy.Document()
    made.add_integer(PASSAGE, passage.id)
    made.add_integer(PART, own.part.id)
    made.add_integer(TRAITS, own.traits.packed())
    made.add_integer(LABEL, label_number(own.traits.label))
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

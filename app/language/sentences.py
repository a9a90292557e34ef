"""Plain sentences and weighted terms of Markdown text, without code, tables and tool output."""

import re
from collections.abc import Iterator

from app.language.date_words import MONTHS
from app.language.languages import FUNCTION_CHARACTERS, FUNCTION_WORDS, word_sets

# A regular expression keeps the interpreter locked while it runs, so strings are short.
_LINE_LIMIT_CHARS = 2_000
_STEM_CHARS = 6  # a cut there equates most inflections in most alphabets, without a stemmer

_FENCE = re.compile(r"(?:>\s?)*(```+|~~~+)")
_TABLE_ROW = re.compile(r"\|.*\||[\s|:+=-]+$")
_HEADING = re.compile(r"#{1,6}\s+")
_RULE = re.compile(r"([-*_=])(?:\s*\1){2,}$")
_LEAD = re.compile(r"(?:\s*(?:>|[-*+•‣◦]\s|\(?\d{1,3}[.)]\s|\[[ xX]\]\s))+")
_LINK = re.compile(r"!?\[([^\[\]]{0,300})\]\([^()\s]{0,500}(?:\([^()\s]{0,200}\))?[^()]{0,100}\)")
_NOISE = re.compile(
    r"<[/!]?[a-zA-Z][^<>]{0,300}>|【[^】]{0,80}】|\[\^[^\]]{0,30}\]|https?://\S+"
    r"|\$\$[^$]{0,500}\$\$|\\\(.{0,500}?\\\)|\\\[.{0,500}?\\\]|[\ue000-\uf8ff]+"
)
_MARKED = re.compile(r"[*_~`\\\[<【$\ue000-\uf8ff]|://")
_EMPHASIZED = re.compile(r"[*_~`]")
_NOISY = re.compile(r"[<【\[$\\\ue000-\uf8ff]|://")
_EMPHASIS = re.compile(
    r"(?<![\w\\])(\*{1,3}|_{1,3}|~~)(?=\S)|(?<=[^\s\\])(\*{1,3}|_{1,3}|~~)(?!\w)|`+"
)
_ESCAPE = re.compile(r"\\([\\`*_{}\[\]()#+.!|>~-])")

_BREAK = re.compile(r"[.!?…‽؟।]+[\"'”’»)\]]*(?=\s)|[。！？｡]+[\"'”’」』）】]*|\n")
_ABBREVIATIONS = word_sets("abbreviations")["abbreviations"]
_MONTHS = frozenset(name for names in MONTHS for name in names)
_WORD = re.compile(r"[^\W_]+(?:['’.][^\W_]+)*")
_UNSPACED = re.compile(
    "[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002fa1f]+"
)
_HIRAGANA = re.compile("[\u3040-\u309f]+")
_QUESTION_MARKS = ("?", "？", "؟", "\u037e")


def shorten_middle(text: str, limit_chars: int) -> str:
    """Return `text`, or three quarters of the limit from its start and one from its end."""
    if len(text) <= limit_chars:
        return text
    tail = limit_chars // 4
    return f"{text[: limit_chars - tail]}\n\n{text[-tail:]}"


def plain_text_lines(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the lines of prose of a Markdown text, and whether each is a list item.

    Code, tables, headings, rules and markup are left out.
    """
    fence = ""
    for raw in text.splitlines():
        line = raw[:_LINE_LIMIT_CHARS].strip()
        if not line:
            continue
        if line[0].isalpha():
            if not fence and (plain := _plain(line)):
                yield plain, False
            continue
        mark = _FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence) and not line[mark.end() :].strip():
                fence = ""
            continue
        if mark:
            fence = mark[1]
        elif not (_TABLE_ROW.match(line) or _RULE.match(line) or _HEADING.match(line)):
            lead = _LEAD.match(line)
            if plain := _plain(line[lead.end() :] if lead else line):
                yield plain, bool(lead)


def split_sentences(text: str) -> list[tuple[str, bool]]:
    """Return the sentences of a Markdown text in order, and whether each is from a list.

    A line break ends a sentence, as is usual in chats.
    """
    found: list[tuple[str, bool]] = []
    for line, is_item in plain_text_lines(text):
        start = 0
        for end in sentence_ends(line):
            if piece := line[start:end].strip():
                found.append((piece, is_item))
            start = end
    return found


def content_terms(sentence: str) -> list[str]:
    """Return the content of a sentence: word stems, and bigrams of scripts without spaces."""
    terms: list[str] = []
    words = split_words(sentence)
    if sentence.isascii():
        return [
            word[:_STEM_CHARS]
            for word in words
            if word not in FUNCTION_WORDS and (len(word) > 1 or word.isdigit())
        ]
    for word in words:
        if word.isascii() or not _UNSPACED.search(word):
            if word not in FUNCTION_WORDS and (len(word) > 1 or word.isdigit()):
                terms.append(word[:_STEM_CHARS])
        else:
            terms += _bigrams(word)
    return terms


def split_words(text: str) -> list[str]:
    """Return the words of a text, casefolded."""
    return _WORD.findall(text.casefold().replace("’", "'"))


def ends_with_question_mark(text: str) -> bool:
    return text.rstrip().endswith(_QUESTION_MARKS)


def unspaced_runs(text: str) -> list[str]:
    """Return the runs of Han, kana and Thai characters, which are written without spaces."""
    return _UNSPACED.findall(text)


def _plain(line: str) -> str:
    if not _MARKED.search(line):
        return " ".join(line.split())
    if "](" in line:
        line = _LINK.sub(r"\1", line)
    if _NOISY.search(line):
        line = _NOISE.sub("", line)
    if _EMPHASIZED.search(line):
        line = _EMPHASIS.sub("", line)
    if "\\" in line:
        line = _ESCAPE.sub(r"\1", line)
    return " ".join(line.split())


def lead_chars(line: str) -> int:
    """Return the length of what marks a line as a list item or a quotation."""
    lead = _LEAD.match(line)
    return lead.end() if lead else 0


def sentence_ends(line: str) -> Iterator[int]:
    """Yield the ends of the sentences in a line, the end of the line last."""
    for mark in _BREAK.finditer(line):
        start, end = mark.span()
        if line[start] != "." or not _is_abbreviation(line, start, end):
            yield end
    yield len(line)


def _is_abbreviation(line: str, dot: int, after: int) -> bool:
    rest = line[after : after + 2].lstrip()
    if rest[:1].islower():
        return True
    before = line[max(0, dot - 12) : dot].rsplit(None, 1)
    word = before[-1].casefold().lstrip("(\"'“„«") if before else ""
    if word.isdecimal() and len(word) <= 2 and before[:-1]:  # "am 3. Mai"
        return line[after:].split(maxsplit=1)[0].casefold().strip(".,;") in _MONTHS
    return word in _ABBREVIATIONS or (len(word) == 1 and word.isalpha() and word != "i")


def _bigrams(run: str) -> list[str]:
    pairs = []
    for piece in _UNSPACED.findall(run):
        for start in range(max(1, len(piece) - 1)):
            pair = piece[start : start + 2]
            if not (FUNCTION_CHARACTERS.intersection(pair) or _HIRAGANA.fullmatch(pair)):
                pairs.append(pair)
    return pairs

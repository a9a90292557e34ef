"""Titles of conversations from the first words of their messages, without greetings; Markdown as plain text."""

import re
from collections.abc import Iterable, Sequence

from app.domain.text import one_line
from app.language.languages import word_sets
from app.language.sentences import split_sentences

TITLE_LIMIT_CHARS = 60
_READ_CHARS = 2_000  # of a message
_MOST_OF_A_GREETING = 3  # words
_WORDS = word_sets("requests")
_COURTESIES = _WORDS["courtesies"] | _WORDS["unspaced courtesies"]
_GREETING = re.compile(r"([^,!.，！。~]{1,30})[,!.，！。~]+\s*")
_FENCES = ("```", "~~~")
_MARKS = "`#>|*=~_ \t"


def first_words(messages: Iterable[str]) -> str:
    """Return the first sentence of a user's messages that is more than a greeting, cut at a word.

    Of messages that only greet, the first one; "" if none has a word.
    """
    greeting = ""
    for text in messages:
        lines = _sentences(text[:_READ_CHARS])
        title = next((found for each in lines if (found := _without_greeting(each))), "")
        if title:
            return one_line(title, TITLE_LIMIT_CHARS).rstrip(".。:：,; ")
        greeting = greeting or one_line(" ".join(lines), TITLE_LIMIT_CHARS)
    return greeting


def _sentences(text: str) -> Sequence[str]:
    """Return the sentences of a Markdown text; of code or a table alone, its first line."""
    if found := [sentence for sentence, _ in split_sentences(text)]:
        return found
    lines = (line.strip(_MARKS) for line in text.splitlines() if not line.startswith(_FENCES))
    return [line for line in lines if any(sign.isalnum() for sign in line)][:1]


def _without_greeting(sentence: str) -> str:
    """Return a sentence without a greeting at its start; "" for a greeting alone."""
    while (found := _GREETING.match(sentence)) and _greets(found[1]):
        sentence = sentence[found.end() :]
        sentence = f"{sentence[:1].upper()}{sentence[1:]}"
    return "" if _greets(sentence.strip(_MARKS + ".!?…")) else sentence.strip()


def _greets(words: str) -> bool:
    """Return whether a few words begin with a courtesy."""
    said = words.casefold().split()
    return len(said) <= _MOST_OF_A_GREETING and bool(said) and said[0] in _COURTESIES


_LINE_MARKS = re.compile(
    r"^[ \t]*(?:"
    r"(?:`{3,}|~{3,})[^\n`]*$"  # code fences with a language name
    r"|(?:[-*_][ \t]*){3,}$"  # horizontal rules
    r"|\|?(?:[ \t]*:?-+:?[ \t]*\|)+[-: \t]*$"  # table header separators
    r"|=+[ \t]*$"  # heading underlines
    r"|(?:[#>]+[ \t]+)+"  # headings, quotations
    r"|[-*+][ \t]+(?:\[[ xX]\][ \t]+)?"  # bullets, tasks
    r")",
    re.MULTILINE,
)
_LINK = re.compile(r"!?\[([^\[\]\n]{0,300})\]\((?:[^()\s]|\([^()\s]*\)){0,600}(?: \"[^\"\n]*\")?\)")
_STARS = re.compile(r"(?<!\w)(?:\*{1,3}|~~)(?=\S)|(?<=\S)(?:\*{1,3}|~~)(?!\w)")
_TABLE_ROW = re.compile(r"^[ \t]*\|.*\|[ \t]*$", re.MULTILINE)


def strip_markdown(text: str) -> str:
    """Return `text` on one line without Markdown's marks and link targets."""
    text = _LINE_MARKS.sub("", text)
    text = _LINK.sub(r"\1", text)
    text = _STARS.sub("", text)
    text = _TABLE_ROW.sub(_row_in_line, text)
    return " ".join(text.replace("`", "").split())


def _row_in_line(row: "re.Match[str]") -> str:
    """Return a table's row as prose: its cells apart, and it apart from the next."""
    cells = (each.strip() for each in row[0].replace("\\|", "\0").strip().strip("|").split("|"))
    joined = " \N{MIDDLE DOT} ".join(each.replace("\0", "|") for each in cells if each)
    return f"{joined};" if joined else ""

"""Text operations: sanitizing, single-line excerpts, Markdown escaping, counts of words and their script, a word-level diff."""

import hashlib
import re
from dataclasses import dataclass
from enum import Enum, auto

from app.domain.translation import translate_filled

_UNSTORABLE = re.compile("[\ud800-\udfff\x00]")
_TAG_RUN = re.compile("(\U0001f3f4)?([\U000e0001-\U000e007f]+)")
_OVERRIDES = re.compile("[\u202d\u202e]")
_TAG_BASE = 0xE0000
_DIGITS_MAX = 38  # what the database can compare, a HUGEINT
_CANCEL_TAG = "\U000e007f"
RECALLED = "recalled"
PROFILE = "user-profile"
CORE_MEMORY = "core-memory"
SUMMARY = "earlier-summary"
ATTACHMENT = "attachment"
_MARK = re.compile(
    rf"<(?=\s*/?\s*(?:{RECALLED}|{PROFILE}|{CORE_MEMORY}|{SUMMARY}|{ATTACHMENT}))", re.IGNORECASE
)


def clean(text: str) -> str:
    """Return `text` sanitized for storage; all text from people, models, tools and imports passes here.

    Lone surrogates and NUL are replaced. Invisible characters become visible: tag characters (Unicode
    16, section 23.9) that form no emoji flag are spelled out, directional overrides shown as their code.
    Markup is not changed (see `ui/rendering`).
    """
    if (text.isascii() and "\x00" not in text) or _is_plain(text):
        return text
    if _UNSTORABLE.search(text):
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        text = text.replace("\x00", "\u2400")
    text = _TAG_RUN.sub(_show_tags, text)
    return _OVERRIDES.sub(lambda match: f"[U+{ord(match[0]):04X}]", text)


def one_line(text: str, limit_chars: int) -> str:
    """Return `text` with white space collapsed, truncated at a word within `limit_chars` with '…'."""
    folded = " ".join(text[: limit_chars * 4].split())
    if len(folded) <= limit_chars:
        return folded
    cut = folded[: limit_chars - 1]
    at_word = cut.rfind(" ")
    return (cut[:at_word] if at_word > limit_chars // 2 else cut).rstrip(" ,;:.") + "…"


def sentences(*parts: str) -> str:
    """Return the parts that are not empty as sentences, each with its own final punctuation."""
    return " ".join(
        part if part.endswith((".", "!", "?", "\u2026", ":")) else f"{part}."
        for part in map(str.strip, parts)
        if part
    )


def translate_lines(text: str) -> str:
    """Return problems, one a line, as sentences in the language in force."""
    return sentences(*map(translate_filled, text.splitlines()))


def parse_whole_number(text: str) -> int | None:
    """Return the non-negative integer that `text` spells; None for anything else and over 38 digits."""
    text = text.strip()
    return int(text) if text.isdecimal() and len(text) <= _DIGITS_MAX else None


def escape_markdown(text: str) -> str:
    """Return `text` escaped, so that Markdown shows it literally."""
    return "".join(f"\\{c}" if c in "\\`*_{}[]<>#|~$" else c for c in text)


def _is_plain(text: str) -> bool:
    """Return whether a text not in ASCII needs no change; ten times as fast as the patterns."""
    if "\x00" in text or "\u202d" in text or "\u202e" in text:
        return False
    try:
        encoded = text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return b"\xf3\xa0\x80" not in encoded and b"\xf3\xa0\x81" not in encoded


def _show_tags(match: re.Match[str]) -> str:
    flag, tags = match[1], match[2]
    if flag and tags.endswith(_CANCEL_TAG):
        return match[0]
    spelled = "".join(
        chr(ord(tag) - _TAG_BASE) if 0x20 <= ord(tag) - _TAG_BASE < 0x7F else "?" for tag in tags
    )
    return f"{flag or ''}[hidden: {spelled}]"


_WORDS = re.compile(r"\s*\w+|\s*[^\w\s]|\s+")  # spaces of their own would match everywhere
_MOST_WORDS = 1_500  # difflib takes 5 ms for two texts of so many, 150 of five words repeated


class DiffKind(Enum):
    """The kind of a diff run."""

    KEPT = auto()
    ADDED = auto()
    REMOVED = auto()


@dataclass(frozen=True, slots=True)
class DiffRun:
    """Adjacent words of the same kind."""

    text: str
    change: DiffKind


def word_diff(before: str, after: str) -> tuple[DiffRun, ...]:
    """Return a word-level diff; removed words precede the words added in their place.

    Texts of more than 1,500 words are not compared: all of `before` is removed, all of `after` added.
    """
    old, new = _WORDS.findall(before), _WORDS.findall(after)
    if max(len(old), len(new)) > _MOST_WORDS:
        return _stretches((before, DiffKind.REMOVED), (after, DiffKind.ADDED))
    from difflib import SequenceMatcher

    found: list[tuple[str, DiffKind]] = []
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            found.append(("".join(old[i1:i2]), DiffKind.KEPT))
        else:
            found += [
                ("".join(old[i1:i2]), DiffKind.REMOVED),
                ("".join(new[j1:j2]), DiffKind.ADDED),
            ]
    return _stretches(*found)


def _stretches(*found: tuple[str, DiffKind]) -> tuple[DiffRun, ...]:
    return tuple(DiffRun(text, change) for text, change in found if text)


def wrap_in_tag(name: str, text: str) -> str:
    """Return `text` in a tag; "" for none."""
    if not text:
        return ""
    mark = f"{name}-{content_hash(text)[:12]}"
    return f"<{mark}>\n{text.strip()}\n</{mark}>"


def sanitize(text: str) -> str:
    """Return text that cannot close a block."""
    return _MARK.sub("‹", clean(text))


def blockquote(text: str) -> str:
    """Return text as lines that begin with a quotation mark."""
    lines = sanitize(text).strip().splitlines() or [""]
    return "".join(f"> {line}\n" for line in lines)


_LATIN_END = "\u0250"
_MOSTLY = 0.5  # share of the words
_QUESTION_WORDS = frozenset(
    re.findall(
        r"\S+",
        """
    what what's who who's whom whose which when where where's why how is are was were do does did can could
    would should will has have was wer wen wem wie wo woher wohin wann warum wieso weshalb welche welcher
    welches ist sind hat haben kann que quoi qui quand où comment pourquoi quel quelle quels quelles combien
    est-ce qué quién cómo dónde cuándo cuál cuánto cuánta che cosa chi come dove quando perché quale quanto
    quem onde qual por wat hoe waar wanneer waarom welke что кто как где куда когда почему зачем какой какая
    какие сколько
""",
    )
)
_UNSPACED_QUESTION = re.compile(
    "[吗嗎呢]$|什么|什麼|怎么|怎麼|为什|為什|哪[里裡个個些]|多少|[谁誰]|何|いつ|どこ|どう|なぜ|か$"
)
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_ASCII_WORDS = {
    code: None if chr(code) == "'" else " " for code in range(128) if not chr(code).isalnum()
}
_SENTENCE = re.compile(r"[^.!?。！？\n]+[.!?。！？]*")


def question_share(said: str) -> float:
    """Return the share (0-1) of the words in sentences that end with a question mark."""
    if "?" not in said and "？" not in said:
        return 0.0
    asked = sum(
        count_words(each) for each in _SENTENCE.findall(said) if each.rstrip().endswith(("?", "？"))
    )
    return asked / count_words(said) if asked else 0.0


def is_question(said: str) -> bool:
    """Return whether most of a text asks, also without a question mark where it begins as questions do."""
    if question_share(said) >= _MOSTLY:
        return True
    text = said.strip()
    if text.endswith((".", "!", "。", "！")):
        return False
    first = text.split(maxsplit=1)[0].strip("¿¡,").casefold() if text else ""
    return first in _QUESTION_WORDS or _UNSPACED_QUESTION.search(text) is not None


def count_words(text: str) -> int:
    """Return the number of words; in unspaced scripts two characters count as a word."""
    if text.isascii():  # six times as fast as the pattern
        return len(text.replace("''", " ").translate(_ASCII_WORDS).split())
    count = 0
    for match in _WORD.finditer(text):
        word = match[0]
        count += 1 if word.isascii() or word[0] < "\u2e80" else max(1, len(word) // 2)
    return count


def is_mostly_latin(text: str) -> bool:
    """Return whether at least half of the letters are Latin; also without any letter."""
    if text.isascii():
        return True
    letters = [each for each in text if each.isalpha()]
    return 2 * sum(each < _LATIN_END or "\u1e00" <= each <= "\u1eff" for each in letters) >= len(
        letters
    )


def content_hash(text: str) -> str:
    """Return the first 32 hex digits of the text's SHA-256; equal texts are embedded once."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:32]

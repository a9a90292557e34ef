"""Patterns of statements, one data file for each language in resources/language/statements.

Each file has words and regular expressions that delimit what the writer states (`joins`, `leads`,
`unsure` ...) and, under `slots`, the patterns of each kind of fact. Fields in braces:

{name}, {place}    capitalized words: a person; a place, company or product
{words}, {age}     one to four words; 10 to 119
{not_product}      nothing, before a value that is no system or program: one may move to these too
{date}             up to 20 characters; a clause with it must hold a date (`DATED`)
{adv}              any of the file's `adverbs`, or nothing

Those of the first two lines are the group `value`, which every pattern has.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from app.language.date_words import MONTHS, WEEKDAYS
from app.language.languages import STOP_WORDS

_FOLDER = Path(__file__).resolve().parents[3] / "resources/language/statements"
LATIN = ("english", "german", "french", "spanish", "portuguese", "italian")
UNSPACED = frozenset({"chinese", "japanese"})
LANGUAGES = (*LATIN, "russian", *sorted(UNSPACED))

_CAPITAL = r"(?-i:[^\W\d_a-zß-öø-ÿа-яё])"
_WORD = rf"{_CAPITAL}[\w'’.&+#-]*"
_LINK = r"(?:de|du|des|del|della|di|da|do|dos|of|la|le|les|los|las|the|von|van|der|am|an der|y|e|aux|à|a|&)"
_NAME = rf"(?P<value>{_WORD}(?:[ ]{_WORD}){{0,3}})"
_PLACE = rf"(?P<value>(?:(?:the|la|le|les|el|los|den|der|die|das|o|il|lo) |l['’])?{_WORD}(?: (?:{_LINK} ){{0,2}}(?:{_WORD}|\d[\d.]*)){{0,3}})"
_NOT_PRODUCT = (
    r"(?!(?:the )?(?:linux|windows|mac|macos|ios|iphone|android|ubuntu|debian|fedora|arch|chrome|chromebook|firefox"
    r"|safari|edge|python|rust|java|kotlin|go|swift|typescript|javascript|postgres|mysql|mongo|docker|kubernetes"
    r"|azure|aws|teams|slack|notion|obsidian|discord|zoom|excel|word|outlook|gmail|signal|telegram|whatsapp|emacs"
    r"|vim|neovim|plan|team|chapter|part|step|phase|level)\b|(?-i:[a-z]*[A-Z][\w.]*(?:[a-z][A-Z]|\d|SQL)))"
)
_RUN = r"[^\s\W，。；！？、：,.;!?:的了吧呢吗嗎と不没沒很我你您他她它时時]"
_NOT_NAMED = r"(?!这|這|那|哪|什|啥|谁|誰|别|大家|人|老[婆公师師板]|.{0,2}[妈媽爸爷爺奶哥弟姐妹孩])"
_END_OF_CLAUSE = {
    "chinese": r"(?=(?:了|啊|呀|哦|吧|就好|就行|好了)?(?:$|[，,、。；;：！!…\s（]))",
    "japanese": r"(?=(?:です|だ|ください|下さい|ほしい|くれ)?(?:よ|ね|わ|が|けど|けれど|ので|から|し)*(?:$|[、。！!…\s]))",
}
_JOINT = re.compile(r",\s*(?:(?:the|den|dem|der|le|el|il|o|dia) )?", re.IGNORECASE)
_FEW_WORDS = re.compile(r"\w*(?:[^\w\n]+\w+){0,4}\W*$")
_WORDS = r"(?P<value>(?P<words>\w[\w'’.+#-]*(?: \w[\w'’.+#-]*){0,3}))"


@dataclass(frozen=True, slots=True)
class Patterns:
    """What delimits the statements of a language.

    Attributes:
        stops: Its stop words: none of them begins a value, and each ends one.
        subject: What a clause without a subject lacks after one that has it: "I ".
        is_verb_final: Whether a clause after "that" has another order than a sentence.
        split: The ends of clauses.
        leads: Words before a statement.
        inverted: Verb and subject after an adverb among them, in a language that then changes their order.
        negated: A clause that says the opposite.
        unsure: A sentence that does not assert: a condition, a report, a doubt.
        reported: What tells that an instruction is another's words.
        asking: The start of a question after a statement.
        introductions: What may stand before a colon and a statement.
        role_play: A message that begins role play or fiction, for the rest of its conversation.
        texts: A message that hands over a text or an exercise, or takes back what it says.
        supposed: A message whose rest is supposed.
        closings: The end of a letter.
    """

    language: str
    stops: frozenset[str]
    subject: str
    is_verb_final: bool
    split: re.Pattern[str]
    leads: re.Pattern[str]
    inverted: re.Pattern[str]
    negated: re.Pattern[str]
    unsure: re.Pattern[str]
    reported: re.Pattern[str]
    asking: re.Pattern[str]
    introductions: re.Pattern[str]
    role_play: re.Pattern[str]
    texts: re.Pattern[str]
    supposed: re.Pattern[str]
    closings: re.Pattern[str]


@cache
def patterns_of(language: str) -> Patterns:
    """Return the patterns of one of `LANGUAGES`; read once."""
    given = _read(language)
    spaced = language not in UNSPACED
    joins = rf"|\s+(?:{given['joins']})\s+" if spaced else f"|{given['joins']}"
    return Patterns(
        language=language,
        stops=STOP_WORDS[language] if spaced else frozenset(),
        subject=given["subject"],
        is_verb_final=given.get("verb_final", False),
        split=_compiled(rf"\s*[,;，；、]\s*|\s[–—-]+\s|\s*[—–]\s*|\s*\.{{2,}}\s*|\s*…\s*|:\s|：{joins}"),
        leads=_compiled(rf"(?:(?:{given['leads']})(?:[,!.:，！]\s*|\s+|(?<=\W))|[^\w\s\"'¿¡(]+\s*)+"),
        inverted=_compiled(given.get("inverted", "(?!)")),
        negated=_compiled(given["negated"]),
        unsure=_compiled(given["unsure"]),
        reported=_compiled(given["reported"]),
        asking=_compiled(given["asking"]),
        introductions=_compiled(rf"(?:{given['introductions']})\W*$"),
        role_play=_compiled("|".join(given["parts"])),
        texts=_compiled("|".join(given["texts"])),
        supposed=_compiled(given["supposed"]),
        closings=_compiled(rf"^\s*{given['closings']}\W*$"),
    )  # fmt: skip


def corrected_kind(language: str, text: str) -> re.Pattern[str] | None:
    """Return what a message names that this one only corrects; None if it says more, or corrects none.

    That is a weekday, or somewhere or someone by the same word: "in" of "no, in Milan".
    """
    found = _corrections(language).match(text)
    if found is None or not _FEW_WORDS.match(text, found.end()):
        return None
    by = found.groupdict().get("by")
    if by is None:
        return _weekday()
    return _compiled(by if language in UNSPACED else rf"\b{by} {_CAPITAL}")


@cache
def _corrections(language: str) -> re.Pattern[str]:
    return _compiled(_filled(_read(language)["corrections"], {"day": _weekday().pattern}))


@cache
def _weekday() -> re.Pattern[str]:
    return _compiled(rf"(?:{_names_in(WEEKDAYS)})(?:\b|(?<=[\u3040-\u9fff]))")


@cache
def slots_of(language: str) -> Mapping[str, Sequence[re.Pattern[str]]]:
    """Return the patterns of each kind of fact; compiling them takes 0.1 s for each language."""
    given = _read(language)
    fields = _fields(given, spaced=language not in UNSPACED)
    end = _END_OF_CLAUSE.get(language, r"(?!\w)")
    return {
        slot: tuple(_compiled(_filled(each, fields) + end) for each in patterns)
        for slot, patterns in given["slots"].items()
    }


@cache
def _read(language: str) -> Mapping[str, Any]:
    return tomllib.loads((_FOLDER / f"{language}.toml").read_text(encoding="utf-8"))


def _fields(given: Mapping[str, Any], *, spaced: bool) -> Mapping[str, str]:
    gap = r"[ ]" if spaced else ""
    adverbs = f"(?:(?:{given['adverbs']}),?{gap})*"
    fields = {
        "adv": adverbs,
        "not_product": _NOT_PRODUCT,
        "date": r"[^,;，；]{2,20}?",
        "age": r"(?P<value>1[01]\d|[1-9]\d)",
    }
    if spaced:
        return fields | {"name": _NAME, "place": _PLACE, "words": _WORDS}
    return fields | {
        "name": rf"(?P<value>{_NOT_NAMED}{_RUN}{{1,6}}(?<![来來去吃饭飯床])|[A-Z][a-z]+)",
        "place": rf"(?P<value>(?:(?![是有哪因]){_RUN}){{2,12}})",
        "words": rf"(?P<value>{_RUN}{{1,12}})",
    }


DATED = frozenset({"plan", "birthday"})


def end_of_date(text: str) -> int:
    """Return the end of the first date (day, month, weekday or year) in a text; 0 for none.

    A number after a weekday and a comma is the same day: "on Monday, the 30th of November".
    """
    found = _date().search(text)
    if found is None:
        return 0
    joint = _JOINT.match(text, found.end()) if _weekday().search(found[0]) else None
    same = _date().match(text, joint.end()) if joint else None
    return same.end() if same and any(map(str.isdigit, same[0])) else found.end()


@cache
def _date() -> re.Pattern[str]:
    months, days = map(_names_in, (MONTHS, WEEKDAYS))
    numbered = rf"\d{{1,2}}(?:st|nd|rd|th|er|\.|º)? (?:of |de )?(?:{months})|(?:{months}) \d{{1,4}}"
    named = rf"(?:in|im|en|em|au|a|в|ad|on|am|el|le|на|во?|next|nächsten|nächste) (?:early |late )?(?:{months}|{days})"
    return _compiled(
        rf"(?<![\w.])(?:{numbered}|{named}|(?:{days}) (?:prochain|próximo|que viene|prossimo)"
        r"|\d{1,2}[./]\d{1,2}\.?(?:[./]?\d{2,4})?|\d{4}-\d\d-\d\d|20\d\d"
        r"|\d{1,2}\s?月(?:\s?\d{1,2}\s?[日号號])?|(?:下周|下週|下星期|来週の?)[一二三四五六日天月火水木金土])"
    )


def _names_in(*tables: Iterable[Iterable[str]]) -> str:
    return "|".join(name for table in tables for names in table for name in names)


def _filled(pattern: str, fields: Mapping[str, str]) -> str:
    for name, field in fields.items():
        pattern = pattern.replace(f"{{{name}}}", field)
    return pattern


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.MULTILINE)

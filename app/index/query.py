"""The search language: words, "phrases", -exclusions and filters, parsed into a `SearchQuery`.

    flask login "exact phrase" -draft -"not this" title:"my trip" tag:work model:gpt
    source:chatgpt project:garden topic:tea after:2024-05 before:2025 is:archived is:pinned

Words rank in any order. A word that only looks like a filter (`12:30`, `std::vector`) is a word.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from app.domain.errors import InvalidInput
from app.domain.passages import SearchQuery
from app.domain.text import clean
from app.language.analyzer import is_one_character_word, surface_words_of

MIN_CHARS = 2
MAX_CHARS = 500
MAX_LIMIT = 50
DEFAULT_LIMIT = 20

_EXAMPLES = {
    "title": "title:budget",
    "tag": "tag:work",
    "model": "model:gpt",
    "source": "source:chatgpt",
    "project": "project:garden",
    "topic": "topic:garden",
    "before": "before:2025, before:2025-03 or before:2025-03-31",
    "after": "after:2025, after:2025-03 or after:2025-03-31",
    "is": "is:archived or is:pinned",
}
_QUOTES = str.maketrans(dict.fromkeys("“”„‟«»", '"'))
_TOKEN = re.compile(
    rf"""\s*+ (?P<minus>-(?!-))? (?: (?P<key>{"|".join(_EXAMPLES)}) : )?
         (?: "(?P<quoted>[^"]*+)"? | (?P<bare>[^\s"]++) )?""",
    re.VERBOSE | re.IGNORECASE,
)
_UNFINISHED = re.compile(rf'(?:^|\s)(?:{"|".join(_EXAMPLES)}):["“„]?$', re.IGNORECASE)
_DATE = re.compile(r"(\d{4})(?:-(\d{1,2}))?(?:-(\d{1,2}))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class QueryFilter:
    """A filter in a query, such as tag:"to read": its `text` from `start` to `end`, and parts."""

    text: str
    key: str
    value: str
    start: int
    end: int


def filters_in(text: str) -> list[QueryFilter]:
    """Return the valid filters of a query as typed, in order."""
    found: list[QueryFilter] = []
    for token in _TOKEN.finditer(text.translate(_QUOTES)):
        minus, key, quoted, bare = token.group("minus", "key", "quoted", "bare")
        value = " ".join((quoted or bare or "").split())
        if not key or minus or not value:
            continue
        key, start, end = key.lower(), token.start("key"), token.end()
        try:
            _filter_value(key, value, negated=False)
            if key in ("after", "before"):
                _day(key, value, None)
        except InvalidInput:
            continue
        found.append(QueryFilter(text[start:end], key, value, start, end))
    return found


def filter_text(key: str, value: str) -> str:
    """Return a filter as it is typed: tag:work, or tag:"to read" where a space needs quotes."""
    plain = " ".join(value.replace('"', " ").split())
    return f'{key}:"{plain}"' if " " in plain else f"{key}:{plain}"


def parse_query(text: str, limit: int = DEFAULT_LIMIT, zone: tzinfo | None = None) -> SearchQuery:
    """Parse `text`; dates are days in `zone` (None: the system's).

    An open quote runs to the end. Raises InvalidInput for a length outside 2 to 500 characters, a
    limit outside 1 to 50, a filter without a value or with a wrong one, and a query without any
    word.
    """
    asked = _checked(text, limit)
    words: list[str] = []
    phrases: list[str] = []
    excluded: list[str] = []
    filters: dict[str, list[str]] = {key: [] for key in _EXAMPLES}
    for token in _TOKEN.finditer(asked.translate(_QUOTES)):
        minus, key, quoted, bare = token.group("minus", "key", "quoted", "bare")
        value = " ".join((quoted if bare is None else bare or "").split()) if quoted or bare else ""
        if key:
            filters[key.lower()].append(_filter_value(key.lower(), value, minus is not None))
        elif minus and surface_words_of(value):
            excluded.append(value)
        elif value and not minus:
            words.append(value)
            if quoted and surface_words_of(value):
                phrases.append(value)
    states = {state.lower() for state in filters["is"]}
    query = SearchQuery(
        words=" ".join(words) if surface_words_of(" ".join(words)) else "",
        phrases=tuple(dict.fromkeys(phrases)),
        excluded=tuple(dict.fromkeys(excluded)),
        titles=tuple(filters["title"]),
        tags=tuple(filters["tag"]),
        models=tuple(filters["model"]),
        sources=tuple(filters["source"]),
        projects=tuple(filters["project"]),
        topics=tuple(filters["topic"]),
        after=max((_day("after", each, zone) for each in filters["after"]), default=None),
        before=min((_day("before", each, zone) for each in filters["before"]), default=None),
        archived="archived" in states,
        pinned="pinned" in states,
        limit=limit,
    )
    if query == SearchQuery(limit=limit):
        raise _names_nothing(asked)
    return query


def single_filters(text: str) -> Iterator[tuple[str, SearchQuery]]:
    """Yield each valid filter as typed, with a query of that filter alone."""
    for each in filters_in(text):
        yield each.text, parse_query(each.text)


def within_days(query: SearchQuery, days: tuple[date, date]) -> SearchQuery:
    """Return a query without words that finds what was said from one local day to another."""
    first, last = days
    start = None if first == date.min else _start_of(first)
    return replace(query, words="", after=start, before=_start_of(last + timedelta(days=1)))


def _start_of(day: date) -> datetime:
    return datetime.combine(day, time()).astimezone().astimezone(UTC)


def sentence_query(text: str, limit: int = DEFAULT_LIMIT) -> SearchQuery:
    """Return a query for the words of `text`, without any operator; raises as `parse_query`.

    For questions that are not typed into the search box, such as a model's.
    """
    asked = _checked(text, limit)
    if not surface_words_of(asked):
        raise _names_nothing(asked)
    return SearchQuery(words=" ".join(asked.split()), limit=limit)


def _checked(text: str, limit: int) -> str:
    if not 1 <= limit <= MAX_LIMIT:
        raise InvalidInput(
            f"{limit} results cannot be requested", f"The limit is a number from 1 to {MAX_LIMIT}."
        )
    asked = text.strip()
    asked = clean(asked) if len(asked) <= MAX_CHARS else asked
    if len(asked) > MAX_CHARS:
        raise InvalidInput(
            f"The query is {len(asked):,} characters long",
            f"Search takes {MIN_CHARS} to {MAX_CHARS} characters. Keep only the most important words.",
        )
    if len(asked) < MIN_CHARS and not (asked and is_one_character_word(asked)):
        raise InvalidInput(
            f"The query '{asked}' is too short", f"Type {MIN_CHARS} to {MAX_CHARS} characters."
        )
    return asked


def finished_part(query: str) -> str:
    """Return a query without a filter at its end whose value is still to be typed."""
    return _UNFINISHED.sub("", query).strip()


def _filter_value(key: str, value: str, negated: bool) -> str:
    if negated:
        raise InvalidInput(
            f"'-{key}:' cannot be excluded", "A minus excludes words and phrases, not filters."
        )
    if not value:
        raise InvalidInput(f"'{key}:' has no value", f"Write {_EXAMPLES[key]}, without a space.")
    if key == "is" and value.lower() not in ("archived", "pinned"):
        raise InvalidInput(f"Search has no filter 'is:{value}'", f"Write {_EXAMPLES[key]}.")
    return value


def _day(key: str, value: str, zone: tzinfo | None) -> datetime:
    """Return the first moment of a year, month or day, in UTC."""
    match = _DATE.fullmatch(value)
    try:
        year, month, day = (int(part or 1) for part in match.groups()) if match else (0, 0, 0)
        local = datetime(year, month, day, tzinfo=zone)
        return local.astimezone(UTC)  # without a zone: the system's own at that time
    except (ValueError, OverflowError, OSError) as error:
        raise InvalidInput(f"'{key}:{value}' is not a date", f"Write {_EXAMPLES[key]}.") from error


def _names_nothing(asked: str) -> InvalidInput:
    return InvalidInput(f"'{asked}' has no word to search for", "Type a word or two.")

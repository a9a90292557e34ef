"""Briefs: what memory holds on a question, or turns of a conversation, as Markdown for another program or a colleague.

A brief is made of verbatim quotations, each dated and linked, and of facts. It never has more
tokens than asked for.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import takewhile
from math import ceil
from typing import NamedTuple

from app.domain.conversations import Attachment, Block, Exchange, ExchangeStatus, Role, Text
from app.domain.errors import InvalidInput
from app.domain.links import link_to
from app.domain.passages import PassageKind
from app.domain.results import FoundAnswer
from app.domain.text import one_line
from app.domain.turns import NAMELESS, turn_text
from app.language.secrets import masked
from app.memory.recall.answers import AnswerFinder
from app.memory.recall.quotation import beginning, of_file
from app.storage.engine.store import Store
from app.storage.tables.conversations import Conversations
from app.storage.tables.exchanges import Exchanges
from app.storage.tables.facts import Facts

MIN_TOKENS, MAX_TOKENS = 100, 50_000
_REMARK_TOKENS = 30  # of the remark that turns are left out, or that nothing was found or fits
_TURN_TOKENS = 20  # of the shortest turn
_CHARS_PER_TOKEN = 6  # at most
_TURNS_LEAST = 8  # that have room before one of them is cut
_SIDE_CHARS = 80  # less is not quoted of a side
_FOUND = 30
_TITLE_CHARS = 120
_KINDS = (PassageKind.TURN, PassageKind.CONVERSATION_SUMMARY)
_FILES = (PassageKind.DOCUMENT,)
_FACTS = (PassageKind.FACT, PassageKind.MEMORY)


class Briefs:
    """Writes briefs. Thread-safe; blocking."""

    def __init__(self, store: Store, answers: AnswerFinder) -> None:
        self._exchanges = Exchanges(store)
        self._conversations = Conversations(store)
        self._facts = Facts(store)
        self._answers = answers

    def write(self, question: str, max_tokens: int, project: str | None = None) -> str:
        """Return a brief on a question of at most `max_tokens`.

        It has what may be recalled in a project, by its uid; None: outside all bounded ones. Raises
        InvalidInput for a number out of range, and as `SearchService.search`.
        """
        if not MIN_TOKENS <= max_tokens <= MAX_TOKENS:
            raise InvalidInput(
                f"A brief cannot have {max_tokens:,} tokens",
                f"Ask for {MIN_TOKENS} to {MAX_TOKENS:,}.",
            )
        facts = list(map(_masked, self._answers.find(question, _FOUND, _FACTS, project)))
        said = list(map(_masked, self._answers.find(question, _FOUND, _KINDS, project)))
        files = list(map(_masked, self._answers.find(question, _FOUND, _FILES, project)))
        page = _Page(max_tokens - _REMARK_TOKENS)
        page.add(f"# {one_line(question, _TITLE_CHARS)}\n")
        page.left_tokens += _REMARK_TOKENS
        room = page.left_tokens
        if not facts and not said and not files:
            page.add("\nNothing about this was found. Other words may find more.\n")
            return page.text
        page.section("Facts", map(_fact, facts))
        page.section("Quotations", map(_quotation, said))
        page.section("Documents", map(_quotation, files))
        page.section("Open ends", self._open_ends(said))
        if page.left_tokens == room:
            page.add("\nWhat was found does not fit. Ask for more tokens.\n")
        return page.text

    def of_turns(self, turns: Sequence[Exchange], max_tokens: int = 8_000) -> tuple[str, int]:
        """Return turns of one conversation, in order, with what was learned from them, and their count.

        Long ones are cut where not all fit; then the first are there, and the number of the others
        is given. Raises NotFound.
        """
        talk = self._conversations.get(turns[0].conversation_id)
        title, own = one_line(masked(talk.title), _TITLE_CHARS), {each.id for each in turns}
        page = _Page(max_tokens - _REMARK_TOKENS)
        page.add(f"# {title}\n")
        page.section(
            "Facts",
            (
                f"- {one_line(masked(each.text), 1000)} ({each.said_at:%Y-%m-%d})\n"
                for each in self._facts.of_conversation(talk.id)
                if each.exchange_id in own and each.valid_until is None
            ),
        )
        page.add("\n## Quotations\n\n")
        count = page.left_tokens // _TURN_TOKENS
        quotations = [self._turn(each, title) for each in turns[:count]]
        most = max(
            _even_limit([each.tokens for each in quotations], page.left_tokens),
            page.left_tokens // _TURNS_LEAST,
        )
        fitting = (each.cut_to(min(most, page.left_tokens)) for each in quotations)
        count = sum(takewhile(bool, map(page.add, fitting)))
        ends = (each for each in turns[:count] if each.status is not ExchangeStatus.COMPLETED)
        page.section("Open ends", map(_open_end, ends))
        if rest := len(turns) - count:
            return f"{page.text}\nTurns left out because they do not fit: {rest}\n", count
        return page.text, count

    def _turn(self, turn: Exchange, title: str) -> "_Quotation":
        messages = self._exchanges.messages_of(turn)
        said = turn_text(
            (each.role, list(map(_as_quoted, each.blocks)))
            for each in messages
            if each.role is not Role.SYSTEM
        )
        sides = (("You", masked(said.user)), (turn.model or "Reply", masked(said.assistant)))
        link = link_to(turn.conversation_id, turn.turn_number)
        return _Quotation(f"{title}, {turn.started_at:%Y-%m-%d}, {link}", sides)

    def _open_ends(self, said: Sequence[FoundAnswer]) -> Iterator[str]:
        """Yield the turns found whose reply failed or was interrupted."""
        ids = [each.result.exchange_id for each in said if each.result.exchange_id is not None]
        found = self._exchanges.by_ids(ids)
        for each in said:
            exchange = found.get(each.result.exchange_id) if each.result.exchange_id else None
            if exchange is not None and exchange.status is not ExchangeStatus.COMPLETED:
                yield f"- {_place(each)}: the reply is {exchange.status.value}\n"


class _Page:
    """Markdown within a limit of tokens; what does not fit is left out."""

    def __init__(self, limit_tokens: int) -> None:
        self.text = ""
        self.left_tokens = limit_tokens

    def add(self, text: str) -> bool:
        tokens = most_tokens(text)
        if tokens > self.left_tokens:
            return False
        self.left_tokens -= tokens
        self.text += text
        return True

    def section(self, heading: str, entries: Iterable["str | _Quotation"]) -> None:
        """Add a heading with the entries that fit, in order; the first quotation is cut to fit."""
        title = f"\n## {heading}\n\n"
        for entry in entries:
            text = entry
            if isinstance(entry, _Quotation):
                room = self.left_tokens - most_tokens(title)
                text = entry.cut_to(room) if title else _quoted(*entry)
            if self.add(f"{title}{text}"):
                title = ""


class _Quotation(NamedTuple):
    """A turn to be quoted: what each side said, by who it is."""

    place: str
    sides: Sequence[tuple[str, str]]

    @property
    def tokens(self) -> int:
        return most_tokens(_quoted(*self))

    def cut_to(self, limit_tokens: int) -> str:
        """Return it as Markdown, of each side so much of the beginning that it fits if possible."""
        if self.tokens <= limit_tokens:
            return _quoted(*self)

        def cut(limit_chars: int) -> str:
            sides = [(who, beginning(text, limit_chars)) for who, text in self.sides]
            return _quoted(self.place, sides)

        chars = range(_SIDE_CHARS, _SIDE_CHARS + max(0, limit_tokens) * _CHARS_PER_TOKEN + 1)
        count = bisect_right(chars, limit_tokens, key=lambda n: most_tokens(cut(n)))
        return cut(chars[max(count - 1, 0)])


_ASCII_TOKEN = re.compile(r"(?<![a-z])[a-z]{1,3}|[a-z]{1,2}|[!-`{-~]|[\n\t]+|  +")
_OTHER = re.compile(r"[^\x00-\x7f]")


def most_tokens(text: str) -> int:
    """Return how many tokens a text has at most, by its letters, digits and signs.

    Measured with the tokenizers of GPT-4, GPT-4o and Claude: 1.05 to 2.2 times the highest of their numbers for
    prose in 15 languages, code, logs, tables, formulas, keys and emoji; only random words have more.
    """
    others = (
        4 if each > "\uffff" else 2 if each > "\u07ff" else 1.5 for each in _OTHER.findall(text)
    )
    return len(_ASCII_TOKEN.findall(text)) + ceil(sum(others))


def _even_limit(sizes: Sequence[int], room: int) -> int:
    """Return the size to which the larger ones are cut so that all fit in the room."""
    for count, size in zip(range(len(sizes), 0, -1), sorted(sizes), strict=True):
        if size * count > room:
            return room // count
        room -= size
    return max(sizes, default=0)


def _as_quoted(block: Block) -> Block:
    if isinstance(block, Attachment):
        return Text(of_file(block.name.strip() or NAMELESS, block.text).strip())
    return block


def _masked(found: FoundAnswer) -> FoundAnswer:
    return replace(found, question=masked(found.question), reply=masked(found.reply))


def _fact(found: FoundAnswer) -> str:
    return f"- {one_line(found.reply, 1000)} ({_date(found)}{_linked(found)})\n"


def _quotation(found: FoundAnswer) -> _Quotation:
    sides = [("You", found.question), (found.result.model or "Reply", found.reply)]
    if found.result.kind is not PassageKind.TURN:
        who = "Document" if found.result.kind is PassageKind.DOCUMENT else "Summary"
        sides = [(who, found.reply)]
    return _Quotation(_place(found), sides)


def _open_end(turn: Exchange) -> str:
    link = link_to(turn.conversation_id, turn.turn_number)
    return f"- {link}: the reply is {turn.status.value}\n"


def _quoted(place: str, sides: Iterable[tuple[str, str]]) -> str:
    quoted = "\n>\n".join(
        "\n".join(f"> {line}".rstrip() for line in f"**{who}:** {text}".splitlines())
        for who, text in sides
        if text
    )
    return f"### {place}\n\n{quoted}\n\n"


def _place(found: FoundAnswer) -> str:
    title = one_line(masked(found.result.conversation_title), _TITLE_CHARS) or "Saved text"
    return f"{title}, {_date(found)}{_linked(found)}"


def _date(found: FoundAnswer) -> str:
    return found.result.created_at.strftime("%Y-%m-%d")


def _linked(found: FoundAnswer) -> str:
    result = found.result
    if result.conversation_id is None:
        return ""
    return f", {link_to(result.conversation_id, result.turn_number)}"

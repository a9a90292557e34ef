"""`facts`: what was learned, found, worded anew, pinned, told of, forgotten.

The documents: `list` gives {"total", "facts": [FACT]}, `search` {"query", "facts": [FACT]}, `history`
{"fact": FACT, "versions": [{"text", "category", "model", "said_at", "made_at", "conversation_id",
"exchange_id", "message_id"}], "superseded": [ID]}, newest version first; `forget` gives
{"forgotten": [ID], "remains": [TEXT]}, the others {"fact": FACT}. A FACT is {"id", "uid", "text",
"category", "subject", "pinned", "model", "said_at", "made_at", "valid_until", "superseded_by",
"conversation_id", "conversation_title", "turn_number", "exchange_id", "message_id", "versions"}.
"""

from argparse import Namespace
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from app.bootstrap import Services
from app.cli.arguments import WrongUsage
from app.cli.terminal import NotAgreed, Terminal
from app.domain.errors import IndexUnavailable, InvalidInput
from app.domain.facts import FactCategory, FactVersion
from app.domain.ids import ConversationId
from app.memory.facts import fact_number
from app.storage.facts import FactFilter, KnownFact

_MOST = 50
_Deed = Callable[[Services, Namespace, Terminal], int]


def facts(services: Services, given: Namespace, terminal: Terminal) -> int:
    """Do with facts what the first word says."""
    least, most = _WORDS[given.action]
    if not least <= len(given.words) <= most:
        raise WrongUsage(
            f"'facts {given.action}' takes {_count(least, most)}", "See 'commonplace facts --help'."
        )
    if not 1 <= given.limit <= _MOST or given.offset < 0:
        raise InvalidInput(
            f"--limit {given.limit} --offset {given.offset} names no page of facts",
            f"Allowed: --limit 1 to {_MOST}, --offset from 0 on.",
        )
    return _DEEDS[given.action](services, given, terminal)


def _list(services: Services, given: Namespace, terminal: Terminal) -> int:
    if given.conversation is not None:
        services.conversations.get(given.conversation)
    which = FactFilter(
        category=FactCategory(given.category) if given.category else None,
        conversation_id=None if given.conversation is None else ConversationId(given.conversation),
        ended=given.all,
        limit=given.limit,
        offset=given.offset,
    )
    found = services.facts.listed(which)
    total = services.facts.count(which)
    if terminal.as_json:
        terminal.document({"total": total, "facts": [fact_plain(each) for each in found]})
        return 0
    for each in found:
        _print(each, terminal)
    if total > len(found):
        terminal.err(f"{len(found):,} of {total:,}; --offset shows more.")
    elif not total:
        terminal.err("No facts are known yet.")
    return 0


def _search(services: Services, given: Namespace, terminal: Terminal) -> int:
    query = " ".join(given.words)
    with suppress(IndexUnavailable):  # then words alone find
        services.index_sync.catch_up_a_little(terminal.cancelled)
    found = services.fact_book.search(query, given.limit)
    if terminal.as_json:
        terminal.document({"query": query, "facts": [fact_plain(each) for each in found]})
        return 0
    for each in found:
        _print(each, terminal)
    if not found:
        terminal.err(f"No fact answers '{query}'.")
    return 0


def _history(services: Services, given: Namespace, terminal: Terminal) -> int:
    known = services.facts.get(fact_number(given.words[0]))
    versions = services.facts.versions(known.fact.id)
    before = services.facts.superseded_by(known.fact.id)
    if terminal.as_json:
        terminal.document(
            {
                "fact": fact_plain(known),
                "versions": [_version(each) for each in versions],
                "superseded": [each.id for each in before],
            }
        )
        return 0
    _print(known, terminal)
    for version in versions:
        at = f"{version.made_at.astimezone():%Y-%m-%d %H:%M}"
        terminal.line(f"        {at}  {version.model}  {version.text}")
    for each in before:
        terminal.line(f"        took the place of {each.id}: {each.text}")
    return 0


def _add(services: Services, given: Namespace, terminal: Terminal) -> int:
    category = FactCategory(given.category or FactCategory.OTHER)
    return _told(services, services.fact_book.add(" ".join(given.words), category).id, terminal)


def _edit(services: Services, given: Namespace, terminal: Terminal) -> int:
    fact_id = fact_number(given.words[0])
    text = " ".join(given.words[1:]) or None
    if text is None and not given.category:
        raise WrongUsage("'facts edit' needs another wording or --category", "facts edit ID TEXT")
    category = FactCategory(given.category) if given.category else None
    return _told(services, services.fact_book.edit(fact_id, text, category).id, terminal)


def _pin(services: Services, given: Namespace, terminal: Terminal) -> int:
    fact_id = fact_number(given.words[0])
    return _told(services, services.fact_book.pin(fact_id, given.action == "pin").id, terminal)


def _forget(services: Services, given: Namespace, terminal: Terminal) -> int:
    known = services.facts.get(fact_number(given.words[0]))
    if not given.yes:
        _print(known, terminal, terminal.err)
        terminal.err("would be gone for ever, out of the backups too, and not be learned again.")
        if not terminal.says_yes():
            raise NotAgreed("Nothing was forgotten: nobody agreed to it", "Add --yes to agree.")
    left = services.fact_book.forget(known.fact.id)
    services.index_sync.catch_up_soon()
    if terminal.as_json:
        terminal.document({"forgotten": [known.fact.id], "remains": list(left)})
    for remark in left:
        terminal.err(remark)
    return 0


_DEEDS: Mapping[str, _Deed] = {
    "list": _list,
    "search": _search,
    "history": _history,
    "add": _add,
    "edit": _edit,
    "pin": _pin,
    "unpin": _pin,
    "forget": _forget,
}
_MANY = 1_000_000
_WORDS = {
    "list": (0, 0),
    "search": (1, _MANY),
    "history": (1, 1),
    "add": (1, _MANY),
    "edit": (1, _MANY),
    "pin": (1, 1),
    "unpin": (1, 1),
    "forget": (1, 1),
}


def _count(least: int, most: int) -> str:
    if most == 0:
        return "no more words"
    return "one fact's number" if most == 1 else f"at least {least} word"


def _told(services: Services, fact_id: int, terminal: Terminal) -> int:
    known = services.facts.get(fact_id)
    if terminal.as_json:
        terminal.document({"fact": fact_plain(known)})
    else:
        _print(known, terminal)
    return 0


def _print(known: KnownFact, terminal: Terminal, say: Callable[[str], None] | None = None) -> None:
    fact = known.fact
    place = ""
    if fact.conversation_id is not None:
        turn = "" if known.turn_number is None else f":{known.turn_number}"
        place = f"  {known.conversation_title} [{fact.conversation_id}{turn}]"
    said = f"{fact.said_at.astimezone():%Y-%m-%d}"
    if fact.valid_until is not None:
        said += f" until {fact.valid_until.astimezone():%Y-%m-%d}"
    mark = "*" if fact.pinned else " "
    (say or terminal.line)(f"{fact.id:6} {mark} {fact.text}")
    (say or terminal.line)(f"         {fact.category.value}, {said}{place}")
    if known.successor:
        (say or terminal.line)(f"         superseded by {fact.superseded_by}: {known.successor}")


def fact_plain(known: KnownFact) -> dict[str, Any]:
    """Return a fact as the documents show it."""
    fact = known.fact
    return {
        "id": fact.id,
        "uid": fact.uid,
        "text": fact.text,
        "category": fact.category.value,
        "subject": fact.subject,
        "pinned": fact.pinned,
        "model": fact.model,
        "said_at": fact.said_at.isoformat(),
        "made_at": fact.made_at.isoformat(),
        "valid_until": fact.valid_until.isoformat() if fact.valid_until else None,
        "superseded_by": fact.superseded_by,
        "conversation_id": fact.conversation_id,
        "conversation_title": known.conversation_title,
        "turn_number": known.turn_number,
        "exchange_id": fact.exchange_id,
        "message_id": fact.message_id,
        "versions": known.versions,
    }


def _version(version: FactVersion) -> dict[str, Any]:
    return {
        "text": version.text,
        "category": version.category.value,
        "model": version.model,
        "said_at": version.said_at.isoformat(),
        "made_at": version.made_at.isoformat(),
        "conversation_id": version.conversation_id,
        "exchange_id": version.exchange_id,
        "message_id": version.message_id,
    }

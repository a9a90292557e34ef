"""Benchmark of facts learned without a model: how many are true, and how many true ones are learned; prints JSON.

    python -m tests.bench.facts [--half develop|held_out ...] [--data FILE ...] [--show]

Each conversation goes into a library of its own and is read by the real worker. A current fact is
true when its text contains the value of one that should be learned and, for an attribute with one
value at a time, has its slot. `replaced` counts values that another one displaced wrongly.
`--data` reads files like tests/data/facts_develop.toml.
"""

import tempfile
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from app.domain.records.facts import Fact
from app.domain.workers import WorkerName
from app.language.statements.extraction import Statement
from app.memory.facts import contains_value
from app.storage.engine.store import Store
from app.storage.tables.facts import FactFilter, Facts
from app.storage.tables.settings import Settings
from app.workers.board import WorkerBoard
from app.workers.jobs import JobParts
from app.workers.jobs.knowledge_extractor import KnowledgeExtractor
from tests.bench.shared.measuring import ROOT, Figures, options, print_json, timed
from tests.fakes.jobs import JumpingClock
from tests.fakes.stored import add_conversation, opened

ANSWER = "Noted, thank you."


@dataclass(frozen=True, slots=True)
class Expected:
    """A fact that should be learned."""

    category: str
    slot: str
    value: str


@dataclass(frozen=True, slots=True)
class Talk:
    """What a user says in a conversation, and the facts that it holds at the end."""

    language: str
    kind: str
    says: tuple[str, ...]
    facts: tuple[Expected, ...]


def main() -> None:
    given = options(__doc__, half=["develop", "held_out"], data=[Path], show=False)
    paths = given.data or [ROOT / f"tests/data/facts_{each}.toml" for each in given.half]
    print_json({path.stem: measured(read_talks(path), show=given.show) for path in paths})


def read_talks(path: Path) -> list[Talk]:
    """Return the conversations of a file."""
    return [
        Talk(
            each["language"], each["kind"], tuple(each["says"]),
            tuple(Expected(*fact) for fact in each["facts"]),
        )
        for each in tomllib.loads(path.read_text(encoding="utf-8"))["talk"]
    ]  # fmt: skip


def measured(talks: Sequence[Talk], *, show: bool = False) -> Figures:
    """Return precision, recall and counts, together and by language; what is wrong with `show`."""
    took = timed(lambda: [learned(talk) for talk in talks])
    pairs = list(zip(talks, took.result, strict=True))
    figures = summed(pairs) | {"ms": round(took.ms)}
    figures["languages"] = {
        language: summed([pair for pair in pairs if pair[0].language == language])
        for language in dict.fromkeys(talk.language for talk in talks)
    }
    if show:
        figures["wrong"] = [
            {"talk": f"{talk.language}: {talk.kind}", "false": false, "missing": missing}
            for talk, facts in pairs
            if (false := [f"{f.subject} | {f.text}" for f in facts if not true_of(f, talk.facts)])
            + (missing := [f"{e.slot}: {e.value}" for e in talk.facts if not found_in(e, facts)])
        ]
    return figures


def learned(talk: Talk) -> list[Fact]:
    """Return the current facts after a conversation."""
    with tempfile.TemporaryDirectory() as folder, opened(Path(folder) / "data") as store:
        add_conversation(store, *((each, ANSWER) for each in talk.says))
        return read_facts(store)


def read_facts(store: Store) -> list[Fact]:
    """Read a library without a model and return its current facts."""
    parts = JobParts(store, Settings(store), clock=JumpingClock())
    board = WorkerBoard(parts, (KnowledgeExtractor(parts),))
    board.run_until_idle([WorkerName.KNOWLEDGE_EXTRACTOR])
    return [known.fact for known in Facts(store).listed(FactFilter())]


def summed(pairs: Sequence[tuple[Talk, Sequence[Fact]]]) -> Figures:
    facts = [(fact, talk) for talk, found in pairs for fact in found]
    wanted = [(each, found) for talk, found in pairs for each in talk.facts]
    true = sum(true_of(fact, talk.facts) is not None for fact, talk in facts)
    got = sum(found_in(each, found) for each, found in wanted)
    right_kind = sum(
        (one := true_of(fact, talk.facts)) is not None and one.category == fact.category
        for fact, talk in facts
    )
    return {
        "learned": len(facts),
        "precision": round(true / len(facts), 3) if facts else 1.0,
        "recall": round(got / len(wanted), 3) if wanted else 1.0,
        "category": round(right_kind / true, 3) if true else 1.0,
        "replaced": sum(replaced(each, found) for each, found in wanted),
    }


def true_of(fact: Fact | Statement, expected: Sequence[Expected]) -> Expected | None:
    """Return the fact to be learned that a learned one is, None for a false one."""
    return next((each for each in expected if is_same(each, fact)), None)


def found_in(expected: Expected, facts: Sequence[Fact | Statement]) -> bool:
    return any(is_same(expected, fact) for fact in facts)


def is_same(expected: Expected, fact: Fact | Statement) -> bool:
    slot = fact.subject.removeprefix("user: ").replace("favorite", "favourite")
    said = expected.value in fact.text or contains_value(fact.text, expected.value)
    return said and slot in ("", expected.slot)


def replaced(expected: Expected, facts: Sequence[Fact]) -> bool:
    """Return whether another value has the slot of a fact."""
    slots = {fact.subject.removeprefix("user: ") for fact in facts}
    return expected.slot in slots and not found_in(expected, facts)


if __name__ == "__main__":
    main()

"""Benchmark of contradictions: resolved as a model says, and nothing else replaced; prints JSON.

    python -m tests.bench.facts_model

Each message is a conversation of its own, a day after the one before, among 60 other facts, and is
read through a loopback server that answers as scripted: it names the known fact that a statement
replaces or ends by the id it was offered. `offered` is the share of these that were among the facts
sent with the message, `resolved` the share that ended on the day of the message; `false_replaced`
counts facts that ended without being named; `missed` are the messages that were not resolved.
"""

import json
import re
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from app.bootstrap import RunMode, Services, build
from app.domain.chat import StoredProvider
from app.domain.records.facts import Fact, FactCategory
from app.domain.workers import WorkerName
from app.storage.tables.facts import FactFilter
from app.system.paths import DataPaths
from app.workers.jobs.part_reader import READERS
from tests.bench.shared.measuring import Figures, print_json
from tests.fakes.background import part_answer
from tests.fakes.loopback import Loopback, Seen
from tests.fakes.loopback_script import Step, text, usage
from tests.fakes.stored import AT, add_conversation

_KNOWN = re.compile(r"^(\d+) \| [\d-]+ \| \w+ \| (.*)$", re.MULTILINE)
_FILLERS = 60


@dataclass(frozen=True, slots=True)
class Said:
    """A message, the fact it states, and the fact that this replaces ("" for none).

    Without a fact the message ends the other one.
    """

    message: str
    fact: str
    instead_of: str = ""


TALKS: Sequence[Sequence[Said]] = (
    (Said("I live in Oslo.", "The user lives in Oslo."),
     Said("We moved house: it's Rome now.", "The user lives in Rome.", "The user lives in Oslo."),
     Said("Roleplay: I live on Mars.", "")),
    (Said("Ich arbeite bei Siemens.", "Der Nutzer arbeitet bei Siemens."),
     Said("Seit Mai bin ich bei Bosch.", "Der Nutzer arbeitet bei Bosch.",
          "Der Nutzer arbeitet bei Siemens."),
     Said("Mein Bruder arbeitet bei Siemens.", "Der Bruder des Nutzers arbeitet bei Siemens.")),
    (Said("Je suis végétarienne.", "L'utilisatrice est végétarienne."),
     Said("Je mange de nouveau de la viande.", "", "L'utilisatrice est végétarienne.")),
    (Said("Tengo un perro que se llama Lobo.", "El usuario tiene un perro llamado Lobo."),
     Said("Lobo murió ayer.", "", "El usuario tiene un perro llamado Lobo."),
     Said("Ahora tengo un gato, Misu.", "El usuario tiene un gato llamado Misu.")),
    (Said("Meu prazo é 3 de maio.", "O prazo do usuário é 3 de maio."),
     Said("O prazo mudou para 10 de junho.", "O prazo do usuário é 10 de junho.",
          "O prazo do usuário é 3 de maio.")),
    (Said("Мне 30 лет.", "Пользователю 30 лет."),
     Said("Вчера мне исполнился 31 год.", "Пользователю 31 год.", "Пользователю 30 лет.")),
    (Said("我住在北京。", "用户住在北京。"),
     Said("我搬到上海了。", "用户住在上海。", "用户住在北京。")),
    (Said("Always answer in short sentences.", "The user wants short sentences."),
     Said("From now on answer at length.", "The user wants long answers.",
          "The user wants short sentences."),
     Said("I like short stories.", "The user likes short stories.")),
)  # fmt: skip
_BY_MESSAGE = {each.message: each for talk in TALKS for each in talk}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, Loopback() as server:
        server.by(answer)
        with closing(build(DataPaths(Path(folder) / "data"), RunMode.COMMAND_LINE)) as services:
            services.settings.put_provider(StoredProvider("local", "compatible", server.v1, None))
            services.settings.set("background_model", "local:test-model")
            print_json(measured(services, server))


def measured(services: Services, server: Loopback) -> Figures:
    for number in range(_FILLERS):
        text_of = f"The user keeps item {number} of collection {number % 7} on shelf {number % 11}."
        services.fact_service.add(text_of, FactCategory.POSSESSION)
    days = 0
    for talk in TALKS:
        for each in talk:
            days += 1
            add_conversation(services.store, each.message, at=AT + days * timedelta(days=1))
            services.workers.run_until_idle(READERS)
            services.workers.run_until_idle([WorkerName.EMBEDDING_PIPELINE])
            services.index_sync.catch_up(lambda: False)
    facts = {known.fact.text: known.fact for known in services.facts.listed(_ALL)}
    changes = [each for talk in TALKS for each in talk if each.instead_of]
    offered = [_offered(server.posts, each) for each in changes]
    named = {each.instead_of for each in changes}
    return {
        "facts": sum(bool(each.fact) for talk in TALKS for each in talk),
        "learned": sum(each.fact in facts for talk in TALKS for each in talk if each.fact),
        "contradictions": len(changes),
        "offered": sum(offered) / len(changes),
        "resolved": sum(_is_resolved(facts, each) for each in changes) / len(changes),
        "missed": [
            each.message
            for each, was in zip(changes, offered, strict=True)
            if not (was and _is_resolved(facts, each))
        ],
        "false_replaced": sum(
            fact.valid_until is not None and text not in named for text, fact in facts.items()
        ),
    }


_ALL = FactFilter(ended=True, limit=500)


def answer(seen: Seen) -> Iterable[Step]:
    sent = seen.body["messages"][-1]["content"]
    said = next(
        (each for message, each in _BY_MESSAGE.items() if f"user]\n{message}\n" in sent), None
    )
    facts = []
    if said is not None and (said.fact or said.instead_of):
        known = {text: int(number) for number, text in _KNOWN.findall(sent)}.get(said.instead_of)
        operation = ("update" if said.fact else "end") if said.instead_of else "add"
        facts = [
            {
                "op": operation,
                "id": known,
                "text": said.fact,
                "words": said.message,
                "category": "other",
                "source_turn": 1,
            }
        ]
    return [text(json.dumps(part_answer(*facts))), usage(900, 100)]


def _offered(posts: Iterable[Seen], said: Said) -> bool:
    sent = (each.body["messages"][-1]["content"] for each in posts)
    return any(f"user]\n{said.message}\n" in each and said.instead_of in each for each in sent)


def _is_resolved(facts: dict[str, Fact], said: Said) -> bool:
    old, new = facts.get(said.instead_of), facts.get(said.fact)
    if old is None or old.valid_until is None:
        return False
    return not said.fact or (new is not None and old.superseded_by == new.id)


if __name__ == "__main__":
    main()

"""Recall boundaries: nothing of a bounded project is recalled outside it, and nothing from outside in it."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import cycle

import pytest

from app.bootstrap import RunMode, Services, build
from app.chat.recall_preview import Preview
from app.chat.tools.conversations import ConversationTools
from app.chat.tools.memory import CORE_TOOLS, MemoryTools
from app.chat.tools.toolbox import Toolbox, ToolContext
from app.commands.command import CommandContext, parse
from app.domain.changes import ProfilePut
from app.domain.conversations import Conversation, Draft, RecallChoice, ToolCall
from app.domain.diagnostics import ObstacleCause
from app.domain.ids import ConversationId, new_uid
from app.domain.links import link_to
from app.domain.recall import RecallSettings, SegmentContext
from app.domain.records.facts import Fact
from app.domain.records.profile import FactSource, Profile, ProfileLine
from app.domain.records.projects import Project, RecallRule
from app.domain.records.topics import TopicId
from app.domain.workers import WorkerName
from app.mcp.access import Access
from app.memory.search.scope import Boundaries, Boundary
from app.providers.embedders.local import LocalEmbedder
from app.storage.tables.topics import StoredTopic, TopicMember, TopicRows
from app.system.paths import DataPaths
from tests.fakes.embedders import BagOfWords
from tests.fakes.searchable import Library
from tests.fakes.stored import AT, ConversationRecord, add_conversation
from tests.fakes.summarizers import summarized

ENDS = ("ander", "ibex", "ollow")
WARES = tuple(f"{a}{b}r{end}" for end in ENDS for a in "bdfghklm" for b in "aeiou")  # 120
TURNS = 5  # of a conversation
SECRETS = {"Garden": "zqgarden", "House": "zqhouse"}


def question(ware: str) -> str:
    return f"Which supplier delivers the {ware} in spring?"


@dataclass(frozen=True)
class Secret:
    """A turn of a bounded project, and what must not leave it."""

    ware: str
    project: Project
    record: ConversationRecord
    turn: int
    # A fact, a saved text and a document of its project, as other programs name them.
    passages: Sequence[str] = ()

    @property
    def word(self) -> str:
        return SECRETS[self.project.name]


class Bounded:
    """Two bounded projects of 60 turns each with facts, saved texts and summaries, and one talk in each, and outside."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self.store = services.store
        self.projects = [
            services.projects.save(Project("", name, recall=RecallRule.ONLY)) for name in SECRETS
        ]
        self.secrets: list[Secret] = []
        self.facts: list[Fact] = []
        for project, wares in zip(self.projects, (WARES[:60], WARES[60:]), strict=True):
            folder = services.paths.root.with_name(project.name)
            folder.mkdir()
            for ware in wares[::20]:
                (folder / f"{ware}.txt").write_text(
                    f"The {ware} comes from {SECRETS[project.name]} by boat, says the file."
                )
            services.documents.add(folder, project.uid)
            for start in range(0, len(wares), TURNS):
                self._add(project, wares[start : start + TURNS])
        self.talks: dict[str | None, Conversation] = {None: self._talk(None)}
        for project in self.projects:
            self.talks[project.uid] = self._talk(project)
        services.workers.wake([WorkerName.DOCUMENT_INDEXER])
        services.workers.run_until_idle([WorkerName.DOCUMENT_INDEXER])
        self._add_files()
        self._add_topic_and_profile()
        services.mcp_access.decide("other", Access.ALLOWED)
        of_memory = MemoryTools(
            services.answers, services.core_memory, services.memory_writes
        ).tools()
        self.tools = Toolbox((*ConversationTools(self.store, services.search).tools(), *of_memory))
        services.index_sync.catch_up(lambda: False)

    def _add(self, project: Project, wares: tuple[str, ...]) -> None:
        word = SECRETS[project.name]
        said = [(question(each), f"The {each} comes from {word} by boat.") for each in wares]
        record = add_conversation(self.store, *said, title=f"Orders of {word} {wares[0]}")
        self.services.projects.move([record.conversation.id], project.uid)
        fact = Library.fact(self, f"Buys {wares[0]} from {word}", record)  # type: ignore[arg-type]
        self.facts.append(fact)
        summarized(self.store, record, f"Orders {wares[1]} from {word}", conversation=True)
        saved = self.services.memories.save(f"{word} delivers {wares[2]}", record.conversation.id)
        names = (f"fact:{fact.id}", f"memory:{saved.id}")
        self.secrets += [
            Secret(ware, project, record, turn, names) for turn, ware in enumerate(wares)
        ]

    def _add_files(self) -> None:
        """Give each secret a document of its project."""
        rows = self.store.rows(
            "SELECT d.project, min(p.id) FROM passage p JOIN document_chunk c ON c.id = p.source_id "
            "JOIN document d ON d.id = c.document_id WHERE p.kind = 'document' GROUP BY d.project"
        )
        files: dict[str, int] = dict(rows)
        self.secrets = [
            replace(each, passages=(*each.passages, f"document:{files[each.project.uid]}"))
            for each in self.secrets
        ]

    def _add_topic_and_profile(self) -> None:
        """Put all conversations into one topic, whose name quotes both projects, and facts into the profile."""
        ids = [each for (each,) in self.store.rows("SELECT id FROM conversation")]
        topic = StoredTopic(TopicId(1), " and ".join(SECRETS.values()), None)
        members = [TopicMember(each, TopicId(1), 0.9) for each in ids]
        TopicRows(self.store).replace([topic], members, len(ids))
        lines = tuple(
            ProfileLine(each.text, (FactSource(each.id, each.made_at),)) for each in self.facts
        )
        self.store.save(ProfilePut(Profile(lines, "user", AT)))

    def _talk(self, project: Project | None) -> Conversation:
        name = project.name if project else "nobody"
        record = add_conversation(self.store, f"hello from {name}", title=f"Talk of {name}")
        if project is not None:
            self.services.projects.move([record.conversation.id], project.uid)
        return self.services.conversations.get(record.conversation.id)

    def tool(self, name: str, here: Conversation, **arguments: object) -> str:
        context = ToolContext(here, self.services.exchanges.of(here.id)[0].id, "openai:m")
        return self.tools.run(ToolCall(new_uid(), name, json.dumps(arguments)), context).text

    def command(self, text: str, here: Conversation) -> str:
        return self.services.commands.run(parse(text, CommandContext(here.id))).markdown

    def mcp(self, name: str, **arguments: object) -> str:
        return self.services.mcp_tools.call(name, arguments, "other").text

    def previewed(self, asked: str, here: Conversation) -> str:
        found = self.services.previews.fetch(asked, here.id)
        preview: Preview = self.services.previews.preview(found, {})
        return f"{found.fetched.found} {preview}"


@pytest.fixture(scope="module")
def bounded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bounded]:
    """The library, embedded: all tests share it."""
    bag = BagOfWords("all_minilm_l6_v2", 384)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalEmbedder, "embed", lambda _, *given, **more: bag.embed(*given, **more))
        patch.setattr(LocalEmbedder, "token_model", "")
        services = build(DataPaths(tmp_path_factory.mktemp("bounded")), RunMode.COMMAND_LINE)
        made = Bounded(services)
        services.workers.run_until_idle([WorkerName.EMBEDDING_PIPELINE])
        assert services.vector_search.query_vector("Which supplier?") is not None
        yield made
        services.close()


def retrieved(b: Bounded, asked: str, here: Conversation, **segment: object) -> str:
    context = SegmentContext(project=here.project, **segment)  # type: ignore[arg-type]
    found = b.services.recall.retrieve(asked, here.id, context, RecallSettings().widest())
    assert not found.notice
    return str(found)


def answered(b: Bounded, asked: str, here: Conversation, *mentioned: ConversationId) -> str:
    return str(b.services.recall.answers(asked, (), here.id, 6, RecallChoice(mentioned=mentioned)))


LAST_TIME, ALL_FACTS = "What was our last conversation about?", "What do you know about me?"
Path = Callable[[Bounded, Secret, Conversation], str]
FROM_CONVERSATIONS: dict[str, Path] = {
    "recall": lambda b, s, here: retrieved(b, question(s.ware), here),
    "a follow-up": lambda b, s, here: retrieved(
        b, "And who delivers it?", here, recent=(question(s.ware),)
    ),
    "a mention": lambda b, s, here: retrieved(
        b, question(s.ware), here, mentioned=(s.record.conversation.id,)
    ),
    "a preview": lambda b, s, here: b.previewed(question(s.ware), here),
    "typing": lambda b, s, here: str(
        b.services.typed_recall.prepare(Draft(question(s.ware)), here.id)
    ),
    "days": lambda b, _, here: retrieved(b, LAST_TIME, here),
    "days to Recall": lambda b, _, here: answered(b, LAST_TIME, here),
    "all facts": lambda b, _, here: retrieved(b, ALL_FACTS, here),
    "all facts to Recall": lambda b, _, here: answered(b, ALL_FACTS, here),
    "Recall": lambda b, s, here: answered(b, question(s.ware), here),
    "a mention to Recall": lambda b, s, here: answered(
        b, question(s.ware), here, s.record.conversation.id
    ),
    "conversation_search": lambda b, s, here: b.tool(
        "conversation_search", here, query=question(s.ware)
    ),
    "memory_search": lambda b, s, here: b.tool("memory_search", here, query=question(s.ware)),
    "fetch of a conversation": lambda b, s, here: b.tool(
        "fetch_conversation_details", here, conversation_id=s.record.conversation.id
    ),
    "fetch of an exchange": lambda b, s, here: b.tool(
        "fetch_conversation_details", here, exchange_id=s.record.exchanges[s.turn].id
    ),
    "brief": lambda b, s, here: b.services.briefs.write(question(s.ware), 4_000, here.project),
    "/brief": lambda b, s, here: b.command(f"/brief {question(s.ware)}", here),
    "/search": lambda b, s, here: b.command(f"/search {s.ware} supplier", here),
    "known facts": lambda b, s, here: str(
        b.services.fact_service.nearest([f"Buys {s.ware}"], 5, here.project)
    ),
    "/rag try": lambda b, s, here: b.command(f"/rag try {question(s.ware)}", here),
    "a trail": lambda b, s, here: str(b.services.topics.trail(here.id)),
}  # fmt: skip
FROM_OUTSIDE: dict[str, Path] = {
    "MCP search": lambda b, s, _: b.mcp("search", query=question(s.ware)),
    "MCP search_conversations": lambda b, s, _: b.mcp(
        "search_conversations", query=f"{s.ware} supplier project:{s.project.name}"
    ),
    "MCP project": lambda b, s, _: b.mcp(
        "search_conversations", query=f"{s.ware} supplier", project=s.project.name
    ),
    "MCP recall": lambda b, s, _: b.mcp("recall", question=question(s.ware)),
    "MCP fetch": lambda b, s, _: b.mcp("fetch", id=link_to(s.record.conversation.id, s.turn)),
    "MCP get_turns": lambda b, s, _: b.mcp(
        "get_turns", conversation=s.record.conversation.id, turn=s.turn
    ),
    "MCP fetch of passages": lambda b, s, _: "".join(
        b.mcp("fetch", id=each) for each in s.passages
    ),
    "MCP projects": lambda b, s, _: b.mcp("list_projects").replace(s.project.name, s.word),
    "profile": lambda b, s, here: str(b.services.profile.lines_in(here.project)),
}
OF_ALL = (
    "a trail", "days", "days to Recall", "all facts", "all facts to Recall",
    "MCP fetch of passages", "MCP projects", "profile",
)  # fmt: skip  # not of the turn asked for
BY_ID = ("fetch of a conversation", "fetch of an exchange", "MCP fetch", "MCP get_turns")


NAMING_THE_PROJECT = ("MCP search_conversations", "MCP project")


def test_500_questions_across_two_bounded_projects_leak_nothing_on_any_path(
    bounded: Bounded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each path is taken for both projects, from the other project and from none, by words alone and by meaning too.

    Those that read a turn by its id take 100 questions, the others 4: they search, or are asked the same each time.
    """
    leaks: list[tuple[str, str]] = []
    first, second = bounded.projects
    asked = {
        each: cycle([one for one in bounded.secrets if one.project == each])
        for each in bounded.projects
    }
    nobody, meaning, count = bounded.talks[None], bounded.services.search.vector_search, 0
    for name, path in (FROM_CONVERSATIONS | FROM_OUTSIDE).items():
        for number in range(100 if name in BY_ID else 4):
            project, other = (first, second) if number % 2 else (second, first)
            is_inside = name in FROM_CONVERSATIONS and number // 2 % 2
            by_meaning = (number + number // 2) % 2
            monkeypatch.setattr(
                bounded.services.search, "vector_search", meaning if by_meaning else None
            )
            secret, count = next(asked[project]), count + 1
            if secret.word in path(
                bounded, secret, bounded.talks[other.uid] if is_inside else nobody
            ):
                leaks.append((name, secret.ware))
    assert leaks == []
    assert count >= 500


def test_each_path_finds_in_the_project_what_it_holds(bounded: Bounded) -> None:
    for (name, path), secret in zip(FROM_CONVERSATIONS.items(), cycle(bounded.secrets[::60])):
        assert secret.word in path(bounded, secret, bounded.talks[secret.project.uid]), name


@pytest.mark.parametrize(
    "name", [each for each in FROM_CONVERSATIONS | FROM_OUTSIDE if each not in OF_ALL]
)
def test_what_is_moved_into_a_bounded_project_during_a_call_is_not_found(
    bounded: Bounded, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The conversation is moved once the boundary of the call is known; it has no vectors yet."""
    monkeypatch.setattr(bounded.services.search, "vector_search", None)
    said = [(question("zzware"), "The zzware comes from zqmoved by boat.")]
    record = add_conversation(bounded.store, *said, title="Orders of zqmoved")
    summarized(bounded.store, record, "Orders zzware from zqmoved", conversation=True)
    Library.fact(bounded, "Buys zzware from zqmoved", record)  # type: ignore[arg-type]
    bounded.services.index_sync.catch_up(lambda: False)
    secret, here = (
        Secret("zzware", replace(bounded.projects[0], name="Garden"), record, 0),
        bounded.talks[None],
    )
    path = (FROM_CONVERSATIONS | FROM_OUTSIDE)[name]
    real, moves = Boundaries.of, [record.conversation.id]

    def of(self: Boundaries, project: str | None) -> Boundary:
        boundary = real(self, project)
        if moves:
            bounded.services.projects.move([moves.pop()], bounded.projects[0].uid)
        return boundary

    if name not in NAMING_THE_PROJECT:
        assert "zqmoved" in path(bounded, secret, here)
    monkeypatch.setattr(Boundaries, "of", of)
    assert "zqmoved" not in path(bounded, secret, here)
    assert not moves


def test_a_bounded_project_is_closed_from_inside_too(bounded: Bounded) -> None:
    said = ("What does the harbor master charge?", "The zqoutside charge is 40.")
    record = add_conversation(bounded.store, said, title="Harbor")
    bounded.services.index_sync.catch_up(lambda: False)
    secret = Secret("", replace(bounded.projects[0], name="Garden"), record, 0)
    inside = bounded.talks[bounded.projects[0].uid]
    asked = said[0]
    assert "zqoutside" in retrieved(bounded, asked, bounded.talks[None])
    assert "zqoutside" not in retrieved(bounded, asked, inside)
    assert "zqoutside" not in bounded.tool("memory_search", inside, query=asked)
    for name in ("fetch of a conversation", "fetch of an exchange"):
        assert "zqoutside" not in FROM_CONVERSATIONS[name](bounded, secret, inside)


def test_a_search_names_a_project_to_find_what_it_keeps(bounded: Bounded) -> None:
    secret, here = bounded.secrets[3], bounded.talks[None]
    assert secret.word in bounded.command(f"/search {secret.ware} project:garden", here)
    assert [each.conversation_title for each in bounded.services.search.search(secret.ware).results]


def test_why_not_recalled_names_the_other_project(bounded: Bounded) -> None:
    secret = bounded.secrets[3]
    exchange = secret.record.exchanges[secret.turn]
    explain = bounded.services.explainer.explain

    def causes(project: Project | None) -> set[ObstacleCause]:
        uid = project.uid if project else None
        return {
            each.cause for each in explain(question(secret.ware), exchange.id, 20, uid).obstacles
        }

    assert ObstacleCause.OTHER_PROJECT in causes(None)
    assert ObstacleCause.OTHER_PROJECT in causes(bounded.projects[1])
    assert ObstacleCause.OTHER_PROJECT not in causes(secret.project)


def test_core_memory_is_not_changed_from_a_bounded_project(bounded: Bounded) -> None:
    toolbox = bounded.services.chat._toolbox

    def offered(project: str | None) -> set[str]:
        return {each.name for each in toolbox.offered_in(bounded.talks[project])}

    assert offered(None) >= {*CORE_TOOLS}
    inside = offered(bounded.projects[0].uid)
    assert inside.isdisjoint(CORE_TOOLS)
    assert "memory_save" in inside

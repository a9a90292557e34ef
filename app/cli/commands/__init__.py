"""The commands by name, wired: each is given the services that it uses."""

from argparse import Namespace
from collections.abc import Callable, Mapping

from app.bootstrap import Services
from app.cli.arguments import UsageError
from app.cli.commands import (
    ask,
    conversations,
    documents,
    forgetting,
    library,
    maintenance,
    mcp,
    memory,
    projects_and_presets,
    providers,
    routines,
    search,
    settings_and_privacy,
    transfer,
    workers,
)
from app.cli.terminal import Terminal
from app.domain.workers import WorkerName

# Returns the exit code; None is success.
Command = Callable[[Services, Namespace, Terminal], int | None]


def _change(s: Services, given: Namespace, terminal: Terminal) -> None:
    conversations.change(s.library, s.chat, given, terminal)


def _forget(s: Services, given: Namespace, terminal: Terminal) -> None:
    kind, *words = given.ids or [""]
    match kind:
        case "" if given.value is not None:
            forgetting.value(s.values, given, terminal)
        case _ if given.value is not None:
            raise UsageError("'--value' takes no ID", "See 'commonplace forget --help'.")
        case "turn":
            forgetting.turns(s.library, s.forget_turn, words, given, terminal)
        case "message":
            forgetting.messages(s.exchanges, s.forget_messages, words, given, terminal)
        case "secret":
            forgetting.secrets(s.values, words, given, terminal)
        case "fact":
            forgetting.facts(s.facts, s.fact_service, s.index_sync, words, given, terminal)
        case _:
            parts = (s.conversations, s.exchanges, s.chat, s.forget)
            forgetting.conversations(*parts, given, terminal)
    _remove_bytes(s, given, terminal)


def _documents(s: Services, given: Namespace, terminal: Terminal) -> None:
    documents.documents(s.documents, s.embedders, s.index_sync, s.projects, given, terminal)
    if given.action == "remove":
        _remove_bytes(s, given, terminal)


def _remove_bytes(s: Services, given: Namespace, terminal: Terminal) -> None:
    if given.now or s.maintenance.erases_quickly:
        s.maintenance.erase()
    elif s.overview.read().deletions_owed:
        terminal.err(forgetting.OWED)


def _rebuild(s: Services, given: Namespace, terminal: Terminal) -> int | None:
    match given.what:
        case "index":
            s.token_sync.clear()
            s.workers.wake([WorkerName.EMBEDDING_PIPELINE])
            s.index_sync.rebuild(terminal.cancelled)
            terminal.show({"rebuilt": "index"})
            return None
        case "embeddings":
            vectors = s.embedding_regeneration
            return maintenance.rebuild_embeddings(vectors, s.workers, given, terminal)
        case "facts":
            return maintenance.regenerate(s.fact_regeneration, s.workers, given, terminal)
    return maintenance.regenerate(s.summary_regeneration, s.workers, given, terminal)


def _work(s: Services, given: Namespace, terminal: Terminal) -> int:
    if model := s.settings.text("background_model"):
        providers.unlock_keys(s.models, model, terminal)
    return workers.work(s.workers, s.index_sync, given, terminal)


COMMANDS: Mapping[str, Command] = {
    "ask": lambda s, *rest: ask.ask(
        s.chat,
        s.models,
        s.presets,
        s.projects,
        s.prompts,
        s.attachments,
        s.index_sync,
        s.vector_search,
        *rest,
    ),
    "search": lambda s, *rest: search.search(s.search, s.index_sync, s.explainer, s.library, *rest),
    "probes": lambda s, *rest: search.probes(s.probes, s.library, s.index_sync, *rest),
    "list": lambda s, *rest: conversations.listed(s.conversations, *rest),
    "show": lambda s, *rest: conversations.show(
        s.library, s.exchanges, s.summaries, s.coverage, s.document_texts, *rest
    ),
    "archive": _change,
    "unarchive": _change,
    "delete": _change,
    "undelete": _change,
    "forget": _forget,
    "tag": lambda s, *rest: conversations.tag(s.conversations, s.library, *rest),
    "facts": lambda s, *rest: library.facts(
        s.conversations, s.facts, s.fact_service, s.index_sync, *rest
    ),
    "memory": lambda s, *rest: memory.memory(
        s.core_memory, s.memories, s.memory_writes, s.settings, s.index_sync, *rest
    ),
    "profile": lambda s, *rest: memory.profile(s.profile, *rest),
    "prompt": lambda s, *rest: search.prompt(s.library, s.inspector, *rest),
    "recall": lambda s, *rest: search.recall(s.previews, s.index_sync, *rest),
    "import": lambda s, *rest: transfer.import_(s.store, s.index_sync, s.background, *rest),
    "imports": lambda s, *rest: transfer.imports(s.store, *rest),
    "export": lambda s, *rest: transfer.export(s.store, *rest),
    "work": _work,
    "status": lambda s, _, terminal: workers.status(
        s.workers, s.overview, s.spending, s.index_sync, s.embedder_suggestions, terminal
    ),
    "check": lambda s, *rest: maintenance.check_(s.check, s.index_sync, *rest),
    "backup": lambda s, *rest: maintenance.backup(s.back_up, *rest),
    "rebuild": _rebuild,
    "config": lambda s, *rest: settings_and_privacy.config(
        s.store, s.settings, s.embedders, s.background, s.paths.window, *rest
    ),
    "provider": lambda s, *rest: providers.provider(s.models, s.chat, *rest),
    "preset": lambda s, *rest: projects_and_presets.preset(s.presets, s.models, s.tools(), *rest),
    "privacy": lambda s, *rest: settings_and_privacy.privacy(s.privacy, *rest),
    "routine": lambda s, *rest: routines.routine(
        s.routines, s.models, s.presets, s.projects, *rest
    ),
    "secrets": lambda s, *rest: library.secrets(s.store, *rest),
    "mcp": lambda s, *rest: mcp.programs(s.mcp_access, *rest),
    "project": lambda s, *rest: projects_and_presets.project(s.projects, *rest),
    "brief": lambda s, *rest: mcp.brief(s.briefs, s.projects, s.index_sync, *rest),
    "sources": lambda s, *rest: transfer.sources(s.sources, s.background, *rest),
    "topics": lambda s, *rest: library.topics(s.topics, *rest),
    "documents": _documents,
    "price": lambda s, *rest: providers.price(s.own_prices, s.background, *rest),
    "window": lambda s, *rest: providers.window(s.models.windows, *rest),
}

"""Every number of the worker dashboard, compared with SQL of the test's own."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QTreeWidget

from app.bootstrap import RunMode, Services, build
from app.domain.changes import ConversationEdited, SpendAdded
from app.domain.chat import StoredProvider
from app.domain.translation import format_size
from app.domain.workers import WORKERS, WorkerName
from app.providers.pricing.prices import OwnPrice
from app.storage.engine.store import Store
from app.storage.tables.attempts import Attempts
from tests.fakes.background import part_answer
from tests.fakes.loopback import Loopback
from tests.fakes.loopback_embeddings import EMBEDDINGS
from tests.fakes.loopback_script import stall, text, usage
from tests.fakes.manual import FakeManual
from tests.fakes.stored import add_conversation, made
from tests.fakes.tool_turns import called
from tests.fakes.user import User

EXCHANGES, PIPELINE = WorkerName.EXCHANGE_SUMMARIZER, WorkerName.EMBEDDING_PIPELINE
EXTRACTOR = WorkerName.KNOWLEDGE_EXTRACTOR
DOT = " \N{MIDDLE DOT} "
NOW = datetime.now(UTC)
SPEND = (  # when, for what, input tokens, output tokens, USD
    (NOW, "chat", 1000, 500, 0.25),
    (NOW, EXCHANGES, 2000, 100, 1.5),
    (NOW - timedelta(days=3), EXCHANGES, 300, 20, 0.125),
    (NOW - timedelta(days=40), PIPELINE, 70_000, 0, 0.5),
    (NOW, EXTRACTOR, 60, 6, None),
    (NOW - timedelta(days=3), EXTRACTOR, 60, 6, 0.75),
)
_LIVING = "(SELECT id FROM conversation WHERE NOT private AND deleted_at IS NULL)"
_TURNS = f"(SELECT id FROM exchange WHERE conversation_id IN {_LIVING})"
_ALL_TURNS = f"SELECT count(*) FROM exchange WHERE status = 'completed' AND id IN {_TURNS}"
_PASSAGES = (
    "(SELECT p.id FROM passage p LEFT JOIN conversation c ON c.id = p.conversation_id "
    "WHERE c.id IS NULL OR c.deleted_at IS NULL)"
)
_COUNTS: Mapping[WorkerName, tuple[str, str]] = {  # what is done, and all there is
    EXCHANGES: (
        f"SELECT count(*) FROM summary WHERE kind = 'exchange' AND latest AND source_id IN {_TURNS}",
        _ALL_TURNS,
    ),
    EXTRACTOR: (f"SELECT count(*) FROM extraction WHERE exchange_id IN {_TURNS}", _ALL_TURNS),
    WorkerName.CONVERSATION_SUMMARIZER: (
        (
            "SELECT count(*) FROM summary WHERE kind = 'conversation' AND latest "
            f"AND source_id IN {_LIVING}"
        ),
        f"SELECT count(*) FROM {_LIVING}",
    ),
    PIPELINE: (
        (
            "SELECT count(DISTINCT passage_id) FROM embedding_all_minilm_l6_v2 "
            f"WHERE passage_id IN {_PASSAGES}"
        ),
        f"SELECT count(*) FROM {_PASSAGES}",
    ),
    WorkerName.MAN_INDEXER: (
        "SELECT count(*) FROM document WHERE read_stamp = stamp",
        "SELECT count(*) FROM document",
    ),
    WorkerName.DOCUMENT_INDEXER: ("SELECT 0",) * 2,
    WorkerName.TOOL_SUMMARIZER: (
        "SELECT count(*) FROM tool_summary",
        (
            "SELECT (sum(length(blocks) - length(replace(blocks, '\"_\":\"ToolCall\"', ''))) "
            "// length('\"_\":\"ToolCall\"'))::BIGINT FROM message WHERE role = 'assistant'"
        ),
    ),
    WorkerName.PROFILE_WRITER: ("SELECT count(*) FROM profile_review",) * 2,
    WorkerName.SOURCE_READER: ("SELECT 0",) * 2,
    WorkerName.ROUTINE_RUNNER: ("SELECT 0",) * 2,
    WorkerName.TOPIC_FINDER: ("SELECT count(*) FROM topic_member",) * 2,
}
_TITLES = {
    "turn": "Turns", "exchange_summary": "Turn summaries", "fact": "Facts",
    "conversation_summary": "Conversation summaries", "memory": "Memories",
    "tool_summary": "Tool summaries", "man_page": "Manual pages", "document": "Documents",
}  # fmt: skip


def rows(services: Services, statement: str, *values: object) -> list[Any]:
    return services.store.read(lambda cursor: cursor.execute(statement, list(values)).fetchall())


def number(services: Services, statement: str) -> Any:
    return rows(services, statement)[0][0]


@pytest.fixture
def server(server: Loopback) -> Loopback:
    server.always(text(json.dumps(part_answer())), usage(200, 30))
    return server


@pytest.fixture(autouse=True)
def library(data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a library with something of everything and all workers off, so that nothing changes."""
    manual = FakeManual(tmp_path / "manual", monkeypatch)
    manual.add("tar.1", "an archiving utility", "Puts many files into one archive.")
    manual.add("none.1", "a page without a description", None)
    services = build(made(data_dir), RunMode.COMMAND_LINE)
    try:
        fill(services)
    finally:
        services.close()


def fill(services: Services) -> None:
    store = services.store
    add_conversation(store, "I prefer green tea to coffee, and I live in Lisbon with two cats")
    called(store, ("read_file", '{"path": "notes.txt"}', "one\ntwo"), ("look", "{}", "three"))
    add_conversation(store, "A secret that is counted in none of these numbers", private=True)
    services.memories.save("The gate code of the allotment is on the blue tag")
    services.workers.run_until_idle(tuple(WorkerName))
    late = [
        add_conversation(
            store, f"The story of the violin number {each}, with its strings and its bow",
            title=f"Violin {each}",
        )
        for each in range(4)
    ]  # fmt: skip
    deleted = add_conversation(store, "What is in the trash is counted by no worker at all")
    store.save(ConversationEdited(deleted.conversation.id, deleted_at=NOW))
    for name in (EXCHANGES, EXTRACTOR):
        add_failures(store, name, [talk.exchanges[0].id for talk in late])
    add_failures(store, WorkerName.CONVERSATION_SUMMARIZER, [talk.conversation.id for talk in late])
    newest = rows(services, "SELECT id FROM passage WHERE kind = 'turn' ORDER BY id DESC LIMIT 4")
    add_failures(store, PIPELINE, [each for (each,) in newest[1:]])
    for at, purpose, read, written, cost_usd in SPEND:
        store.save(SpendAdded(at, purpose, "a:model", read, written, 0, cost_usd))
    for spec in WORKERS.values():
        services.settings.set(spec.enabled_key, False)


def add_failures(store: Store, name: WorkerName, items: Sequence[int]) -> None:
    """Add two items waiting for another try, and one set aside."""
    attempts = Attempts(store, name)
    attempts.failed(items[0], 1, NOW + timedelta(hours=2), "It timed out. Look at the server.")
    attempts.failed(items[1], 2, NOW + timedelta(hours=1), "It timed out. Look at the server.")
    attempts.failed(items[2], 7, None, "It was never answered. Choose another model.")


def card_texts(services: Services, name: WorkerName) -> tuple[str, str, str]:
    """Return what the card of a worker should say of counts, spend and retries, by SQL."""
    done, total = (number(services, each) for each in _COUNTS[name])
    ((tokens, known_usd, unknown),) = rows(
        services,
        "SELECT coalesce(sum(input_tokens + output_tokens), 0), coalesce(sum(cost_usd), 0), "
        "count(*) - count(cost_usd) FROM spend WHERE purpose = ?",
        name,
    )
    cost = "cost unknown" if unknown else f"${known_usd:.2f}"
    spent = f"{tokens:,} tokens, {cost}" if tokens else ""
    ((waiting, aside, next_at),) = rows(
        services,
        "SELECT count(next_at), count(*) - count(next_at), min(next_at) FROM attempt "
        "WHERE worker = ?",
        name,
    )
    queue = [f"{aside} set aside"] if aside else []
    if waiting:
        at = next_at.replace(tzinfo=UTC).astimezone()
        queue.insert(0, f"{waiting} waiting for another try, the next at {at:%H:%M:%S}")
    return f"{done:,} of {total:,}" if total else "", spent, DOT.join(queue)


def totals(services: Services) -> dict[str, str]:
    """Return what should be beside the cards, by SQL."""
    kinds = dict(rows(services, "SELECT kind, count(*) FROM passage GROUP BY kind"))
    shown = {title: f"{kinds.get(kind, 0):,}" for kind, title in _TITLES.items()}
    done, total = (number(services, each) for each in _COUNTS[PIPELINE])
    shown["Found by meaning (all-MiniLM-L6-v2, built in)"] = f"{done / total * 100:.0f}%"
    shown["Found by exact words"] = "100%"
    paths = (services.paths.database, services.paths.wal)
    shown["Database"] = format_size(sum(each.stat().st_size for each in paths if each.exists()))
    today = datetime.now().astimezone().date()  # the run may have begun the day before
    spend = [
        (at.replace(tzinfo=UTC).astimezone().date(), usd)
        for at, usd in rows(services, "SELECT spent_at, cost_usd FROM spend")
    ]
    shown["Spent today"] = _money([usd for day, usd in spend if day == today])
    month = [usd for day, usd in spend if day.replace(day=1) == today.replace(day=1)]
    shown["Spent this month"] = _money(month)
    return shown


def _money(costs: list[float | None]) -> str:
    known = sum(cost for cost in costs if cost is not None)
    return f"${known:.2f} + unknown" if None in costs else f"${known:.2f}"


def shown_totals(user: User) -> dict[str, str]:
    said = (each.accessibleName() for each in user.window.memory.dashboard.findChildren(QLabel))
    return dict(each.rsplit(": ", 1) for each in said if ": " in each)


async def shows_what_is_stored(user: User) -> None:
    """Wait until every number on the dashboard is the database's."""
    for name in WorkerName:
        card = user.window.memory.dashboard.card(name)
        want = await user.ask(lambda services, name=name: card_texts(services, name))  # type: ignore[misc]

        done, total = want[0].split(" of ") if want[0] else ("0", "0")
        expected = (*want, int(done), max(1, int(total)))

        def shown(card: Any = card) -> tuple[str, str, str, int, int]:
            texts = (card.counts.text().split(DOT)[0], card.spent.text().rpartition("in all: ")[2])
            return (*texts, card.retries.text(), card.bar.value(), card.bar.maximum())

        await user.until(lambda shown=shown, all_=expected: shown() == all_, f"{name}: {expected}")  # type: ignore[misc]
    await user.until_so(lambda services: totals(services) == shown_totals(user))


async def start_with_paid_model(user: User, server: Loopback) -> None:
    """Start, open the dashboard and choose a priced model."""

    def choose(services: Services) -> None:
        services.settings.put_provider(StoredProvider("local", "compatible", server.v1, None))
        services.own_prices.put("local:m", OwnPrice(1000.0, 2000.0))
        services.settings.set("background_model", "local:m")

    await user.start()
    user.press("Ctrl+Shift+W")
    await user.ask(choose)


async def test_numbers_on_the_dashboard_are_the_database_s(user: User, server: Loopback) -> None:
    await start_with_paid_model(user, server)
    await shows_what_is_stored(user)
    kinds = await user.ask(lambda services: set(services.overview.read().passages))
    assert kinds == set(_TITLES) - {"document"}, "there is something of every kind"
    dashboard = user.window.memory.dashboard
    for name in WorkerName:
        card = dashboard.card(name)
        assert (card.state.text(), card.switch.isChecked()) == ("off", False)
        assert card.session.text() == ""
        assert not card.run_now.isVisible()
    left = await user.ask(lambda services: number(services, (
        f"SELECT count(*) FROM passage WHERE id IN {_PASSAGES} AND id NOT IN "
        "(SELECT passage_id FROM embedding_all_minilm_l6_v2) AND id NOT IN "
        "(SELECT item_id FROM attempt WHERE worker = 'embedding_pipeline' AND next_at IS NULL)")))  # fmt: skip
    await user.sees(f"{left} passages not read by the search model: search by meaning is off.")
    await user.sees("1 item failed too often and will not be retried by search by meaning")

    # A session with a model that is paid for.
    card = dashboard.card(EXCHANGES)
    card.switch.click()
    await user.until(lambda: card.state.text() == "idle", "all possible summaries are made")
    made_now = await user.ask(lambda services: number(
        services, "SELECT count(*) FROM summary WHERE kind = 'exchange' AND model = 'local:m'"
    ))  # fmt: skip
    assert made_now > 0
    session = f"This session: {made_now} done"
    await user.until(lambda: card.session.text() == session, session)
    cost = made_now * (200 * 1000 + 30 * 2000) / 1e6
    spent = f"Spent this session: {made_now * 230:,} tokens, ${cost:.2f}"
    await user.until(lambda: card.spent.text().startswith(spent), spent)
    await shows_what_is_stored(user)

    # Failed items are listed; one of them is retried there, the others by Run now.
    title = f"{WORKERS[EXCHANGES].title}: failures"
    user.click(title)
    table = user.find(QTreeWidget, title)
    await user.until(lambda: table.topLevelItemCount() == 3, "the queue")
    items = table.findItems("", Qt.MatchFlag.MatchContains)
    texts = [[row.text(column) for column in range(3)] for row in items]
    assert [row[0] for row in texts] == [f"Violin {each}, turn 1" for each in (1, 0, 2)]
    assert texts[2][1:] == ["7 tries, set aside", "It was never answered. Choose another model."]
    items[2].setSelected(True)
    user.click("Retry")
    await user.until(lambda: table.topLevelItemCount() == 2, "the selected one is done")
    await user.dismiss()
    assert card.retries.text().startswith("2 waiting for another try, the next at")
    await user.until(card.run_now.isEnabled, "the worker is idle")
    user.click(f"{WORKERS[EXCHANGES].title}: run now")
    await user.until(lambda: not card.failures.isVisible(), "both are done")
    await shows_what_is_stored(user)


async def test_quitting_while_workers_wait_hangs_up(user: User, server: Loopback) -> None:
    server.always(stall(before_headers=True))
    await start_with_paid_model(user, server)
    await user.ask(lambda services: called(services.store, ("look", "{}", "nothing")))
    await user.ask(lambda services: services.settings.set("embedder", "local:e"))
    paid = [name for name in WorkerName if name is not WorkerName.MAN_INDEXER]
    for name in paid:
        await user.ask(lambda services, each=name: services.workers.set_enabled(each, True))  # type: ignore[misc]
    await user.until(
        lambda: len([s for s in server.posts if s.wire != EMBEDDINGS]) == 2  # a part, tool calls
    )
    await user.until(lambda: any(seen.wire == EMBEDDINGS for seen in server.posts))
    await user.leave()
    assert all(seen.hung_up.wait(20) for seen in server.posts if seen.wire != EMBEDDINGS)

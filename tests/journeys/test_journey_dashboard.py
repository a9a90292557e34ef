"""Every number of the worker dashboard, checked against the database by SQL of the test's own."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QTreeWidget

from app.bootstrap import Role, Services, build
from app.domain.changes import ConversationEdited, SpendAdded
from app.domain.ids import ConversationId
from app.domain.workers import WorkerName
from app.providers.prices import OwnPrice
from app.storage.attempts import Attempts
from app.storage.settings import ProviderRow
from app.storage.store import Store
from app.system.paths import DataPaths
from app.workers.board import ENABLED_KEYS
from app.workers.wording import CALLED, size_words
from tests.fakes.loopback import Loopback
from tests.fakes.loopback_embeddings import EMBEDDINGS
from tests.fakes.loopback_script import stall, text, usage
from tests.fakes.manual import FakeManual
from tests.fakes.stored import made, told
from tests.fakes.tool_turns import called
from tests.fakes.user import User

ALL = tuple(WorkerName)
EXCHANGES, PIPELINE = WorkerName.EXCHANGE_SUMMARIZER, WorkerName.EMBEDDING_PIPELINE
DOT = " \N{MIDDLE DOT} "
NOW = datetime.now(UTC)
SPEND = (  # when, for what, input tokens, output tokens, USD
    (NOW, "chat", 1000, 500, 0.25),
    (NOW, EXCHANGES, 2000, 100, 1.5),
    (NOW - timedelta(days=3), EXCHANGES, 300, 20, 0.125),
    (NOW - timedelta(days=40), PIPELINE, 70_000, 0, 0.5),
    (NOW, WorkerName.KNOWLEDGE_EXTRACTOR, 60, 6, None),
    (NOW - timedelta(days=3), WorkerName.KNOWLEDGE_EXTRACTOR, 60, 6, 0.75),
)
_COUNTS: Mapping[WorkerName, tuple[str, str]] = {  # what is done, and all there is
    EXCHANGES: (
        "SELECT count(*) FROM summary WHERE kind = 'exchange' AND latest AND source_id IN {living}",
        "SELECT count(*) FROM exchange WHERE status = 'completed' AND id IN {living}",
    ),
    WorkerName.KNOWLEDGE_EXTRACTOR: (
        "SELECT count(*) FROM extraction WHERE exchange_id IN {living}",
        "SELECT count(*) FROM exchange WHERE status = 'completed' AND id IN {living}",
    ),
    WorkerName.CONVERSATION_SUMMARIZER: (
        ("SELECT count(*) FROM summary WHERE kind = 'conversation' AND latest "
        "AND source_id IN (SELECT id FROM conversation WHERE NOT private AND deleted_at IS NULL)"),
        "SELECT count(*) FROM conversation WHERE NOT private AND deleted_at IS NULL",
    ),
    PIPELINE: (
        ("SELECT count(DISTINCT passage_id) FROM embedding_all_minilm_l6_v2 "
        "WHERE passage_id IN {passages}"),
        "SELECT count(*) FROM passage WHERE id IN {passages}",
    ),
    WorkerName.MAN_INDEXER: (
        "SELECT count(*) FROM man_page WHERE read_stamp = stamp",
        "SELECT count(*) FROM man_page",
    ),
    WorkerName.TOOL_SUMMARIZER: (
        "SELECT count(*) FROM tool_summary",
        ("SELECT (sum(length(blocks) - length(replace(blocks, '\"_\":\"ToolCall\"', ''))) "
        "// length('\"_\":\"ToolCall\"'))::BIGINT FROM message WHERE role = 'assistant'"),
    ),
}  # fmt: skip
_LIVING = (
    "(SELECT e.id FROM exchange e JOIN conversation c ON c.id = e.conversation_id "
    "WHERE NOT c.private AND c.deleted_at IS NULL)"
)
_PASSAGES = (
    "(SELECT p.id FROM passage p LEFT JOIN conversation c ON c.id = p.conversation_id "
    "WHERE c.id IS NULL OR c.deleted_at IS NULL)"
)


def rows(services: Services, statement: str, *values: object) -> list[Any]:
    """Return what a statement of the test's own selects."""
    filled = statement.replace("{living}", _LIVING).replace("{passages}", _PASSAGES)
    return services.store.read(lambda cursor: cursor.execute(filled, list(values)).fetchall())


def number(services: Services, statement: str, *values: object) -> Any:
    return rows(services, statement, *values)[0][0]


@pytest.fixture
def server() -> Iterator[Loopback]:
    with Loopback() as running:
        running.always(text("They spoke of tea."), usage(200, 30))
        yield running


@pytest.fixture
def library(data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave a library with something of everything, all workers off, nothing of it standing still."""
    manual = FakeManual(tmp_path / "manual", monkeypatch)
    manual.add("tar.1", "an archiving utility", "Puts many files into one archive.")
    manual.add("none.1", "a page without a description", None)
    made(data_dir)
    services = build(DataPaths(data_dir), Role.WINDOW)
    try:
        fill(services)
    finally:
        services.close()


def fill(services: Services) -> None:
    store = services.store
    told(store, "I prefer green tea to coffee, and I live in Lisbon with two cats", title="Tea")
    called(store, ("read_file", '{"path": "notes.txt"}', "one\ntwo"), ("look", "{}", "three"))
    told(store, "A secret that nobody should ever find in any of these numbers", private=True)
    services.memories.save("The gate code of the allotment is on the blue tag")
    services.workers.run_until_idle(ALL)
    late = [told(store, f"The story of the violin number {each}, with its strings and its bow",
                 title=f"Violin {each}") for each in range(4)]  # fmt: skip
    gone = told(store, "What is in the trash is counted nowhere among the workers", title="Gone")
    store.save(ConversationEdited(ConversationId(gone.conversation.id), deleted_at=NOW))
    for name in (EXCHANGES, WorkerName.KNOWLEDGE_EXTRACTOR):
        failed(store, name, [talk.exchanges[0].id for talk in late])
    failed(store, WorkerName.CONVERSATION_SUMMARIZER, [talk.conversation.id for talk in late])
    newest = rows(services, "SELECT id FROM passage WHERE kind = 'turn' ORDER BY id DESC LIMIT 4")
    failed(store, PIPELINE, [each for (each,) in newest[1:]])
    for at, purpose, read, written, cost_usd in SPEND:
        store.save(SpendAdded(at, purpose, "a:model", read, written, 0, cost_usd))
    for key in ENABLED_KEYS.values():
        services.settings.set(key, False)


def failed(store: Store, name: WorkerName, items: list[int]) -> None:
    """Leave two items of a worker waiting for another try, and one set aside."""
    attempts = Attempts(store, name)
    attempts.failed(items[0], 1, NOW + timedelta(hours=2), "It timed out. Look at the server.")
    attempts.failed(items[1], 2, NOW + timedelta(hours=1), "It timed out. Look at the server.")
    attempts.failed(items[2], 7, None, "It was never answered. Choose another model.")


def cards(services: Services) -> dict[WorkerName, tuple[str, str, str]]:
    """Return what the card of each worker should say of counts, spend and retries, by SQL."""
    return {name: (_counts(services, name), _spent(services, name), _queue(services, name))
            for name in ALL}  # fmt: skip


def _counts(services: Services, name: WorkerName) -> str:
    done, total = (number(services, each) for each in _COUNTS[name])
    return f"{done:,} of {total:,}"


def _spent(services: Services, name: WorkerName) -> str:
    ((tokens, known_usd, unknown),) = rows(
        services,
        "SELECT coalesce(sum(input_tokens + output_tokens), 0), coalesce(sum(cost_usd), 0), "
        "count(*) - count(cost_usd) FROM spend WHERE purpose = ?",
        name,
    )
    cost = "cost unknown" if unknown else f"${known_usd:.2f}"
    return f"{tokens:,} tokens, {cost}" if tokens else "No tokens used, nothing spent"


def _queue(services: Services, name: WorkerName) -> str:
    ((waiting, aside, next_at),) = rows(
        services,
        "SELECT count(next_at), count(*) - count(next_at), min(next_at) FROM attempt "
        "WHERE worker = ?",
        name,
    )
    if not waiting:
        return f"{aside} set aside" if aside else ""
    at = next_at.replace(tzinfo=UTC).astimezone()
    return f"{waiting} wait for another try, the next at {at:%H:%M:%S}{DOT}{aside} set aside"


def totals(services: Services) -> dict[str, str]:
    """Return what should stand beside the cards, by SQL."""
    kinds = dict(rows(services, "SELECT kind, count(*) FROM passage GROUP BY kind"))
    titles = {
        "turn": "Turns", "exchange_summary": "Exchange summaries", "fact": "Facts",
        "conversation_summary": "Conversation summaries", "memory": "Memories",
        "tool_summary": "Tool summaries", "man_page": "Manual pages", "document": "Documents",
    }  # fmt: skip
    shown = {title: f"{kinds.get(kind, 0):,}" for kind, title in titles.items()}
    done, there = (number(services, each) for each in _COUNTS[PIPELINE])
    shown["Found by meaning (all-MiniLM-L6-v2, built in)"] = f"{done / there * 100:.0f} %"
    shown["Found by words"] = "100 %"
    paths = (services.paths.database, services.paths.wal)
    shown["Database"] = size_words(sum(each.stat().st_size for each in paths if each.exists()))
    today = NOW.astimezone().date()
    spend = [(at.replace(tzinfo=UTC).astimezone().date(), usd)
             for at, usd in rows(services, "SELECT spent_at, cost_usd FROM spend")]  # fmt: skip
    month = [(day, usd) for day, usd in spend if day.replace(day=1) == today.replace(day=1)]
    shown["Spent today"] = _money([usd for day, usd in spend if day == today])
    shown["Spent this month"] = _money([usd for _, usd in month])
    return shown


def _money(costs: list[float | None]) -> str:
    known = sum(cost for cost in costs if cost is not None)
    return f"${known:.2f} + unknown" if None in costs else f"${known:.2f}"


def shown_totals(user: User) -> dict[str, str]:
    """Return what stands beside the cards."""
    said = (each.accessibleName() for each in user.window.dashboard.findChildren(QLabel))
    return dict(each.rsplit(": ", 1) for each in said if ": " in each)


async def stands_as_stored(user: User) -> None:
    """Wait until every number on the dashboard is the one that the database holds."""
    dashboard = user.window.dashboard
    want = await user.ask(cards)
    for name, (counts, spent, retries) in want.items():
        card = dashboard.card(name)
        await user.until(
            lambda c=card, w=counts: c.counts.text().split(DOT)[0] == w,  # type: ignore[misc]
            f"{name}: {counts}",
        )
        await user.until(lambda c=card, w=spent: c.spent.text().endswith(w), f"{name}: {spent}")  # type: ignore[misc]
        await user.until(lambda c=card, w=retries: c.retries.text() == w, f"{name}: {retries}")  # type: ignore[misc]
        done, total = counts.split(" of ")
        assert card.bar.maximum() == max(1, int(total))
        assert card.bar.value() == int(done)
    await user.until_so(lambda services: totals(services) == shown_totals(user))


@pytest.mark.usefixtures("library")
async def test_every_number_on_the_dashboard_is_the_databases(user: User, server: Loopback) -> None:
    await user.start()
    user.press("Ctrl+Shift+W")
    await stands_as_stored(user)
    kinds = await user.ask(lambda services: set(services.overview.read().passages))
    assert {"turn", "exchange_summary", "conversation_summary", "fact", "memory", "tool_summary",
            "man_page"} <= kinds, "there is something of every kind"  # fmt: skip
    dashboard = user.window.dashboard
    for name in ALL:
        card = dashboard.card(name)
        assert (card.state.text(), card.switch.isChecked()) == ("off", False)
        assert card.session.text() == f"This session: 0 done{DOT}0 failed{DOT}0 skipped"
        assert not card.run_now.isVisible()
    left = await user.ask(lambda services: number(services, (
        "SELECT count(*) FROM passage WHERE id IN {passages} AND id NOT IN "
        "(SELECT passage_id FROM embedding_all_minilm_l6_v2) AND id NOT IN "
        "(SELECT item_id FROM attempt WHERE worker = 'embedding_pipeline' AND next_at IS NULL)")))  # fmt: skip
    await user.sees(f"{left} passages wait for embeddings, the embedding pipeline is off.")
    await user.sees("1 item was set aside by the embedding pipeline after failing too often")

    # A session with a model that is paid for.
    await user.ask(paid_model(server))
    card = dashboard.card(EXCHANGES)
    card.switch.click()
    await user.until(lambda: card.state.text() == "idle", "what could be summed up is")
    await user.until_so(is_summed_up)
    made_now = await user.ask(lambda services: number(
        services, "SELECT count(*) FROM summary WHERE kind = 'exchange' AND model = 'local:m'"
    ))  # fmt: skip
    assert made_now > 0
    await user.until(
        lambda: card.session.text() == f"This session: {made_now} done{DOT}0 failed{DOT}0 skipped"
    )
    cost = made_now * (200 * 1000 + 30 * 2000) / 1e6
    session = f"Spent this session: {made_now * 230:,} tokens, ${cost:.2f}"
    await user.until(lambda: card.spent.text().startswith(session), session)
    await stands_as_stored(user)

    # What failed is listed, and one of it, then the rest, is tried again.
    user.click(f"{CALLED[EXCHANGES].title}: failures")
    table = user.find(QTreeWidget, f"{CALLED[EXCHANGES].title}: failures")
    await user.until(lambda: table.topLevelItemCount() == 3, "the queue")
    shown = table.findItems("", Qt.MatchFlag.MatchContains)
    rows_shown = [[row.text(column) for column in range(3)] for row in shown]
    assert [row[0] for row in rows_shown] == [f"Violin {each}, turn 0" for each in (1, 0, 2)]
    assert rows_shown[2][1:] == ["7 tries, set aside",
                                 "It was never answered. Choose another model."]  # fmt: skip
    shown[2].setSelected(True)
    user.click("Try again")
    await user.until(lambda: table.topLevelItemCount() == 2, "the marked one has come through")
    user.click("Try all again")
    await user.sees("Nothing waits for another try.")
    await user.dismiss()
    await user.until_so(lambda services: is_summed_up(services, waiting=0))
    await stands_as_stored(user)
    await user.until(lambda: not card.failures.isVisible())


@pytest.mark.usefixtures("library")
async def test_run_now_tries_at_once_what_waits_and_leaves_what_was_set_aside(
    user: User, server: Loopback
) -> None:
    await user.start()
    user.press("Ctrl+Shift+W")
    await user.ask(paid_model(server))
    card = user.window.dashboard.card(EXCHANGES)
    await user.until(lambda: card.state.text() == "off")
    card.switch.click()
    await user.until(lambda: card.state.text() == "idle" and card.run_now.isVisible())
    assert card.retries.text().startswith("2 wait for another try, the next at")
    user.click(f"{CALLED[EXCHANGES].title}: run now")
    await user.until(lambda: card.retries.text() == "1 set aside", "both were tried")
    await stands_as_stored(user)


def paid_model(server: Loopback) -> Any:
    """Return what makes a priced model do the background work."""

    def choose(services: Services) -> None:
        services.settings.put_provider(ProviderRow("local", "compatible", server.v1, None))
        services.own_prices.put("local:m", OwnPrice(1000.0, 2000.0))
        services.settings.set("background_model", "local:m")

    return choose


def is_summed_up(services: Services, waiting: int = 3) -> bool:
    """Whether all exchanges are summed up but for so many."""
    done, total = (number(services, each) for each in _COUNTS[EXCHANGES])
    return bool(total - done == waiting)


@pytest.mark.usefixtures("library")
async def test_quitting_with_every_worker_in_the_middle_of_a_request_hangs_up_on_all_of_them(
    user: User, server: Loopback
) -> None:
    server.always(stall(before_headers=True))
    await user.start()
    await user.ask(paid_model(server))
    await user.ask(lambda services: called(services.store, ("look", "{}", "nothing")))
    await user.ask(lambda services: services.settings.set("embedder", "local:e"))
    for name in ALL:
        if name is not WorkerName.MAN_INDEXER:
            await user.ask(lambda services, each=name: services.workers.set_enabled(each, True))  # type: ignore[misc]
    await user.until(lambda: len([s for s in server.posts if s.wire != EMBEDDINGS]) == len(ALL) - 2)
    await user.until(lambda: any(seen.wire == EMBEDDINGS for seen in server.posts))
    await user.leave()
    chats = [seen for seen in server.posts if seen.wire != EMBEDDINGS]
    assert all(seen.hung_up.wait(20) for seen in chats)

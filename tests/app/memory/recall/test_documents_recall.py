"""Documents in prompts, tools and other programs, and what forgetting leaves of them."""

import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from app.bootstrap import RunMode, build
from app.chat.recall_preview import Preview
from app.check import check
from app.domain.changes import MessagesAdded, PromptStored
from app.domain.conversations import FORGOTTEN
from app.domain.errors import NotFound
from app.domain.ids import ExchangeId
from app.domain.passages import PassageKind
from app.domain.recall import PlanPartKind, RecalledItem, RecallLayer, StoredPrompt
from app.domain.records.documents import DocumentState, FileState
from app.domain.records.projects import Project, RecallRule
from app.domain.settings_schema import SettingValue
from app.domain.turns import RECALL_MODEL
from app.mcp.access import Access
from app.memory.context.text import cited_items
from app.providers.vendors.recall import RecallModel
from app.storage.deletion.forget import value_places
from app.storage.engine.stamps import now
from app.storage.safety.maintenance import Maintenance, MaintenanceClock
from app.storage.tables.prompts import Prompts
from tests.app.chat.test_recall_model import reply_of
from tests.fakes.canary import files_after_erasing, files_with, plain_databases
from tests.fakes.document_folder import DocumentLibrary
from tests.fakes.files import pdf
from tests.fakes.stored import AT, add_conversation, made, new_conversation

QUESTION = "Who repaired the brass telescope of the Marwick observatory?"
ANSWER = "Ottilie Varga repaired the brass telescope of the Marwick observatory in 1911."
KEY = "zebra-7f3a9c-key"


@pytest.fixture
def library(data_dir: Path, tmp_path: Path) -> Iterator[DocumentLibrary]:
    with plain_databases():
        services = build(made(data_dir), RunMode.COMMAND_LINE)
        library = DocumentLibrary(services, tmp_path / "papers")
        (library.folder / "telescopes.pdf").write_bytes(
            pdf("Some notes on the history of instruments.", f"It is said:\n{ANSWER}")
        )
        for number in range(8):
            text = f"Note {number}: the gardens of the town are watered in summer."
            (library.folder / f"{number}.txt").write_text(text)
        library.run()
        services.index_sync.catch_up(lambda: False)
        yield library
        services.close()


def previewed(library: DocumentLibrary, **tried: SettingValue) -> Preview:
    previews = library.services.previews
    return previews.preview(previews.fetch(QUESTION, tried=tried), tried)


def documents(preview: Preview) -> list[RecalledItem]:
    return [each.item for each in preview.places if each.item.layer is RecallLayer.DOCUMENT]


def found_titles(library: DocumentLibrary, query: str) -> list[str]:
    results = library.services.search.search(query).results
    kept = (each for each in results if each.kind is PassageKind.DOCUMENT)
    return [each.conversation_title for each in kept]


def test_filters_of_titles_days_and_projects_leave_documents(library: DocumentLibrary) -> None:
    services = library.services
    old, title = library.folder / "old.txt", "telescopes.pdf, p. 2"
    old.write_text("An old note: the gardens are watered at night.")
    os.utime(old, (86_400, 86_400))
    project = services.projects.save(Project("", "Observatory", recall=RecallRule.ONLY))
    services.documents.add(library.folder, project=project.uid)
    library.look()
    services.index_sync.catch_up(lambda: False)
    assert title in found_titles(library, "brass telescope title:telescopes")
    assert title not in found_titles(library, "brass telescope title:8.txt")
    assert found_titles(library, "watered before:1980") == ["old.txt"]
    assert "old.txt" not in found_titles(library, "watered after:1980")
    assert title in found_titles(library, "brass telescope project:observ")
    assert found_titles(library, "brass telescope project:other") == []
    assert found_titles(library, "brass telescope is:pinned") == []
    assert found_titles(library, "title:telescopes") == ["telescopes.pdf, p. 1"]
    assert len(found_titles(library, "project:observ")) == 10


@pytest.mark.parametrize("query", ["telescopes.pdf", "Telescopes", "papers/telescopes.pdf"])
def test_the_name_of_a_file_finds_it(library: DocumentLibrary, query: str) -> None:
    services = library.services
    for kinds in (None, {PassageKind.DOCUMENT}):
        best = services.search.search(query, kinds=kinds).results[0]
        assert (best.conversation_title, best.is_weak) == ("telescopes.pdf, p. 1", False)
        without = services.search.search(f"{query} -instruments", kinds=kinds).results
        assert "telescopes.pdf, p. 1" not in {each.conversation_title for each in without}


def test_an_answering_passage_is_quoted_with_file_and_page(library: DocumentLibrary) -> None:
    services = library.services
    place = next(each for each in previewed(library).injected)
    assert (place.item.layer, place.item.kind) == (RecallLayer.DOCUMENT, PassageKind.DOCUMENT)
    assert place.title == "telescopes.pdf, p. 2"
    found = services.previews.fetch(QUESTION)
    part = next(
        each
        for each in found.draft.context(found.fetched).parts
        if each.kind is PlanPartKind.DOCUMENTS
    )
    assert ANSWER in part.text
    assert part.tokens <= services.settings.number("rag_document_max_tokens")
    passage = place.item.passage_id
    link = f"commonplace://document/{passage}"
    assert link in part.text
    assert cited_items(f"It was [Varga]({link}).", [place.item], {}) == (place.item,)
    assert cited_items("It was Varga.", [place.item], {}) == ()
    shown = services.document_texts.at(link)
    assert (shown.place, shown.chunks[1].page) == (1, 2)
    assert services.document_texts.at(shown.source) == replace(shown, place=None)


@pytest.mark.parametrize("month", ["March", "März"])
def test_a_month_quotes_the_row_of_a_date_in_digits(library: DocumentLibrary, month: str) -> None:
    costs = {"02": "gutter", "03": "chimney", "05": "fence", "07": "cellar"}
    rows = [f"2026-{number},repair of the {what},{number}00" for number, what in costs.items()]
    rows = [each.replace(",", "-14,", 1) for each in rows]
    (library.folder / "costs.csv").write_text(
        "\n".join(["day,work,euros", *rows]), encoding="utf-8"
    )
    library.look()
    services = library.services
    services.index_sync.catch_up(lambda: False)
    found = services.previews.fetch(f"What repair was done in {month}?")
    parts = found.draft.context(found.fetched).parts
    assert "chimney" in next(each.text for each in parts if each.kind is PlanPartKind.DOCUMENTS)
    assert library.found(month)[0] == "costs.csv"
    now = f"{datetime.now().astimezone():%B}"
    assert set(library.found(now)) - {"costs.csv"} == set(library.found("history gardens"))


@pytest.mark.parametrize(
    "question",
    ["Rechnung vom 20. Oktober 2012", "Rechnung im Oktober 2012", "invoice of 20 October 2012"],
)
def test_the_date_in_the_name_of_a_file_is_understood(
    library: DocumentLibrary, question: str
) -> None:
    for day in ("20.10.12", "03.02.12", "20.10.11"):
        (library.folder / f"Rechnung {day}.txt").write_text("Betrag 42 Euro, Konto der Stadtwerke.")
    library.look()
    library.services.index_sync.catch_up(lambda: False)
    assert library.found(question)[0] == "Rechnung 20.10.12.txt"


def test_the_recall_model_quotes_documents_until_they_are_removed(library: DocumentLibrary) -> None:
    services, store = library.services, library.services.store
    here = add_conversation(store, ("Hello.", "Hello.")).conversation.id
    answers = services.recall.answers(QUESTION, (), here, 6) or ()
    (best,) = (each for each in answers if not each.result.is_weak)
    assert (best.result.kind, best.reply) == (PassageKind.DOCUMENT, ANSWER)
    said = reply_of(RecallModel(lambda *_: answers), QUESTION)
    link = f"· document {best.result.passage_id}](commonplace://document/{best.result.passage_id})"
    assert link in said
    assert ANSWER in said
    whole = new_conversation(store, (QUESTION, said))
    asked, answered = whole.messages
    messages = MessagesAdded((asked, replace(answered, model=RECALL_MODEL)))
    store.save(*(messages if isinstance(each, MessagesAdded) else each for each in whole.changes))
    services.documents.remove([library.folder])
    (exchange,) = whole.exchanges
    answer = services.library.messages(whole.exchanges)[exchange.id][-1].text
    assert FORGOTTEN in answer
    assert "Varga" not in answer
    left = services.recall.answers(QUESTION, (), here, 6) or ()
    assert PassageKind.DOCUMENT not in {each.result.kind for each in left}


def test_recall_quotes_no_documents_of_another_bounded_project(library: DocumentLibrary) -> None:
    services = library.services
    project = services.projects.save(Project("", "Closed", recall=RecallRule.ONLY))
    inside, outside = (
        add_conversation(services.store, ("Hello.", "Hello.")).conversation.id for _ in range(2)
    )
    services.projects.move([inside], project.uid)
    services.documents.add(library.folder, project.uid)
    kinds = [
        {each.result.kind for each in services.recall.answers(QUESTION, (), here, 6) or ()}
        for here in (inside, outside)
    ]
    assert [PassageKind.DOCUMENT in each for each in kinds] == [True, False]


def test_documents_have_a_budget_of_their_own_and_can_be_left_out(library: DocumentLibrary) -> None:
    tight = previewed(library, rag_document_max_tokens=20)
    assert next(each.dropped_by for each in documents(tight)) == "rag_document_max_tokens is 20"
    assert documents(previewed(library, rag_max_tokens=0, rag_document_max_tokens=500))[0].injected
    assert documents(previewed(library, rag_document_max_tokens=0)) == []
    assert documents(previewed(library, rag_enabled=False)) == []


def test_other_programs_and_briefs_find_and_read_documents(library: DocumentLibrary) -> None:
    services = library.services
    services.mcp_access.decide("other", Access.ALLOWED)
    found = services.mcp_tools.call("search", {"query": QUESTION}, "other").text
    passage = documents(previewed(library))[0].passage_id
    assert f'"document:{passage}"' in found
    read = services.mcp_tools.call("fetch", {"id": f"document:{passage}"}, "other").text
    assert "Ottilie Varga" in read
    assert "Ottilie Varga" in services.briefs.write(QUESTION, 1_000)


def stored_prompt(library: DocumentLibrary) -> ExchangeId:
    """Store a turn whose prompt quotes what answers the question; return its id."""
    services, store = library.services, library.services.store
    whole = add_conversation(store, QUESTION)
    exchange, here = whole.exchanges[0].id, whole.conversation.id
    found = services.previews.fetch(QUESTION)
    context = found.draft.context(found.fetched)
    quoted = tuple(each for each in context.parts if each.kind is PlanPartKind.DOCUMENTS)
    prompt = StoredPrompt(exchange, here, AT, "openai:m", 1_000, 2_000, quoted, context.items)
    store.save(PromptStored(prompt))
    return exchange


def test_a_quote_says_that_its_file_has_changed_or_is_gone(library: DocumentLibrary) -> None:
    services, path = library.services, library.folder / "telescopes.pdf"
    exchange = stored_prompt(library)
    place = Prompts(services.store).places(exchange)[0]
    link = f"document:{place.item.passage_id}"
    assert (place.file, services.document_texts.at(link).is_former) == (FileState.SAME, False)
    path.write_bytes(pdf("A new page.", "Nobody knows who repaired it.", "The last page."))
    library.look()
    place = Prompts(services.store).places(exchange)[0]
    assert (place.file, place.title, place.text) == (FileState.CHANGED, path.name, "")
    now = services.document_texts.at(link)
    assert now.is_former
    assert (now.passage.page, now.passage.text.strip()) == (2, "Nobody knows who repaired it.")
    path.unlink()
    library.look()
    place = Prompts(services.store).places(exchange)[0]
    assert (place.file, place.title) == (FileState.GONE, path.name)
    with pytest.raises(NotFound, match="is gone"):
        services.document_texts.at(link)
    path.write_bytes(pdf("It came back."))
    library.look()
    assert services.document_texts.at(link).text == "It came back."
    assert check(services.store).problems == ()


def test_a_quote_of_a_moved_file_leads_to_where_its_text_is_now(library: DocumentLibrary) -> None:
    services, path = library.services, library.folder / "telescopes.pdf"
    exchange = stored_prompt(library)
    place = Prompts(services.store).places(exchange)[0]
    link, now = f"document:{place.item.passage_id}", library.folder / "optics" / "lenses.pdf"
    now.parent.mkdir()
    path.rename(now)
    library.look()
    found = services.document_texts.at(link)
    assert (found.source, found.passage.page, found.is_former) == (str(now), 2, False)
    assert ANSWER in found.passage.text
    assert check(services.store).problems == ()
    path.write_bytes(pdf("Another page."))
    library.look()
    found = services.document_texts.at(link)
    assert (found.source, found.is_former) == (str(path), True)


def test_another_file_of_the_same_time_and_size_is_no_moved_one(library: DocumentLibrary) -> None:
    services, old, new = library.services, library.folder / "closed", library.folder / "open"
    project = services.projects.save(Project("", "Closed", recall=RecallRule.ONLY))
    for each in (old, new):
        each.mkdir()
    telescopes = library.folder / "telescopes.pdf"
    telescopes.rename(telescopes := old / "telescopes.txt")
    telescopes.write_text(ANSWER)
    library.look()
    services.index_sync.catch_up(lambda: False)
    exchange = stored_prompt(library)
    place = Prompts(services.store).places(exchange)[0]
    services.documents.add(old, project.uid)
    stamp = telescopes.stat()
    telescopes.unlink()
    (new / "cheese.txt").write_text("Brie goes well with a bun. ".ljust(len(ANSWER), "."))
    os.utime(new / "cheese.txt", ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    library.look()
    beyond = Prompts(services.store).recalled_beyond([exchange], None)
    assert place.item.passage_id in beyond
    with pytest.raises(NotFound, match="is gone"):
        services.document_texts.at(f"document:{place.item.passage_id}")


@pytest.mark.parametrize("removed", ["report.md", "old"])
def test_removing_spares_what_is_where_a_moved_file_was(
    library: DocumentLibrary, removed: str
) -> None:
    services, store = library.services, library.services.store
    path, old = library.folder / "report.md", library.folder / "old"
    words = {"report.md": "quetzalcoatl", "old": "huitzilopochtli"}
    old.mkdir()
    path.write_text(f"The secret of the first report is {words['old']}.")
    library.look()
    path.rename(old / path.name)
    library.look()
    path.write_text(f"The secret of the second report is {words['report.md']}.")
    library.look()
    services.back_up()
    services.documents.remove([library.folder / removed])
    kept = path if removed == "old" else old / path.name
    names = {each.name for each in services.documents.statuses()}
    assert {str(path), str(old / path.name)} & names == {str(kept)}
    services.index_sync.catch_up(lambda: False)
    assert files_after_erasing(store, words[removed]) == set()
    assert check(store).problems == ()


@pytest.mark.parametrize("is_replaced", [False, True])
def test_quotes_of_a_moved_file_go_with_its_new_folder(
    library: DocumentLibrary, is_replaced: bool
) -> None:
    services, store = library.services, library.services.store
    path, new = library.folder / "telescopes.pdf", library.folder / "new"
    exchange = stored_prompt(library)
    services.back_up()
    new.mkdir()
    path.rename(new / path.name)
    library.look()
    if is_replaced:
        path.write_bytes(pdf("Nothing about it."))
        library.look()
    services.documents.remove([new])
    assert "Varga" not in Prompts(store).of(exchange).parts[0].text
    assert (path.name in library.states()) is is_replaced
    if not is_replaced:
        services.index_sync.catch_up(lambda: False)
        assert files_after_erasing(store, "Ottilie Varga") == set()


@pytest.mark.parametrize("before", ["as it was", "edited", "deleted", "renamed"])
def test_a_removed_document_is_gone_from_prompts_that_quoted_any_version(
    library: DocumentLibrary, before: str
) -> None:
    services, store = library.services, library.services.store
    exchange = stored_prompt(library)
    assert ANSWER in Prompts(store).of(exchange).parts[0].text
    services.back_up()
    if before == "edited":
        (library.folder / "telescopes.pdf").write_bytes(pdf("Nothing about it."))
    elif before == "deleted":
        (library.folder / "telescopes.pdf").unlink()
    elif before == "renamed":
        (library.folder / "telescopes.pdf").rename(library.folder / "lenses.pdf")
    library.look()
    remains = services.documents.remove([library.folder])
    assert remains[0] == "1 answer of a model that used them stays in its conversation."
    redacted = Prompts(store).of(exchange)
    assert FORGOTTEN in redacted.parts[0].text
    assert "Varga" not in redacted.parts[0].text
    assert services.passages.of_kind(PassageKind.DOCUMENT) == frozenset()
    assert store.rows("SELECT * FROM former_passage") == []
    assert services.search.boundaries.of(None).holds(1)
    services.index_sync.catch_up(lambda: False)
    assert files_after_erasing(store, "Ottilie Varga") == set()
    assert check(store).problems == ()


def test_a_value_in_a_document_is_forgotten_for_good(library: DocumentLibrary) -> None:
    services, store = library.services, library.services.store
    path = library.folder / "config.txt"
    path.write_text("x " * 900 + f"The key is {KEY}. It opens the shed of the gardener.")
    library.look()
    services.back_up()
    assert value_places(store, KEY) == {"document": 1}
    remains = services.values.forget([KEY])
    assert any("Documents" in each for each in remains)
    assert value_places(store, KEY) == {}
    assert "config.txt" not in library.states()
    services.index_sync.catch_up(lambda: False)
    assert "config.txt" not in library.found("shed gardener")
    path.write_text(f"The key is {KEY}, still.")
    library.look()
    assert "config.txt" not in library.states()
    assert library.states()["0.txt"][0] is DocumentState.READ
    assert files_after_erasing(store, KEY) == set()
    assert check(store).problems == ()


def test_the_bytes_of_edited_and_deleted_files_go_within_a_day(library: DocumentLibrary) -> None:
    services, root, late = library.services, library.services.paths.root, [timedelta(0)]
    words = {"x.txt": "quetzalcoatl", "y.txt": "huitzilopochtli"}
    for name, word in words.items():
        (library.folder / name).write_text(f"The secret word is {word}.")
    library.look()
    (library.folder / "x.txt").write_text("The secret word is another one.")
    (library.folder / "y.txt").unlink()
    library.look()
    services.index_sync.catch_up(lambda: False)
    clock = MaintenanceClock(lambda: late[0] / timedelta(seconds=1), lambda: now() + late[0])
    maintenance = Maintenance(services.store, clock)
    maintenance.erase_index = services.index_sync.erase
    for hours in (2, 26):
        late[0] = timedelta(hours=hours)
        maintenance.run_due()
        for word in words.values():
            assert bool(files_with(root, word)) == (hours < 24), word
    assert found_titles(library, "another secret word")[0] == "x.txt"

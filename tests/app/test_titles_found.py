"""A conversation is found by its title: by the one it has now, as soon as it has it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.bootstrap import Role, Services, build
from app.domain.changes import ConversationEdited
from app.domain.conversations import TitleOrigin
from app.domain.ids import ConversationId
from app.system.paths import DataPaths
from tests.fakes.stored import told


@pytest.fixture
def services(data_dir: Path) -> Iterator[Services]:
    opened = build(DataPaths(data_dir), Role.COMMAND_LINE)
    yield opened
    opened.close()


def found(services: Services, query: str) -> list[ConversationId | None]:
    services.index_sync.catch_up_a_little()
    return [each.conversation_id for each in services.search.search(query).results]


def test_a_renamed_conversation_is_found_by_its_new_title_at_once(services: Services) -> None:
    talk = told(services.store, "How much water", "And how much light", title="Herbs").conversation
    assert found(services, "herbs") == [talk.id, talk.id]
    services.library.rename(talk.id, "Windowsill gardening")
    assert found(services, "windowsill") == [talk.id, talk.id]
    assert found(services, "herbs") == []


def test_a_title_that_a_summariser_gave_is_found_too(services: Services) -> None:
    talk = told(services.store, "How much water", title="How much water").conversation
    services.index_sync.catch_up()
    services.store.save(
        ConversationEdited(
            talk.id, title="Windowsill gardening", title_origin=TitleOrigin.SUMMARISER
        )
    )
    assert found(services, "windowsill") == [talk.id]


def test_a_rename_says_that_passages_changed_and_another_edit_does_not(services: Services) -> None:
    talk = told(services.store, "How much water", title="Herbs").conversation
    assert services.store.save(ConversationEdited(talk.id, title="Plants")).passages
    assert not services.store.save(ConversationEdited(talk.id, pinned=True)).passages


def test_the_names_of_other_conversations_cost_no_work(services: Services) -> None:
    talk = told(services.store, "How much water", title="Herbs").conversation
    told(services.store, "Which bolt fits", title="Bicycle")
    _, position = services.passages.forgetting()
    services.library.rename(talk.id, "Plants")
    (renewed,) = services.passages.work_since(position, 10).added
    assert services.passages.places([renewed])[renewed].conversation_id == talk.id

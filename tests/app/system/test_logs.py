"""The log: it contains tracebacks but no quoted text of servers or conversations."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.domain.errors import InvalidReply, ProviderError
from app.providers.http.endpoint import RequestTarget
from app.providers.http.error_classification import ErrorResponse, classify
from app.system.logs import configure_logging
from app.system.paths import DataPaths

SAID = "my diary, page 3"


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Path]:
    paths = DataPaths(tmp_path)
    paths.logs.mkdir(parents=True)
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    configure_logging(paths)
    yield paths.logs / "commonplace.log"
    for handler in [each for each in root.handlers if each not in before]:
        root.removeHandler(handler)
        handler.close()
    root.setLevel(level)


def refused() -> ProviderError:
    return classify(
        ErrorResponse(400, "cannot parse 'my diary'"), RequestTarget("here", "http://here")
    )


def parse() -> None:
    raise ValueError(SAID)


def test_tracebacks_contain_only_messages_of_known_errors(log: Path) -> None:
    try:
        try:
            parse()
        except ValueError as error:
            raise refused() from error
    except ProviderError:
        logging.getLogger("test").exception("it failed")
    written = log.read_text()
    assert "test_logs.py" in written
    assert "ValueError" in written
    assert "here does not accept the request" in written
    assert "diary" not in written


def test_a_formatted_error_contains_its_log_text(log: Path) -> None:
    quoting = InvalidReply("here redirects to my-diary", log_text="here redirects")
    logging.getLogger("test").warning("it waits: %s; %s", refused(), quoting)
    written = log.read_text()
    assert "here redirects" in written
    assert "diary" not in written
    assert "The server says: cannot parse “my diary”" in refused().display_text

"""The log file: where an error came from is in it, what a server or a bug quotes is not."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.domain.provider_errors import NonsenseReply, ProviderError
from app.providers.subject import Subject
from app.providers.verdicts import Complaint, verdict
from app.system.logs import start_log
from app.system.paths import DataPaths

SAID = "my diary, page 3"


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Path]:
    paths = DataPaths(tmp_path)
    paths.logs.mkdir(parents=True)
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    start_log(paths)
    yield paths.logs / "commonplace.log"
    for handler in [each for each in root.handlers if each not in before]:
        root.removeHandler(handler)
        handler.close()
    root.setLevel(level)


def refused() -> ProviderError:
    return verdict(Complaint(400, "cannot parse 'my diary'"), Subject("here", "http://here"))


def parse() -> None:
    raise ValueError(SAID)


def test_an_exception_is_logged_with_its_place_and_no_message_but_our_own(log: Path) -> None:
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


def test_an_error_put_into_a_sentence_says_our_own_words(log: Path) -> None:
    quoting = NonsenseReply("here redirects to my-diary", own_words="here redirects")
    logging.getLogger("test").warning("it waits: %s; %s", refused(), quoting)
    written = log.read_text()
    assert "here redirects" in written
    assert "diary" not in written
    assert "The server says: cannot parse 'my diary'" in refused().screen_words

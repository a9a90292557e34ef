"""Fixtures that make a test's set-up from other fixtures, in a line each."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest


def fixture_of(kind: Callable[..., Any], *uses: str, then: str = "") -> Any:
    """Return a fixture: `kind` of the fixtures with these names, by default of `parts`.

    `then` are methods of it to call at the end, such as "close" or "model.close desk.close".
    """

    @pytest.fixture
    def made(request: pytest.FixtureRequest) -> Iterator[Any]:
        one = kind(*map(request.getfixturevalue, uses or ("parts",)))
        yield one
        for path in then.split():
            method = one
            for name in path.split("."):
                method = getattr(method, name)
            method()

    return made

"""Values, such as keys and passwords, that are forgotten wherever they are stored."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

from app.domain.errors import NotFound
from app.domain.ids import MessageId
from app.domain.translation import trn
from app.language.secrets import find_secrets
from app.memory.secret_places import secret_texts
from app.storage.deletion.forget import value_places
from app.storage.engine.store import Store
from app.storage.tables.exchanges import Exchanges


class ValueService:
    """Forgets values, such as keys, wherever they are stored. Blocking; a value is never shown or logged.

    `forget_value` is `app.storage.deletion.forget.forget_value` for the open store.
    """

    def __init__(self, store: Store, forget_value: Callable[[str], Sequence[str]]) -> None:
        self._store = store
        self._forget_value = forget_value

    def in_messages(self, message_ids: Iterable[MessageId]) -> Sequence[str]:
        """Return the secrets in messages; raise NotFound for an unknown message, or where there is none."""
        ids = list(message_ids)
        messages = Exchanges(self._store).messages(ids)
        values: dict[str, None] = {}
        for each in ids:
            texts = secret_texts(messages[each]) if each in messages else ()
            found = [value for text in texts for value in _values_in(text)]
            if not found:
                raise NotFound(
                    f"No secret was found in message {each}", "'commonplace secrets' lists them."
                )
            values |= dict.fromkeys(found)
        return tuple(values)

    def places(self, values: Iterable[str]) -> Mapping[str, int]:
        """Return how many records contain the values, by kind (the names of tables)."""
        total: Counter[str] = Counter()
        for each in values:
            total.update(value_places(self._store, each))
        return total

    def forget(self, values: Iterable[str]) -> Sequence[str]:
        """Remove values wherever they are stored; return what remains elsewhere.

        Raises as `forget_value` does, but for NotFound only where no value is stored.
        """
        left: dict[str, None] = {}
        missing: NotFound | None = None
        for each in sorted(values, key=len, reverse=True):  # a shorter one may be part of it
            try:
                left |= dict.fromkeys(self._forget_value(each))
            except NotFound as error:
                missing = error
        if missing is not None and not left:
            raise missing
        return tuple(left)


def places_text(counts: Mapping[str, int]) -> str:
    """Return the counts of `ValueService.places` as text: "2 messages, 1 fact"."""
    shown = (
        trn("{count} message", "{count} messages", counts.get("message", 0)),
        trn("{count} title", "{count} titles", counts.get("conversation", 0)),
        trn("{count} fact", "{count} facts", counts.get("fact", 0)),
        trn("{count} saved text", "{count} saved texts", counts.get("memory", 0)),
        trn("{count} summary", "{count} summaries", counts.get("summary", 0)),
        trn("{count} document", "{count} documents", counts.get("document", 0)),
    )
    named = ("message", "conversation", "fact", "memory", "summary", "document")
    parts = [text for name, text in zip(named, shown, strict=True) if counts.get(name)]
    if rest := sum(count for name, count in counts.items() if name not in named):
        parts.append(trn("{count} other record", "{count} other records", rest))
    return ", ".join(parts)


def _values_in(text: str) -> Iterator[str]:
    """Yield the secrets in a text; one in JSON as it is without JSON's escapes."""
    for secret in find_secrets(text):
        value = text[secret.start : secret.end]
        with suppress(ValueError):
            plain = json.loads(f'"{value}"', strict=False)
            value = plain if isinstance(plain, str) else value
        yield value

"""Settings in force (environment, then the table `appconfig`, then the default) and providers."""

import json
import os
from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

from app.domain.change_set import ChangeSet
from app.domain.changes import ProviderPut, SettingPut
from app.domain.chat import StoredProvider
from app.domain.errors import InvalidSetting
from app.domain.settings_schema import SETTINGS, SettingValue, setting_for
from app.storage.engine.aggregate import Aggregate, Batch, Table, columns_of
from app.storage.engine.connection import Connection
from app.storage.engine.store import Store

T = TypeVar("T")
_ENVIRONMENT = {"proxy_url": "COMMONPLACE_PROXY_URL", "ca_bundle": "COMMONPLACE_CA_BUNDLE"}
PROBES = "probe_questions"
_PROVIDER = Table("provider", columns_of(StoredProvider), "name")


# -- changes


def _put(batch: Batch, change: SettingPut) -> None:
    value = change.value_json
    batch.rows["appconfig"][change.key] = None if value is None else (change.key, value)
    batch.announce("settings", change.key)


def _put_provider(batch: Batch, change: ProviderPut) -> None:
    if change.removed:
        batch.rows["provider"][change.name] = None
    else:
        _PROVIDER.put(batch, change)
    batch.announce("providers", change.name)


def drop_probes(connection: Connection, exchange_ids: Collection[int]) -> None:
    """Drop the test questions about some turns; inside the caller's transaction."""
    for value in connection.column_in("appconfig", "value", [PROBES], "key"):
        kept = probes_without(value, exchange_ids)
        if kept != value:
            connection.execute("UPDATE appconfig SET value = ? WHERE key = ?", [kept, PROBES])


def probes_without(value_json: str, exchange_ids: Collection[int]) -> str:
    """Return the value of the test questions without those about some exchanges."""
    try:
        rows = json.loads(json.loads(value_json))
    except (ValueError, TypeError, RecursionError):
        return value_json
    if not isinstance(rows, list):
        return value_json
    kept = [
        row
        for row in rows
        if not (isinstance(row, dict) and row.get("exchange_id") in exchange_ids)
    ]
    if len(kept) == len(rows):
        return value_json
    return json.dumps(json.dumps(kept, ensure_ascii=False))


SETTINGS_TABLES = Aggregate(
    (Table("appconfig", "key, value", "key"), _PROVIDER),
    {SettingPut: _put, ProviderPut: _put_provider},
    erase=lambda connection, ids, _: drop_probes(
        connection, connection.column_in("exchange", "id", ids, "conversation_id")
    ),
)


# -- values


def stored_text(store: Store, key: str) -> str:
    """Return a text setting as stored, "" if it is not; for one read without `Settings`. Blocking."""
    found = store.column_in("appconfig", "value", [key], "key")
    return "".join(str(json.loads(value) or "") for value in found)


class SettingValues:
    """The values in force, by type."""

    def get(self, key: str) -> SettingValue:
        """Return the value in force; raise InvalidSetting for an unknown key."""
        raise NotImplementedError

    def flag(self, key: str) -> bool:
        return bool(self.get(key))

    def number(self, key: str) -> int:
        value = self.get(key)
        if not isinstance(value, int):
            raise TypeError(f"{key} is not a whole number")
        return value

    def real(self, key: str) -> float:
        value = self.get(key)
        if not isinstance(value, int | float):
            raise TypeError(f"{key} is not a number")
        return float(value)

    def text(self, key: str) -> str:
        """Return a text setting, "" for none."""
        value = self.get(key)
        return "" if value is None else str(value)

    def listed(self, key: str, kind: type[T]) -> list[T]:
        """Return the values of one kind in a setting that is a JSON list; none when it is damaged."""
        try:
            stored = json.loads(self.text(key))
        except ValueError:
            stored = None
        return (
            [each for each in stored if isinstance(each, kind)] if isinstance(stored, list) else []
        )


class OverriddenSettings(SettingValues):
    """Settings of which some values are overridden without saving."""

    def __init__(self, settings: SettingValues, overrides: Mapping[str, SettingValue]) -> None:
        self._settings = settings
        self._overrides = overrides

    def get(self, key: str) -> SettingValue:
        """Return the overriding value, else the one in force."""
        return self._overrides[key] if key in self._overrides else self._settings.get(key)


class Settings(SettingValues):
    """The settings of one store, kept in memory and written through.

    Reading does not use the database; thread-safe. The default replaces a value in `appconfig` that is
    no longer in range.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        rows = store.rows("SELECT key, value FROM appconfig")
        self._checks: Mapping[str, Callable[[str], str]] = {}
        self._values: dict[str, SettingValue] = {}
        for key, value_json in rows:
            self._load(key, value_json)
        store.subscribe(self._on_changed)

    def get(self, key: str) -> SettingValue:
        """Return the value in force; raise InvalidSetting for an unknown key."""
        setting = setting_for(key)
        variable = _ENVIRONMENT.get(key)
        if variable and (text := os.environ.get(variable)):
            return setting.parse(text)
        return self._values.get(key, setting.default)

    def check_with(self, **checks: Callable[[str], str]) -> None:
        """Set what checks a text before it is saved, by its key.

        A check returns the text to save or raises InvalidInput; it may block. It is for what the
        table of settings cannot know, such as whether a file or a provider exists.
        """
        self._checks = checks

    def set(self, key: str, value: SettingValue) -> SettingValue:
        """Check and save a value, which takes effect when it is durable; return it. Blocking.

        Listeners of the store already read the new value here. Raises InvalidInput, StorageError.
        """
        value = setting_for(key).check(value)
        if isinstance(value, str) and (check := self._checks.get(key)) is not None:
            value = check(value)
        self._store.save(SettingPut(key, json.dumps(value)))
        return value

    def set_text(self, key: str, text: str) -> SettingValue:
        """Like `set`, from text that a user typed; return the value."""
        return self.set(key, setting_for(key).parse(text))

    def reset(self, key: str) -> None:
        setting_for(key)
        self._store.save(SettingPut(key, None))

    def chosen(self) -> Mapping[str, SettingValue]:
        """Return the values that were set by the user."""
        return dict(self._values)

    def environment_variable(self, key: str) -> str | None:
        """Return the environment variable that overrides `key`, if one does."""
        variable = _ENVIRONMENT.get(key)
        return variable if variable and os.environ.get(variable) else None

    def remarks(self, key: str) -> list[str]:
        """Return remarks for a user who sets `key`, as sentences."""
        variable = self.environment_variable(key)
        return [f"The environment variable {variable} rules {key} at present."] if variable else []

    def providers(self) -> tuple[StoredProvider, ...]:
        """Return the user's providers, by name. Blocking."""
        rows = self._store.rows(f"SELECT {_PROVIDER.columns} FROM provider ORDER BY name")
        return tuple(StoredProvider(*row) for row in rows)

    def put_provider(self, row: StoredProvider) -> None:
        """Add or change a provider. Blocking."""
        self._store.save(
            ProviderPut(
                row.name, row.kind, row.base_url, row.key_env, allow_plain_http=row.allow_plain_http
            )
        )

    def remove_provider(self, name: str) -> None:
        self._store.save(ProviderPut(name, "", removed=True))

    def _on_changed(self, changed: ChangeSet) -> None:
        for key in changed.settings:
            row = self._store.row("SELECT value FROM appconfig WHERE key = ?", [key])
            if row is None:
                self._values.pop(key, None)
            else:
                self._load(key, row[0])

    def _load(self, key: str, value_json: str) -> None:
        if (setting := SETTINGS.get(key)) is None:
            return
        try:
            self._values[key] = setting.check(json.loads(value_json))
        except (ValueError, InvalidSetting):
            return

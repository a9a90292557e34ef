"""Settings as they apply now: environment, then `appconfig`, then the default; and providers."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass

from app.domain.changes import ProviderPut, SettingPut
from app.domain.errors import InvalidSetting
from app.domain.events import Changed
from app.domain.settings_schema import SETTINGS, SettingValue, setting_for
from app.storage.mentions import PROBES
from app.storage.store import Store

_ENVIRONMENT = {"proxy_url": "COMMONPLACE_PROXY_URL", "ca_bundle": "COMMONPLACE_CA_BUNDLE"}


@dataclass(frozen=True, slots=True)
class ProviderRow:
    """A provider the user added; never its key. `kind` is openai, anthropic or compatible."""

    name: str
    kind: str
    base_url: str | None
    key_env: str | None
    allow_plain_http: bool = False


class SettingValues:
    """What applies for each key, by its type."""

    def get(self, key: str) -> SettingValue:
        """Return the value that applies; raise InvalidSetting for an unknown key."""
        raise NotImplementedError

    def flag(self, key: str) -> bool:
        """Return a setting that is true or false."""
        return bool(self.get(key))

    def number(self, key: str) -> int:
        """Return a setting that is a whole number."""
        value = self.get(key)
        if not isinstance(value, int):
            raise TypeError(f"{key} is not a whole number")
        return value

    def share(self, key: str) -> float:
        """Return a setting that is a number between 0 and 1."""
        return self.real(key)

    def real(self, key: str) -> float:
        """Return a setting that is any number."""
        value = self.get(key)
        if not isinstance(value, int | float):
            raise TypeError(f"{key} is not a number")
        return float(value)

    def text(self, key: str) -> str:
        """Return a setting that is a text; "" for none."""
        value = self.get(key)
        return "" if value is None else str(value)


class TriedSettings(SettingValues):
    """Values tried in the place of those that apply; nothing is saved."""

    def __init__(self, settings: SettingValues, tried: Mapping[str, SettingValue]) -> None:
        self._settings = settings
        self._tried = tried

    def get(self, key: str) -> SettingValue:
        """Return the value tried, else the one that applies."""
        return self._tried[key] if key in self._tried else self._settings.get(key)


class Settings(SettingValues):
    """The settings of one store, kept in memory and written through.

    Reading never touches the database; thread-safe. A value in `appconfig` that no longer fits
    its range gives way to the default.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        rows = store.read(lambda c: c.execute("SELECT key, value FROM appconfig").fetchall())
        self._kept: dict[str, SettingValue] = {}
        for key, value_json in rows:
            self._take(key, value_json)
        store.subscribe(self._on_changed)

    def get(self, key: str) -> SettingValue:
        """Return the value that applies; raise InvalidSetting for an unknown key."""
        setting = setting_for(key)
        variable = _ENVIRONMENT.get(key)
        if variable and (text := os.environ.get(variable)):
            return setting.parse(text)
        return self._kept.get(key, setting.default)

    def set(self, key: str, value: SettingValue) -> None:
        """Check, save and apply a value at once; raise InvalidSetting. Blocking.

        Whoever hears of the change from the store already reads the new value here.
        """
        checked = setting_for(key).check(value)
        before = dict(self._kept)
        self._kept[key] = checked
        self._save_or_take_back(SettingPut(key, json.dumps(checked)), before)

    def set_text(self, key: str, text: str) -> SettingValue:
        """Like `set`, from what a person typed; return the value."""
        value = setting_for(key).parse(text)
        self.set(key, value)
        return value

    def reset(self, key: str) -> None:
        """Let the default apply again. Blocking."""
        setting_for(key)
        before = dict(self._kept)
        self._kept.pop(key, None)
        self._save_or_take_back(SettingPut(key, None), before)

    def chosen(self) -> Mapping[str, SettingValue]:
        """Return the values that differ from the defaults because someone chose them."""
        return dict(self._kept)

    def environment_variable(self, key: str) -> str | None:
        """Return the variable that rules `key` at present, if one does."""
        variable = _ENVIRONMENT.get(key)
        return variable if variable and os.environ.get(variable) else None

    def remarks(self, key: str) -> list[str]:
        """Return what whoever sets `key` should know of it, in sentences."""
        remarks = []
        if not setting_for(key).has_effect:
            remarks.append(f"{key} is kept, but nothing in this version reads it yet.")
        if variable := self.environment_variable(key):
            remarks.append(f"The environment variable {variable} rules {key} at present.")
        return remarks

    def providers(self) -> tuple[ProviderRow, ...]:
        """Return the user's providers, by name. Blocking."""
        rows = self._store.read(
            lambda cursor: cursor.execute(
                "SELECT name, kind, base_url, key_env, allow_plain_http FROM provider ORDER BY name"
            ).fetchall()
        )
        return tuple(ProviderRow(*row) for row in rows)

    def put_provider(self, row: ProviderRow) -> None:
        """Add or change a provider. Blocking."""
        self._store.save(
            ProviderPut(
                row.name, row.kind, row.base_url, row.key_env, allow_plain_http=row.allow_plain_http
            )
        )

    def remove_provider(self, name: str) -> None:
        """Remove a provider. Blocking."""
        self._store.save(ProviderPut(name, "", removed=True))

    def _save_or_take_back(self, change: SettingPut, before: Mapping[str, SettingValue]) -> None:
        try:
            self._store.save(change)
        except BaseException:
            if change.key in before:
                self._kept[change.key] = before[change.key]
            else:
                self._kept.pop(change.key, None)
            raise

    def _on_changed(self, changed: Changed) -> None:
        """Read what forgetting a conversation took out of a setting."""
        if not (changed.conversations and PROBES in changed.settings):
            return
        row = self._store.read(
            lambda c: c.execute("SELECT value FROM appconfig WHERE key = ?", [PROBES]).fetchone()
        )
        if row is not None:
            self._take(PROBES, row[0])

    def _take(self, key: str, value_json: str) -> None:
        if (setting := SETTINGS.get(key)) is None:
            return
        try:
            self._kept[key] = setting.check(json.loads(value_json))
        except (ValueError, InvalidSetting):
            return

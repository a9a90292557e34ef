"""The registry of providers: the built-in and the configured ones, and building them.

The environment takes precedence over the configuration: OPENAI_BASE_URL and OPENAI_API_KEY belong
together.
"""

import os
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from importlib import import_module

from app.domain.errors import KeyMissing, KnownError, NotFound
from app.domain.records.presets import ModelOptions
from app.domain.translation import tr_noop
from app.providers.configuration import ProviderConfig, title_of
from app.providers.http.endpoint import ENTER_KEY, Endpoint, Network, TimeLimits
from app.providers.http.json_fields import json_object
from app.providers.model_options import without_refused
from app.providers.pricing.prices import load_price_list
from app.providers.remote_provider import RemoteProvider
from app.providers.vendor import Vendor
from app.providers.vendors import vendors
from app.providers.wire.streaming import RetryPolicy, Unsupported
from app.storage.tables.settings import Settings
from app.system.keys import KEY_FILE_VARIABLE, FoundKey, KeyLocation, KeyStore

# Imported by httpx2 and anyio with the first connection, and for the first key.
_USED_BY_REQUESTS = ("httpcore2", "h11", "anyio._backends._asyncio", "keyring")
TIMEOUTS = "provider_timeouts"  # the setting with the user's own, by provider


class ProviderRegistry:
    """The providers there are. Thread-safe; what `build` returns belongs to one event loop.

    `configured` returns the user's own, `network` the current proxy and certificates, and `first_byte_s`
    how long a reply of a provider may take to begin, None for the default. They are called for each
    build, so a change takes effect with the next one.

    Attributes:
        keys: The keys of all providers.
    """

    def __init__(
        self,
        configured: Callable[[], Iterable[ProviderConfig]],
        keys: KeyStore,
        *,
        environ: Mapping[str, str] | None = None,
        network: Callable[[], Network] = Network,
        policy: RetryPolicy | None = None,
        first_byte_s: Callable[[ProviderConfig], int | None] = lambda _: None,
    ) -> None:
        self._first_byte_s = first_byte_s
        self._configured = configured
        self.keys = keys
        self._environ = environ if environ is not None else os.environ
        self.network = network
        self._policy = policy or RetryPolicy()
        self._unsupported: Unsupported = {}

    def configs(self) -> tuple[ProviderConfig, ...]:
        """Return all current providers: the built-in ones first, then by name."""
        own = {config.name: config for config in self._configured()}
        built_in = [
            self._built_in(vendor, own.pop(vendor.kind, None))
            for vendor in vendors().values()
            if vendor.is_built_in
        ]
        found = (*built_in, *(own[name] for name in sorted(own)))
        return tuple(replace(each, first_byte_s=self._first_byte_s(each)) for each in found)

    def config(self, name: str) -> ProviderConfig:
        """Return one provider; raise NotFound with similar names."""
        if (found := self.find_config(name)) is not None:
            return found
        names = [config.name for config in self.configs()]
        near = get_close_matches(name, names, n=2)
        raise NotFound(
            f"There is no provider '{name}'",
            f"Did you mean {' or '.join(near)}?" if near else f"There are {', '.join(names)}",
        )

    def find_config(self, name: str) -> ProviderConfig | None:
        return next((config for config in self.configs() if config.name == name), None)

    def endpoint(self, config: ProviderConfig) -> Endpoint:
        """Return the endpoint of a provider; raise InvalidInput for its base URL.

        Its key is sent only while `config` is the provider's configuration: a key belongs to the
        base URL that it was entered for.
        """
        base_url = config.url()
        return Endpoint(
            provider=config.name,
            base_url=base_url,
            find_key=lambda: self._usable_key(config),
            needs_key=base_url.text == config.vendor.base_url,
            key_hint=tr_noop(f"Enter one in Settings, Models, or set {config.key_env}")
            if config.key_env
            else ENTER_KEY,
            is_vendors=config.is_built_in,
            network=self.network(),
            times=TimeLimits(first_byte_s=config.first_byte_s)
            if config.first_byte_s
            else TimeLimits(),
            title=title_of(config.name),
        )

    def build(self, config: ProviderConfig) -> RemoteProvider:
        """Return a provider; raise InvalidInput for its base URL.

        Imports, the key and connections follow with the first request.
        """
        return RemoteProvider(
            self._vendor(config),
            self.endpoint(config),
            policy=self._policy,
            unsupported=self._unsupported,
        )

    def trial(self, config: ProviderConfig, key: str = "") -> RemoteProvider:
        """Return a provider that is not saved, to test it; raise InvalidInput for an invalid part.

        Its key is `key`, else the one found for its name and base URL.
        """
        config.checked()
        given = self.keys.session_key(key) if key else None
        endpoint = replace(self.endpoint(config), find_key=lambda: given or self._key_of(config))
        return RemoteProvider(
            self._vendor(config), endpoint, policy=RetryPolicy(tries=1), unsupported={}
        )

    def options(self, config: ProviderConfig, model: str) -> ModelOptions:
        """Return the options of a model, without those that its server has refused."""
        url = config.valid_url()
        refused = self._unsupported.get((url.text, model), ()) if url is not None else ()
        return without_refused(self._vendor(config).options(model), refused)

    def preload(self, first: Iterable[str] = ()) -> None:
        """Import what requests need: 1 to 5 s for each SDK, those of the providers `first` before others.

        Blocking: for a background thread while the program is idle.
        """
        from app.providers.http.client import silence_vendor_logs

        known = vendors()
        configs = [config for name in first if (config := self.find_config(name)) is not None]
        kinds = [known[each.kind] for each in configs if each.kind in known]
        for module in _USED_BY_REQUESTS:
            with suppress(ImportError):
                import_module(module)
        for sdk in {vendor.sdk.module: vendor.sdk for vendor in (*kinds, *known.values())}.values():
            sdk.load()
            silence_vendor_logs()
            load_price_list()

    def is_key_locked(self, name: str) -> bool:
        """Return whether a provider's key is in the key file, which needs its passphrase."""
        config = self.config(name)
        return self._key_of(config) is None and self.keys.is_locked(name, config.url().origin)

    def find_key(self, name: str) -> FoundKey | None:
        """Return the key a provider would be used with, None if there is none; may block."""
        return self._key_of(self.config(name))

    def save_key(self, name: str, key: str) -> KeyLocation:
        """Save a key for a provider at its current base URL; return where. May block."""
        return self.keys.save(name, self.config(name).url().origin, key)

    def forget_key(self, name: str) -> None:
        """Delete a saved key. May block."""
        self.keys.forget(name, self.config(name).url().origin)

    def _vendor(self, config: ProviderConfig) -> Vendor:
        """Return the kind of provider that a server has, which the environment may have named."""
        vendor, url = config.vendor, config.valid_url()
        if config.url_env and vendor.kind_elsewhere and url is not None and not vendor.owns(url):
            return vendors()[vendor.kind_elsewhere]
        return vendor

    def _usable_key(self, config: ProviderConfig) -> FoundKey | None:
        """Return the key for a request; raise KeyMissing while it is locked."""
        if self.find_config(config.name) != config:
            return None
        key = self._key_of(config)
        if key is None and self.keys.is_locked(config.name, config.url().origin):
            raise KeyMissing(
                f"The API key for {config.name} is locked",
                "Enter the passphrase of the key file in Settings, Models, "
                f"or set {KEY_FILE_VARIABLE}",
            )
        return key

    def _key_of(self, config: ProviderConfig) -> FoundKey | None:
        return self.keys.find(config.name, config.url().origin, config.key_env)

    def _built_in(self, vendor: Vendor, own: ProviderConfig | None) -> ProviderConfig:
        """A built-in provider at the environment's base URL, else the user's, else the vendor's.

        The environment's key applies unless the user has configured a base URL: that server has its
        own key, or names the variable itself.
        """
        kind = vendor.kind
        if text := self._environ.get(vendor.url_env, "").strip():
            insecure = own is not None and own.allow_plain_http
            return ProviderConfig(
                kind, kind, text, vendor.key_env, insecure, is_built_in=True, url_env=vendor.url_env
            )
        if own is not None and own.base_url:
            return replace(own, kind=kind, is_built_in=False)
        chosen = own.key_env if own is not None else None
        return ProviderConfig(kind, kind, None, chosen or vendor.key_env, is_built_in=True)


class OpenProviders:
    """The providers that one event loop uses, each kept while its configuration is the same.

    So their connections stay open until `aclose`. Thread-safe.
    """

    def __init__(self, registry: ProviderRegistry) -> None:
        self._registry = registry
        self._lock = threading.Lock()
        self._built: dict[str, tuple[object, RemoteProvider]] = {}

    def get(self, config: ProviderConfig) -> RemoteProvider:
        """Return a provider; raise InvalidInput for its base URL."""
        stamp = (config, self._registry.network())
        with self._lock:
            known = self._built.get(config.name)
            if known is None or known[0] != stamp:
                known = self._built[config.name] = (stamp, self._registry.build(config))
            return known[1]

    async def aclose(self) -> None:
        for _, provider in self._built.values():
            with suppress(KnownError):
                await provider.aclose()
        self._built.clear()


def network_of(settings: Settings) -> Network:
    return Network(settings.text("proxy_url") or None, settings.text("ca_bundle") or None)


def provider_registry(
    settings: Settings, keys: KeyStore, policy: RetryPolicy | None = None
) -> ProviderRegistry:
    """Return the registry of the providers in the settings; `policy` says how requests are retried."""

    def configured() -> list[ProviderConfig]:
        return [
            ProviderConfig(row.name, row.kind, row.base_url, row.key_env, row.allow_plain_http)
            for row in settings.providers()
        ]

    def first_byte_s(config: ProviderConfig) -> int:
        own = json_object(settings.text(TIMEOUTS)).get(config.name)
        if type(own) is int:
            return own
        base_url = config.valid_url()
        is_near = base_url is not None and (base_url.is_loopback or base_url.is_private)
        return settings.number("local_reply_timeout" if is_near else "reply_timeout")

    return ProviderRegistry(
        configured,
        keys,
        network=partial(network_of, settings),
        policy=policy,
        first_byte_s=first_byte_s,
    )

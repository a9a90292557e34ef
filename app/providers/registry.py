"""Which providers exist, and building one from its configuration, its key and the network.

`openai` and `anthropic` always exist. The environment wins over what is configured, and is
trusted as the user's own word: OPENAI_BASE_URL and OPENAI_API_KEY belong together.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from difflib import get_close_matches

from app.domain.errors import NotFound
from app.providers.configuration import DEFAULT_URLS, ProviderConfig, ProviderKind
from app.providers.connection import Endpoint
from app.providers.dialect import Dialects
from app.providers.limits import Network, TimeLimits
from app.providers.remote import RemoteProvider
from app.providers.retry import RetryPolicy
from app.providers.transcript import ImageReader
from app.system.keys import FoundKey, KeyPlace, KeyStore

_BUILT_IN = {
    "openai": (ProviderKind.OPENAI, "OPENAI_API_KEY", "OPENAI_BASE_URL"),
    "anthropic": (ProviderKind.ANTHROPIC, "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"),
}


class ProviderRegistry:
    """Builds providers.

    `configured` gives the user's own, `network` and `times` the settings in force; all are asked
    anew for each build, so a change takes effect with the next one. Thread-safe; what `build`
    returns belongs to one event loop.
    """

    def __init__(
        self,
        configured: Callable[[], Iterable[ProviderConfig]],
        keys: KeyStore,
        *,
        environ: Mapping[str, str] | None = None,
        network: Callable[[], Network] = Network,
        times: Callable[[], TimeLimits] = TimeLimits,
        policy: RetryPolicy | None = None,
        read_image: ImageReader | None = None,
    ) -> None:
        self._configured = configured
        self._keys = keys
        self._environ = environ if environ is not None else os.environ
        self._network = network
        self._times = times
        self._policy = policy or RetryPolicy()
        self._read_image = read_image
        self._dialects = Dialects()

    def configs(self) -> tuple[ProviderConfig, ...]:
        """Return all providers as they apply now: the built-in ones first, then by name."""
        own = {config.name: config for config in self._configured()}
        built_in = [self._built_in(name, own.pop(name, None)) for name in _BUILT_IN]
        return (*built_in, *(own[name] for name in sorted(own)))

    def config(self, name: str) -> ProviderConfig:
        """Return one provider; raise NotFound with the nearest names."""
        configs = {config.name: config for config in self.configs()}
        if name in configs:
            return configs[name]
        near = get_close_matches(name, configs, n=2)
        raise NotFound(
            f"There is no provider '{name}'",
            f"Did you mean {' or '.join(near)}?" if near else f"There are {', '.join(configs)}",
        )

    def find_config(self, name: str) -> ProviderConfig | None:
        """Return one provider, None if there is none of that name."""
        return next((config for config in self.configs() if config.name == name), None)

    def build(self, name: str) -> RemoteProvider:
        """Return a provider ready to use; raise NotFound, or InvalidInput for its base URL.

        Nothing is loaded, looked up or connected yet: that happens with the first request.
        """
        config = self.config(name)
        base_url = config.url()
        at_vendor = base_url.text == DEFAULT_URLS.get(config.kind)
        endpoint = Endpoint(
            provider=config.name,
            base_url=base_url,
            find_key=lambda: self._keys.find(config.name, base_url.origin, config.key_env),
            needs_key=at_vendor,
            key_hint=_key_hint(config),
            is_vendors=config.is_built_in,
            network=self._network(),
            times=self._times(),
        )
        return RemoteProvider(
            self._kind(config),
            endpoint,
            policy=self._policy,
            dialects=self._dialects,
            read_image=self._read_image,
        )

    def find_key(self, name: str) -> FoundKey | None:
        """Return the key a provider would be used with, None if there is none; may block."""
        config = self.config(name)
        return self._keys.find(config.name, config.url().origin, config.key_env)

    def save_key(self, name: str, key: str) -> KeyPlace:
        """Keep a key for a provider at its present base URL; return where. May block."""
        return self._keys.save(name, self.config(name).url().origin, key)

    def forget_key(self, name: str) -> None:
        """Remove a saved key. May block."""
        self._keys.forget(name, self.config(name).url().origin)

    def _built_in(self, name: str, own: ProviderConfig | None) -> ProviderConfig:
        """A built-in provider: the environment's base URL, else the user's, else the vendor's.

        The environment's key goes along unless the user has configured a base URL of their own:
        that place has its own key, or names the variable itself.
        """
        kind, key_env, url_env = _BUILT_IN[name]
        if text := self._environ.get(url_env, "").strip():
            insisted = own is not None and own.allow_plain_http
            return ProviderConfig(
                name, kind, text, key_env, insisted, is_built_in=True, url_env=url_env
            )
        if own is not None and own.base_url:
            return replace(own, kind=kind, is_built_in=False)
        chosen = own.key_env if own is not None else None
        return ProviderConfig(name, kind, None, chosen or key_env, is_built_in=True)

    @staticmethod
    def _kind(config: ProviderConfig) -> ProviderKind:
        """The protocol to speak.

        People set OPENAI_BASE_URL for servers that are compatible and no more, so there Chat
        Completions are spoken; who configures a provider of kind openai means that kind.
        """
        elsewhere = config.url_env and not config.url().host.endswith(".openai.com")
        if config.kind is ProviderKind.OPENAI and elsewhere:
            return ProviderKind.COMPATIBLE
        return config.kind


def _key_hint(config: ProviderConfig) -> str:
    settings = "Enter one in Settings, Models"
    return f"{settings}, or set {config.key_env}" if config.key_env else settings

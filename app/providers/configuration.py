"""The configuration of one provider, and its validation; the gallery of well-known services and local servers."""

import re
from dataclasses import dataclass

from app.domain.errors import InvalidInput
from app.providers.http.base_url import BaseUrl, check_base_url
from app.providers.vendor import Vendor
from app.providers.vendors import vendors
from app.providers.vendors.local_servers import USUAL_PORTS

_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,63}")
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,39}")
_RESERVED = ("recall",)


@dataclass(frozen=True, slots=True)
class ProviderConfig:
    """The configuration of one provider.

    Attributes:
        kind: The `kind` of its `Vendor`.
        base_url: None for the vendor's own.
        key_env: The environment variable that may hold its key. Setting it confirms that the key
            may be sent to this base URL.
        allow_plain_http: Whether http is allowed beyond loopback.
        is_built_in: Whether it exists without being configured; set by the registry alone.
        url_env: The variable that the base URL came from; set by the registry alone.
        first_byte_s: The longest wait for the first part of a reply; None for the settings'.
    """

    name: str
    kind: str
    base_url: str | None = None
    key_env: str | None = None
    allow_plain_http: bool = False
    is_built_in: bool = False
    url_env: str | None = None
    first_byte_s: int | None = None

    @property
    def vendor(self) -> Vendor:
        """The kind of provider; raises InvalidInput for an unknown one."""
        known = vendors()
        if self.kind not in known:
            raise InvalidInput(
                f"The provider '{self.name}' is of the unknown kind '{self.kind}'",
                f"The kinds are {', '.join(known)}",
            )
        return known[self.kind]

    def checked(self) -> "ProviderConfig":
        """Return the configuration itself; raise InvalidInput for an invalid part."""
        check_provider_name(self.name)
        self.url()
        if self.key_env is not None:
            check_variable_name(self.key_env)
        if self.first_byte_s is not None and not 5 <= self.first_byte_s <= 86_400:
            raise InvalidInput(
                f"'{self.first_byte_s}' is not a reply timeout", "A timeout is 5 to 86,400 seconds."
            )
        return self

    def url(self) -> BaseUrl:
        """Return the base URL that applies; raise InvalidInput for a missing or invalid one."""
        text = self.base_url or self.vendor.base_url
        if not text:
            raise InvalidInput(
                f"The provider '{self.name}' has no base URL",
                "Enter one, such as http://localhost:11434/v1",
            )
        try:
            return check_base_url(text, allow_plain_http=self.allow_plain_http)
        except InvalidInput as error:
            if self.url_env is None:
                raise
            raise InvalidInput(f"{self.url_env}: {error.title}", error.hint) from error

    def valid_url(self) -> BaseUrl | None:
        """Return the base URL that applies, None without a valid one or of an unknown kind."""
        try:
            return self.url() if self.vendor else None
        except InvalidInput:
            return None

    def can_embed(self) -> bool:
        """Return whether it can have embedding models and has a valid base URL."""
        return self.valid_url() is not None and self.vendor.has_embeddings


def check_variable_name(name: str) -> None:
    """Raise InvalidInput for an invalid name of an environment variable.

    The message does not quote it: it may be a key, which no screen and no database may contain.
    """
    if not _VARIABLE.fullmatch(name):
        raise InvalidInput(
            "That is not the name of an environment variable for a key",
            "Enter the name, such as MY_SERVER_KEY (capitals, digits and _), never the key itself.",
        )


def check_provider_name(name: str) -> None:
    """Raise InvalidInput for an invalid name of a provider."""
    if name in _RESERVED:
        raise InvalidInput(f"'{name}' is the name of the built-in model", "Choose another name")
    if not _NAME.fullmatch(name):
        raise InvalidInput(
            f"'{name}' is not a valid provider name",
            "Use up to 40 lower-case letters, digits, periods and dashes, such as my-server",
        )


_LOCAL_TITLES = {
    "ollama": "Ollama", "lm-studio": "LM Studio", "llama.cpp": "llama.cpp", "vllm": "vLLM",
    "jan": "Jan",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ProviderTemplate:
    """A service or kind of server.

    Attributes:
        name: The name of its provider.
        kind: The `kind` of its `Vendor`.
        base_url: Where it usually is; "" for the vendor's own.
        key_env: The environment variable that usually holds its key; "" for none.
        key_page: The page that issues keys; "" where none is needed.
    """

    name: str
    title: str
    kind: str = "compatible"
    base_url: str = ""
    key_env: str = ""
    key_page: str = ""

    @property
    def is_local(self) -> bool:
        return self.name in _LOCAL_TITLES


TEMPLATES = (
    ProviderTemplate(
        "openai", "OpenAI", "openai",
        key_env="OPENAI_API_KEY", key_page="https://platform.openai.com/api-keys",
    ),
    ProviderTemplate(
        "anthropic", "Anthropic", "anthropic",
        key_env="ANTHROPIC_API_KEY", key_page="https://console.anthropic.com/settings/keys",
    ),
    ProviderTemplate(
        "openrouter", "OpenRouter", base_url="https://openrouter.ai/api/v1",
        key_env="OPENROUTER_API_KEY", key_page="https://openrouter.ai/settings/keys",
    ),
    *(
        ProviderTemplate(name, _LOCAL_TITLES[name], base_url=f"http://127.0.0.1:{port}/v1")
        for name, port in USUAL_PORTS
    ),
)  # fmt: skip


def template_of(name: str) -> ProviderTemplate | None:
    """Return the template of a provider's name, None for a server of the user's own naming."""
    return next((each for each in TEMPLATES if each.name == name), None)


def title_of(name: str) -> str:
    found = template_of(name)
    return found.title if found is not None else name

"""A provider as it is configured; what is built from it is `app.providers.registry`'s business."""

import re
from dataclasses import dataclass
from enum import StrEnum

from app.domain.errors import InvalidInput
from app.providers.base_url import BaseUrl, check_base_url

_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,63}")
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,39}")
_RESERVED = ("recall",)


class ProviderKind(StrEnum):
    """Which protocol a provider speaks."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"
    COMPATIBLE = "compatible"


DEFAULT_URLS = {
    ProviderKind.OPENAI: "https://api.openai.com/v1",
    ProviderKind.ANTHROPIC: "https://api.anthropic.com",
}


@dataclass(frozen=True, slots=True)
class ProviderConfig:
    """One provider.

    `base_url` None is the vendor's own (a compatible one needs one). `key_env` names the
    environment variable that may hold its key: whoever sets it confirms that the key may go to
    this base URL. `allow_plain_http` is the user's insistence. `is_built_in` and `url_env` (the
    variable the base URL came from) are set by the registry alone.
    """

    name: str
    kind: ProviderKind
    base_url: str | None = None
    key_env: str | None = None
    allow_plain_http: bool = False
    is_built_in: bool = False
    url_env: str | None = None

    def checked(self) -> "ProviderConfig":
        """Return it if all of it will do; raise InvalidInput that says what will not."""
        check_provider_name(self.name)
        self.url()
        if self.key_env is not None:
            check_variable_name(self.key_env)
        return self

    def url(self) -> BaseUrl:
        """Return the base URL that applies; raise InvalidInput if there is none or it will not do."""
        text = self.base_url or DEFAULT_URLS.get(self.kind)
        if not text:
            raise InvalidInput(
                f"The provider '{self.name}' has no base URL",
                "Give one, such as http://localhost:11434/v1",
            )
        try:
            return check_base_url(text, allow_plain_http=self.allow_plain_http)
        except InvalidInput as error:
            if self.url_env is None:
                raise
            raise InvalidInput(f"{self.url_env}: {error.title}", error.hint) from error


def check_variable_name(name: str) -> str:
    """Return the name of an environment variable; raise InvalidInput for what may be a key itself.

    It is not quoted then: a key stands on no screen and in no database.
    """
    if not _VARIABLE.fullmatch(name):
        raise InvalidInput(
            "That is not the name of an environment variable for a key",
            "Write the name, such as MY_SERVER_KEY (capitals, digits and _), never the key itself.",
        )
    return name


def check_provider_name(name: str) -> str:
    """Return a provider's name if it can be one; raise InvalidInput otherwise."""
    if name in _RESERVED:
        raise InvalidInput(f"'{name}' is the name of the built-in model", "Choose another name")
    if not _NAME.fullmatch(name):
        raise InvalidInput(
            f"A provider cannot be called '{name}'",
            "Use up to 40 small letters, digits, points and dashes, such as my-server",
        )
    return name

"""Kinds of providers: the properties of one, as a module of `vendors` defines them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from re import Pattern

from app.domain.records.presets import ModelOptions
from app.providers.http.base_url import BaseUrl
from app.providers.http.connection import Sdk
from app.providers.model_options import compatible_options
from app.providers.wire.reader import Wire


@dataclass(frozen=True, slots=True)
class Vendor:
    """One kind of provider.

    Attributes:
        kind: Its name in the database and on the command line.
        title: Its name on screens.
        position: Its place in lists, the lowest first.
        sdk: The SDK that sends its requests.
        wires: The protocols to try at a base URL, in order.
        models_path: Where a server lists its models, relative to the base URL.
        options: The options of a model, by its name.
        base_url: The vendor's own base URL; "" when each provider of this kind has its own.
        domain: The domain of the vendor's own servers; "" when there are none.
        key_env: The environment variable that holds the key of the built-in provider.
        url_env: The environment variable that replaces the built-in provider's base URL.
        kind_elsewhere: The kind that applies when `url_env` names a server outside of `domain`.
        price_key: The vendor's id in genai-prices; "" to find the prices by base URL.
        has_embeddings: Whether its servers can have embedding models.
        embedding_models: The embedding models at `domain`, () to ask the server for them.
        unlisted_models: Names of models at `domain` that neither chat nor embed.
    """

    kind: str
    title: str
    position: int
    sdk: Sdk
    wires: Callable[[BaseUrl], Sequence[type[Wire]]]
    models_path: str = "/models"
    options: Callable[[str], ModelOptions] = compatible_options
    base_url: str = ""
    domain: str = ""
    key_env: str = ""
    url_env: str = ""
    kind_elsewhere: str = ""
    price_key: str = ""
    has_embeddings: bool = True
    embedding_models: tuple[str, ...] = ()
    unlisted_models: Pattern[str] | None = None

    @property
    def is_built_in(self) -> bool:
        """Whether a provider of this name exists without being configured."""
        return bool(self.base_url and self.key_env)

    def owns(self, base_url: BaseUrl) -> bool:
        host = base_url.host
        return bool(self.domain) and (host == self.domain or host.endswith(f".{self.domain}"))

"""The gallery: well-known services and local servers, with what setting one up begins with."""

from dataclasses import dataclass

from app.providers.vendors.model_list import USUAL_PORTS

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
        """Whether it runs on this computer."""
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
    """Return the title of a provider on screens."""
    found = template_of(name)
    return found.title if found is not None else name

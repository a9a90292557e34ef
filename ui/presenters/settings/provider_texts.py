"""Texts and fields of providers in the settings: tiles of the gallery, the form, where a key is kept."""

from collections.abc import Mapping

from app.chat.models import ProviderState
from app.domain.errors import InvalidInput
from app.domain.text import parse_whole_number
from app.domain.translation import tr, trn
from app.providers.configuration import TEMPLATES, ProviderTemplate, template_of, title_of
from app.providers.http.base_url import check_base_url
from app.providers.vendors import vendors
from app.providers.vendors.local_servers import LocalServer
from app.providers.windows import WindowSource
from app.system.keys import KeyStorage
from ui.views.settings.models_page import TileContent
from ui.views.settings.provider_form import KeyTexts, ProviderFields

_OTHER = TileContent("", tr("Other server"), tr("Any address with an OpenAI-compatible API"))
WINDOW_SOURCES = {  # who says how much a model reads
    WindowSource.USER: tr("set by you"),
    WindowSource.REFUSAL: tr("named in a refusal"),
    WindowSource.SERVER: tr("reported by the server"),
    WindowSource.TABLE: tr("from the bundled list"),
    WindowSource.ASSUMED: tr("assumed"),
}
_STORAGE_TEXTS = {  # where a key is kept, and the hint in the field for the passphrase
    KeyStorage.KEYRING: (
        tr("The key is kept in the system's keyring, never in the database, logs or exports."), "",
    ),
    KeyStorage.FILE: (
        tr("The key is kept in an encrypted file, which is unlocked until you quit."), "",
    ),
    KeyStorage.LOCKED: (
        tr("Saved keys are in an encrypted file. Enter its passphrase to use them and to save others."),
        tr("Unlocks the key file"),
    ),
    KeyStorage.SESSION: (
        tr("This computer offers no keyring. With a passphrase, the key is kept in an encrypted file, which "
           "you unlock once after each start. Without one, it is kept in memory until you quit."),
        tr("Optional; at least 8 characters"),
    ),
}  # fmt: skip


def tiles(
    states: Mapping[str, ProviderState], running: Mapping[str, LocalServer]
) -> list[TileContent]:
    """Return the tiles of the gallery, then those of other servers by name."""
    known = [each.name for each in TEMPLATES]
    found = [_tile(name, states.get(name), running.get(name)) for name in known]
    others = [_tile(name, states[name], None) for name in states if name not in known]
    return [*found, _OTHER, *others]


def _tile(name: str, state: ProviderState | None, server: LocalServer | None) -> TileContent:
    template = template_of(name)
    is_set_up = state is not None and (state.is_saved or state.has_key)
    parts = []
    if state is not None and is_set_up:
        parts.append(tr("Set up"))
        if state.has_key:
            parts.append(tr("key from {key_from}").format(key_from=state.key_from))
    if server is not None:
        parts.append(
            tr("Running, {models}").format(
                models=trn("{count} model", "{count} models", len(server.models))
            )
        )
    elif not is_set_up and template is not None:
        parts.append(tr("On this computer") if template.is_local else tr("Needs an API key"))
    elif template is None and state is not None:
        parts.append(state.base_url)
    return TileContent(
        name, title_of(name), " \N{MIDDLE DOT} ".join(parts), is_set_up or bool(server)
    )


def fields_of(
    state: ProviderState | None,
    template: ProviderTemplate | None,
    server: LocalServer | None,
    *,
    is_set_up: bool,
) -> ProviderFields:
    """Return what the form begins with: the saved provider, else a server found, else the usual."""
    if state is not None and (is_set_up or template is None or state.config.url_env):
        config = state.config
        timeout = "" if state.timeout_s is None else str(state.timeout_s)
        return ProviderFields(
            config.name, config.kind, state.base_url, "", config.key_env or "", timeout,
            allow_plain_http=config.allow_plain_http,
        )  # fmt: skip
    if template is None:
        return ProviderFields()
    url = server.base_url if server is not None else template.base_url
    url = url or vendors()[template.kind].base_url
    return ProviderFields(template.name, template.kind, url, "", template.key_env)


def key_texts(
    state: ProviderState | None, template: ProviderTemplate | None, storage: KeyStorage
) -> KeyTexts:
    """Return what the form says about the key, and where one that is entered is kept."""
    page = template.key_page if template else ""
    if state is not None and state.has_key and not state.has_saved_key:
        text = tr(
            "The key comes from the environment variable {key_from}, which takes precedence."
        ).format(key_from=state.key_from)
        return KeyTexts(tr("From the environment"), text)
    hint = tr("Paste the key here") if page else tr("Most local servers need none")
    has_saved_key = state is not None and state.has_saved_key
    if has_saved_key:
        is_kept = storage is not KeyStorage.SESSION
        hint = (
            tr("Saved; enter another one to replace it")
            if is_kept
            else tr("Kept until you quit; enter another one to replace it")
        )
    elif template is not None and template.is_local:
        return KeyTexts(hint, "")
    note, passphrase_hint = _STORAGE_TEXTS[storage]
    is_locked = has_saved_key and storage is KeyStorage.LOCKED
    return KeyTexts(hint, note, passphrase_hint, page, is_locked)


def origin_of(fields: ProviderFields) -> str:
    """Return the origin of the address, "" for an invalid one."""
    try:
        return check_base_url(fields.base_url, allow_plain_http=True).origin
    except InvalidInput:
        return ""


def parse_timeout_s(typed: str) -> int | None:
    """Return a reply timeout, None for the default; raise InvalidInput."""
    if not typed:
        return None
    seconds = parse_whole_number(typed)
    if seconds is None or not 5 <= seconds <= 86_400:
        raise InvalidInput(f"'{typed}' is not a reply timeout", "A timeout is 5 to 86,400 seconds.")
    return seconds

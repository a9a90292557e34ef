"""What can go wrong, as the user should hear it.

CommonplaceError
└── KnownError                 the world's fault: shown where it happened, `title` and `hint`
    ├── InvalidInput           what was typed cannot be taken
    │   └── InvalidSetting     a key's value outside its range
    ├── NotFound               no such conversation, turn, file, provider
    ├── Cancelled              the user stopped it
    ├── StorageError
    │   ├── AlreadyOpen        another program holds the data directory
    │   ├── DatabaseTooNew     written by a later version; left untouched
    │   ├── DatabaseDamaged    found while running; the next start mends it
    │   ├── DatabaseUnreadable no readable image and no backup
    │   ├── ReadOnlyStorage    the data directory cannot be written
    │   └── DiskFull           nothing was saved of this change
    ├── ImportRefused          a file that is no export, or is broken as a whole
    ├── MemoryOff              not used in this conversation
    ├── IndexUnavailable       search cannot answer now
    ├── ManualUnavailable      no `man`, or nothing that it lists (`app.domain.manual`)
    ├── PageUnreadable         a manual page that `man` does not show (there too)
    ├── EmbedderUnavailable    texts cannot be turned into vectors now
    │   └── ConsentMissing     the embedder sends texts to where the user did not agree to
    └── ProviderError          see `app.domain.provider_errors`

Anything else that is raised is a bug of ours and reaches the report dialog and the log.
"""


class CommonplaceError(Exception):
    """Base of everything this program raises on purpose."""


class KnownError(CommonplaceError):
    """A failure whose cause lies outside the program.

    Attributes:
        title: What happened, one sentence without a final stop, quoting the value at fault.
        hint: What to do next, one sentence; empty when nothing can be done.
        own_words: All of it but what a server said, which may echo a conversation. `str` gives
            this, so that no log and no record quotes; `title` and `hint` are for the screen.
    """

    def __init__(self, title: str, hint: str = "", *, own_words: str = "") -> None:
        super().__init__(title, hint)
        self.title = title
        self.hint = hint
        self.own_words = own_words or self.screen_words

    def __str__(self) -> str:
        return self.own_words

    @property
    def screen_words(self) -> str:
        """All of it, a server's own words too."""
        return f"{self.title}. {self.hint}".strip() if self.hint else self.title


class InvalidInput(KnownError):
    """What the user typed cannot be taken."""


class InvalidSetting(InvalidInput):
    """A setting's value is outside its range; names the key, the value and the range."""


class NotFound(KnownError):
    """What was named does not exist."""


class Cancelled(KnownError):
    """The user stopped it."""


class StorageError(KnownError):
    """The database or its folder does not do what it should."""


class AlreadyOpen(StorageError):
    """Another program holds the data directory."""


class DatabaseTooNew(StorageError):
    """The database was written by a later version; it was left untouched."""


class DatabaseDamaged(StorageError):
    """A part of the database cannot be read; the next start restores it."""


class DatabaseUnreadable(StorageError):
    """The database cannot be read and nothing could be restored."""


class ReadOnlyStorage(StorageError):
    """The data directory cannot be written."""


class DiskFull(StorageError):
    """There was no room; nothing of the change was saved."""


class ImportRefused(KnownError):
    """The file is no export we know, or is broken as a whole."""


class MemoryOff(KnownError):
    """Memory is not used in this conversation."""


class IndexUnavailable(KnownError):
    """Search cannot answer now."""


class EmbedderUnavailable(KnownError):
    """Texts cannot be turned into vectors now."""


class ConsentMissing(EmbedderUnavailable):
    """The embedder would send texts to a server that the user did not agree to."""

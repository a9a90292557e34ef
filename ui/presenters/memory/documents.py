"""Documents in the window: the dialog that lists, adds and removes them, and the viewer of their text."""

from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices, QImage
from PySide6.QtWidgets import QWidget

from app.chat.projects import Projects
from app.domain.errors import KnownError
from app.domain.links import parse_document, parse_page
from app.domain.records.documents import FileState, StoredDocument
from app.domain.translation import tr, translate_filled, trn
from app.domain.workers import WorkerName, WorkerStatus
from app.storage.tables.documents import DocumentTexts
from app.system.document_files import state_of_file
from app.system.file_programs import UnreadableFile, page_image
from app.workers.board import WorkerBoard
from app.workers.followed import FOLDERS_KEY, AddedDocuments
from ui.bridge import Refresh
from ui.models.documents import DocumentRow, rows_of, summary_text
from ui.presenters.conversation.open_conversation import ConversationPresenter
from ui.presenters.presenter import Presenter
from ui.views.dialogs.confirm import Confirmation, confirm
from ui.views.dialogs.documents_dialog import DocumentsDialog
from ui.views.dialogs.page_dialog import PageDialog
from ui.widgets.banner import Banner
from ui.widgets.dialog import ask_for_files, ask_for_folder
from ui.widgets.on_screen import move_to_right

_LIST, _TEXT, _IMAGE = "documents", "document", "document page"
_PROJECTS = "projects"
_EVERY_MS = 400  # while files are read
_PAGE_PX = 1_600
_UNMARKED = tr("The marked text could not be located in this image.")


class DocumentsPresenter(Presenter):
    """Opens the dialog, adds with consent, removes after a question, and shows texts.

    `server` returns where the texts are sent that are embedded, "" for nowhere; it may raise KnownError.
    `update_index` has the text index follow what was removed.
    """

    _added: AddedDocuments
    _texts: DocumentTexts
    _projects: Projects
    _workers: WorkerBoard
    _server: Callable[[], str]
    _update_index: Callable[[], object]
    _conversation: ConversationPresenter
    _messages: Banner

    def _set_up(self) -> None:
        self._dialog: DocumentsDialog | None = None
        self._viewer: PageDialog | None = None
        self._visited: list[tuple[str, str]] = []  # places and titles
        self._at = 0  # of those
        self._positions: dict[str, int] = {}  # by place
        self._document: StoredDocument | None = None
        self._wanted_page: object = None
        self._refresh = Refresh(self, self._bridge, _LIST, _EVERY_MS, self._load)
        self._bridge.worker_changed.connect(self._on_worker_changed)
        self._bridge.subscribe(lambda _: self._request_list(), FOLDERS_KEY, "projects")

    def open(self) -> DocumentsDialog:
        """Show the list beside the window; return its dialog."""
        if self._dialog is not None:
            self._dialog.activateWindow()
            return self._dialog
        dialog = self._dialog = DocumentsDialog(self._messages.window())
        title, every = tr("Add files"), tr("All files (*)")
        dialog.files_requested.connect(lambda: ask_for_files(dialog, title, [every], self._add))
        dialog.folder_requested.connect(
            lambda: ask_for_folder(dialog, tr("Add folder"), lambda name: self._add([Path(name)]))
        )
        dialog.dropped.connect(self._add)
        dialog.open_requested.connect(lambda row: self.open_page(row.path, row.name))
        dialog.removal_requested.connect(self._ask_to_remove)
        dialog.start_requested.connect(
            lambda: self._bridge.save(
                lambda: self._workers.set_enabled(WorkerName.DOCUMENT_INDEXER, True)
            )
        )
        dialog.finished.connect(self._on_finished)
        self._bridge.load(
            _PROJECTS,
            self._projects.listed,
            lambda found: dialog.show_projects(found, self._conversation.project_here),
        )
        for status in self._workers.statuses():
            self._on_worker_changed(status)
        self._refresh.run()
        return self._open_dialog(dialog, _LIST, _PROJECTS, is_modal=False)

    def offer(self, folders: Sequence[Path]) -> None:
        """Ask whether folders become documents, then add them in the dialog."""
        names = ", ".join(each.name or str(each) for each in folders)
        texts = Confirmation(
            tr("Documents"),
            tr("Add {names} to your documents?").format(names=names),
            tr(
                "The files in it are read on this computer, searched with your conversations and quoted in "
                "answers. What changes in it is read again."
            ),
            tr("Add folder"),
            yes_is_default=True,
        )

        def add() -> None:
            self.open()
            self._add(folders)

        confirm(self._messages.window(), texts, add)

    # -- the list

    async def _load(self) -> None:
        def read() -> tuple[Sequence[DocumentRow], str, bool]:
            statuses = self._added.statuses()
            projects = {each.uid: each.name for each in self._projects.listed()}
            rows = rows_of(self._added.added(), statuses, projects)
            return rows, summary_text(statuses), bool(projects)

        if (dialog := self._dialog) is not None:
            rows, summary, has_projects = await self._bridge.run(read)
            dialog.show_documents(rows, summary, has_projects=has_projects)

    def _request_list(self) -> None:
        if self._dialog is not None:
            self._refresh.request()

    def _on_worker_changed(self, status: WorkerStatus) -> None:
        if self._dialog is not None and status.name is WorkerName.DOCUMENT_INDEXER:
            self._dialog.show_worker(status)
            self._refresh.request()

    def _on_finished(self) -> None:
        self._refresh.stop()
        self._dialog = None

    @property
    def _parent(self) -> QWidget:
        return self._dialog or self._messages.window()

    def _show_error(self, error: KnownError) -> None:
        (self._messages if self._dialog is None else self._dialog).show_error(error)

    # -- adding and removing

    def _add(self, paths: Sequence[Path]) -> None:
        """Add paths to the chosen project or the library, after consent if texts are sent elsewhere."""
        project = self._dialog.project if self._dialog is not None else None

        def ask(server: str) -> None:
            if not server:
                self._store(paths, project)
                return
            texts = Confirmation(
                tr("Documents"),
                tr("Send the text of these files to {server}?").format(server=server),
                tr(
                    "Your search model is there. Choose a built-in one in the settings to send nothing."
                ),
                tr("Agree and add"),
            )
            confirm(self._parent, texts, lambda: self._store(paths, project))

        self._bridge.load("documents server", self._server, ask, self._show_error)

    def _store(self, paths: Sequence[Path], project: str | None) -> None:
        def add() -> None:
            for each in paths:
                self._added.add(each, project)

        if self._dialog is not None:
            self._dialog.show_notice("")
        self._bridge.save(add, on_error=self._show_error)

    def _ask_to_remove(self, paths: Sequence[Path]) -> None:
        def ask(names: set[str]) -> None:
            texts = Confirmation(
                tr("Remove documents"),
                trn("Remove {count} document?", "Remove {count} documents?", len(names)),
                tr(
                    "{paths}\n\nThe text leaves search, recall, the library's files and its backups. The files "
                    "themselves are not changed."
                ).format(paths=_few(paths)),
                tr("Remove"),
                is_warning=True,
            )
            confirm(self._parent, texts, lambda: self._remove(paths, len(names)))

        self._bridge.load(
            "documents to remove",
            lambda: {each.name for path in paths for each in self._added.affected(path)},
            ask,
            self._show_error,
        )

    def _remove(self, paths: Sequence[Path], count: int) -> None:
        def report(left: Sequence[str]) -> None:
            self._update_index()
            removed = trn("{count} document was removed.", "{count} documents were removed.", count)
            if self._dialog is not None:
                self._dialog.show_notice("\n".join((removed, *left)))
            self._request_list()

        self._bridge.save(lambda: self._added.remove(paths), report, self._show_error)

    # -- the viewer

    def open_page(self, place: str, title: str) -> None:
        """Show the manual page or document at `place`, such as man:grep.1, document:12 or a path.

        The viewer stays beside the window; it goes back and forward between what it was opened at, each where
        it was left.
        """
        self._remember_position()
        if parse_document(place) is not None:
            self._positions.pop(place, None)  # its passage is wanted
        if (place, title) not in self._visited[self._at : self._at + 1]:
            self._visited[self._at + 1 :] = [(place, title)]
            self._at = len(self._visited) - 1
        self._show_page()

    def _show_page(self) -> None:
        place, title = self._visited[self._at]
        if self._viewer is None:
            self._viewer = self._create_viewer()
        viewer = self._viewer
        viewer.begin(title, can_go_back=self._at > 0, can_go_on=self._at + 1 < len(self._visited))
        viewer.activateWindow()
        viewer.raise_()
        self._document = None

        def read() -> tuple[StoredDocument, FileState | None]:
            found = self._texts.at(place)
            is_page = parse_page(place) is not None
            return found, None if is_page else state_of_file(found.source, found.stamp)

        def show(found: tuple[StoredDocument, FileState | None]) -> None:
            self._document = found[0]
            viewer.show_document(*found, self._positions.get(place))

        self._bridge.load(_TEXT, read, show, viewer.show_error)

    def _create_viewer(self) -> PageDialog:
        window = self._messages.window()
        viewer = PageDialog(window)
        move_to_right(viewer, window)  # the conversation stays in view
        viewer.page_requested.connect(self._show_image)
        viewer.folder_requested.connect(self._show_folder)
        viewer.step_requested.connect(self._step)
        viewer.finished.connect(self._on_viewer_finished)
        return self._open_dialog(viewer, _TEXT, _IMAGE, is_modal=False)

    def _step(self, step: int) -> None:
        """Go back (-1) or forward (1); before the first is the window."""
        if self._at + step < 0 and self._viewer is not None:
            self._viewer.reject()
        elif self._at + step < len(self._visited):
            self._remember_position()
            self._at += step
            self._show_page()

    def _remember_position(self) -> None:
        if self._viewer is not None and self._document is not None:
            place, _ = self._visited[self._at]
            self._positions[place] = self._viewer.position

    def _show_folder(self) -> None:
        if (found := self._document) is not None:
            QDesktopServices.openUrl(QUrl.fromLocalFile(str(Path(found.source).parent)))

    def _show_image(self, number: int) -> None:
        """Show the image of a page, the passage marked; one that is being made is cancelled."""
        wanted = self._wanted_page = object()
        viewer, document = self._viewer, self._document
        if viewer is None or document is None:
            return
        found = document.passage
        marked = found.text if found is not None and found.page == number else ""

        def make() -> tuple[QImage | None, str]:
            try:
                data, is_marked = page_image(
                    Path(document.source), number, _PAGE_PX, marked,
                    lambda: self._wanted_page is not wanted,
                )  # fmt: skip
            except UnreadableFile as error:
                return None, translate_filled(str(error))
            return QImage.fromData(data), "" if is_marked or not marked else _UNMARKED

        self._bridge.load(_IMAGE, make, lambda shown: viewer.show_image(*shown), lambda _: None)

    def _on_viewer_finished(self) -> None:
        self._remember_position()
        self._viewer = self._wanted_page = self._document = None
        self._visited, self._at = [], 0


_MOST_NAMED = 8


def _few(paths: Sequence[Path]) -> str:
    """Return paths, one a line, of many only the first."""
    lines = [*map(str, paths[:_MOST_NAMED])]
    if more := len(paths) - len(lines):
        lines.append(trn("and {count} more", "and {count} more", more))
    return "\n".join(lines)

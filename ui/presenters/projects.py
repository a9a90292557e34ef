"""Projects in the window: made, edited, removed, proposed, chosen, and what conversations are moved to."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from PySide6.QtCore import QPoint
from PySide6.QtGui import QAction, QActionGroup
from PySide6.QtWidgets import QInputDialog, QMenu

from app.chat.projects import ProjectProposal, ProjectProposals, Projects
from app.domain.ids import ConversationId
from app.domain.records.projects import Project
from app.domain.translation import tr, trn
from ui.bridge import is_there
from ui.presenters.conversation.open_conversation import ConversationPresenter
from ui.presenters.presenter import Presenter, ask_for_text, show_menu
from ui.views.dialogs.confirm import confirm_removal
from ui.views.dialogs.project_dialog import ProjectDialog, ProposalsDialog
from ui.views.project_list import ProjectList
from ui.widgets.banner import Banner
from ui.widgets.composer.project_chip import ProjectChip
from ui.widgets.project_labels import RULES


class ProjectsPresenter(Presenter):
    """Keeps the chip of the composer up to date, and runs what is asked of projects."""

    _projects: Projects
    _list: ProjectList
    _chip: ProjectChip
    _conversation: ConversationPresenter
    _messages: Banner

    def _set_up(self) -> None:
        self._known: Sequence[Project] = ()
        self._list.chosen.connect(self._on_listed)
        self._list.edit_requested.connect(self.edit)
        self._list.menu_requested.connect(self._show_list_menu)
        self._list.dropped.connect(lambda ids, uid: self.move(ids, uid or None))
        self._chip.clicked.connect(self._show_chip_menu)
        for changed in (
            self._conversation.opened,
            self._conversation.updated,
            self._conversation.project_chosen,
        ):
            changed.connect(lambda *_: self._show_chip())
        self._bridge.subscribe(lambda _: self._load(), "projects")
        self._load()

    # -- moving conversations

    def ask(self, ids: Sequence[ConversationId]) -> None:
        """Ask for the project of conversations; a name that is new adds one."""
        none = tr("No project")
        dialog = QInputDialog(self._messages.window())
        dialog.setWindowTitle(tr("Move to project"))
        dialog.setLabelText(tr("Choose a project, or type the name of a new one:"))
        dialog.setComboBoxItems([*(each.name for each in self._known), none])
        dialog.setComboBoxEditable(True)
        dialog.textValueSelected.connect(
            lambda name: self._move_by_name(ids, "" if name == none else name.strip())
        )
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def _move_by_name(self, ids: Sequence[ConversationId], name: str) -> None:
        wanted = name.casefold()
        known = next((each for each in self._known if each.name.casefold() == wanted), None)
        if known is not None or not name:
            self.move(ids, known.uid if known else None)
        else:
            self._bridge.save(
                lambda: self._projects.save(Project("", name)),
                lambda made: self.move(ids, made.uid),
            )

    def move(self, ids: Sequence[ConversationId], uid: str | None) -> None:
        """Move conversations to a project, by its uid, or out of theirs, and offer to undo it."""
        self._bridge.save(
            lambda: (self._projects.move(ids, uid), self._projects.find(uid)),
            lambda done: self._report_move(*done),
        )

    def _report_move(
        self, before: Mapping[ConversationId, str | None], project: Project | None
    ) -> None:
        uid = project.uid if project else None
        moved = [each for each, was_in in before.items() if was_in != uid]
        if not moved:
            return
        count = trn("{count} conversation", "{count} conversations", len(moved))
        if project is None:
            text = tr("Taken out of the project: {conversations}.").format(conversations=count)
        else:
            text = tr("Moved to {name}: {conversations}.").format(
                name=project.name, conversations=count
            )
            if project.is_bounded:
                text += " " + tr("Only this project recalls that now.")
        self._messages.show_message(
            text,
            tr("Undo"),
            lambda: self._bridge.save(lambda: self._projects.put_back(before)),
            brief=True,
        )

    # -- the dialog

    def add(self) -> None:
        """Open the dialog of a new project."""
        self._open(Project("", ""), self._report_made)

    def _report_made(self, made: Project) -> None:
        text = tr("The project {name} was made. Drop conversations on it in the sidebar.")
        begin = tr("New conversation in this project")
        self._messages.show_message(
            text.format(name=made.name), begin, lambda: self._begin_in(made), brief=True
        )

    def edit(self, uid: str) -> None:
        self._with(uid, self._open)

    def edit_here(self) -> None:
        """Open the dialog of the project of the open conversation, else of the one that is listed."""
        uid = self._conversation.project_here or self._list.uid
        if uid:
            self.edit(uid)
        else:
            self._messages.show_message(
                tr("This conversation is in no project."),
                tr("New project\u2026"),
                self.add,
                brief=True,
            )

    def _open(self, project: Project, then: Callable[[Project], object] = lambda _: None) -> None:
        dialog = ProjectDialog(project, self._messages.window())

        def done(saved: Project) -> None:
            if is_there(dialog.accept):  # Esc closes it meanwhile
                dialog.accept()
            then(saved)

        dialog.save_requested.connect(
            lambda edited: self._bridge.save(
                lambda: self._projects.save(edited), done, dialog.show_error
            )
        )
        dialog.removal_requested.connect(lambda: self._ask_to_remove(project, dialog))
        self._open_dialog(dialog)

    def _ask_to_remove(self, project: Project, dialog: ProjectDialog | None = None) -> None:
        def remove() -> None:
            self._bridge.save(lambda: self._projects.remove(project.uid))
            if dialog is not None:
                dialog.reject()

        details = tr("Its conversations stay and belong to no project from then on.")
        if project.is_bounded:
            details += " " + tr("Other conversations recall them then.")
        question = tr("Remove the project “{name}”?").format(name=project.name)
        parent = dialog or self._messages.window()
        confirm_removal(parent, tr("Remove a project"), question, details, remove)

    # -- the chip and the list

    def _load(self) -> None:
        self._bridge.load("projects", self._projects.listed, self._take)

    def _take(self, found: Sequence[Project]) -> None:
        self._known = found
        self._show_chip()

    def _find(self, uid: str | None) -> Project | None:
        return next((each for each in self._known if each.uid == uid), None)

    def _with(self, uid: str, run: Callable[[Project], object]) -> None:
        if (project := self._find(uid)) is not None:
            run(project)

    def _show_chip(self) -> None:
        self._chip.show_project(
            self._find(self._conversation.project_here), is_offered=bool(self._known)
        )

    def _on_listed(self, uid: str) -> None:
        """Begin new conversations in the project that is listed."""
        conversation = self._conversation
        conversation.listed_project = uid or None
        if conversation.view is None:
            conversation.choose_project(uid or None)

    def _show_list_menu(self, uid: str, position: QPoint) -> None:
        self._with(
            uid,
            lambda project: show_menu(
                self._list,
                position,
                (
                    (tr("New conversation in this project"), lambda: self._begin_in(project)),
                    (tr("Edit\u2026"), lambda: self._open(project)),
                    (tr("New project\u2026"), self.add),
                    (tr("Remove\u2026"), lambda: self._ask_to_remove(project)),
                ),
            ),
        )

    def _begin_in(self, project: Project) -> None:
        self._list.choose(project.uid)
        self._conversation.begin_new()

    def _show_chip_menu(self) -> None:
        menu = QMenu(self._chip)
        here = self._find(self._conversation.project_here)
        if here is not None:
            heading = tr("Conversations of {name} recall")
            _add_heading(menu, heading.format(name=here.name.replace("&", "&&")))
            rules = QActionGroup(menu)
            for rule, (name, meaning) in RULES.items():
                action = _add_choice(menu, rules, name, is_chosen=rule is here.recall)
                action.setToolTip(meaning)
                action.triggered.connect(
                    lambda _=False, rule=rule: self._bridge.save(
                        lambda: self._projects.save(replace(here, recall=rule))
                    )
                )
            menu.addSeparator()
        _add_heading(menu, tr("Project of this conversation"))
        choices = QActionGroup(menu)
        for project in (None, *self._known):
            name, uid = (project.name, project.uid) if project else (tr("No project"), None)
            action = _add_choice(menu, choices, name.replace("&", "&&"), is_chosen=project == here)
            action.triggered.connect(lambda _=False, uid=uid: self._choose_here(uid))
        menu.addSeparator()
        if here is not None:
            menu.addAction(tr("Edit this project\u2026")).triggered.connect(self.edit_here)
        menu.addAction(tr("New project\u2026")).triggered.connect(
            lambda: self._open(Project("", ""), lambda made: self._choose_here(made.uid))
        )
        menu.setToolTipsVisible(True)
        menu.aboutToHide.connect(menu.deleteLater)
        menu.popup(self._chip.mapToGlobal(QPoint(0, -menu.sizeHint().height())))

    def _choose_here(self, uid: str | None) -> None:
        here = self._conversation.conversation_id
        if here is None:
            self._conversation.choose_project(uid)
        elif uid != self._conversation.project_here:
            self.move([here], uid)


def _add_heading(menu: QMenu, text: str) -> None:
    """Add a line of text; the style draws no titles of sections."""
    menu.addAction(text).setEnabled(False)


def _add_choice(menu: QMenu, group: QActionGroup, text: str, *, is_chosen: bool) -> QAction:
    action = QAction(text, menu, checkable=True, checked=is_chosen)
    menu.addAction(group.addAction(action))
    return action


class ProposalsPresenter(Presenter):
    """Opens the dialog."""

    _proposals: ProjectProposals
    _messages: Banner

    def open(self) -> ProposalsDialog:
        dialog = ProposalsDialog(self._messages.window())
        dialog.accept_requested.connect(lambda each: self._accept(each, dialog))
        dialog.dismiss_requested.connect(
            lambda each: self._change(lambda: self._proposals.dismiss(each), dialog)
        )
        self._load(dialog)
        return self._open_dialog(dialog, "proposals")

    def _load(self, dialog: ProposalsDialog) -> None:
        self._bridge.load(
            "proposals", self._proposals.listed, dialog.show_proposals, dialog.show_error
        )

    def _accept(self, proposal: ProjectProposal, dialog: ProposalsDialog) -> None:
        """Move the conversations, after asking for the name of a project that has to be made."""

        def accept(name: str) -> None:
            self._change(lambda: self._proposals.accept(proposal, name), dialog)

        if proposal.project is not None:
            accept(proposal.name)
        else:
            label = tr("Name of the project:")
            ask_for_text(dialog, tr("Make a project"), label, proposal.name, accept)

    def _change(self, change: Callable[[], object], dialog: ProposalsDialog) -> None:
        self._bridge.save(change, lambda _: self._load(dialog), dialog.show_error)

"""The menu that writes filters into the search box: title, tags, projects, topics, dates, models, sources, states."""

from collections.abc import Callable, Iterable, Sequence
from datetime import date, timedelta

from PySide6.QtCore import QDate, Qt
from PySide6.QtGui import QTextCharFormat
from PySide6.QtWidgets import QCalendarWidget, QMenu, QWidgetAction

from app.domain.translation import format_number, tr
from app.index.query import filter_text
from app.storage.tables.conversations import FilterValues
from ui.models.conversations import source_title
from ui.widgets.search_box import SearchBox

_MOST_VALUES = 25


def filter_menu(
    box: SearchBox, values: FilterValues, topics: Sequence[tuple[str, int]], today: date
) -> QMenu:
    """Return the menu of what `values` and topics can be filtered by; it writes into `box`."""
    menu = QMenu(box)
    title = menu.addAction(tr("Title contains\u2026"))
    title.triggered.connect(lambda: box.begin_filter("title"))
    _add_values(
        menu.addMenu(tr("Tag")), box, "tag", values.tags, str, tr("No conversation has a tag.")
    )
    projects = menu.addMenu(tr("Project"))
    _add_values(projects, box, "project", values.projects, str, tr("There are no projects yet."))
    _add_values(
        menu.addMenu(tr("Topic")), box, "topic", topics, str, tr("There are no topics yet.")
    )
    _add_dates(menu.addMenu(tr("After")), box, "after", today)
    _add_dates(menu.addMenu(tr("Before")), box, "before", today)
    _add_values(
        menu.addMenu(tr("Model")), box, "model", values.models, _model_name, tr("No answers yet.")
    )
    _add_values(menu.addMenu(tr("Source")), box, "source", values.sources, _source_name, "")
    menu.addSeparator()
    for text, state in ((tr("Archived"), "archived"), (tr("Pinned"), "pinned")):
        written = filter_text("is", state)
        action = menu.addAction(text)
        action.setCheckable(True)
        action.setChecked(written in box.filters)
        change = box.remove_filter if action.isChecked() else box.add_filter
        action.triggered.connect(lambda _checked=False, change=change, text=written: change(text))
    if box.filters:
        menu.addSeparator()
        menu.addAction(tr("Remove all filters")).triggered.connect(
            lambda: box.show_query(box.line.text())
        )
    return menu


def _add_values(
    menu: QMenu,
    box: SearchBox,
    key: str,
    values: Iterable[tuple[str, int]],
    label: Callable[[str], str],
    nothing: str,
) -> None:
    counted = list(values)[:_MOST_VALUES]
    for value, count in counted:
        written = filter_text(key, value)
        text = f"{label(value)}\t{format_number(count)}".replace("&", "&&")
        menu.addAction(text).triggered.connect(
            lambda _checked=False, text=written: box.add_filter(text, replaces=key != "tag")
        )
    if not counted:
        menu.addAction(nothing).setEnabled(False)


def _add_dates(menu: QMenu, box: SearchBox, key: str, today: date) -> None:
    """Add some usual dates and a calendar."""

    def write(day: date) -> None:
        box.add_filter(filter_text(key, day.isoformat()), replaces=True)

    usual = (
        (tr("Today"), today),
        (tr("7 days ago"), today - timedelta(days=7)),
        (tr("30 days ago"), today - timedelta(days=30)),
        (tr("The beginning of this year"), today.replace(month=1, day=1)),
    )
    for text, day in usual:
        menu.addAction(text).triggered.connect(lambda _checked=False, day=day: write(day))
    calendar = QCalendarWidget(menu)
    calendar.setVerticalHeaderFormat(QCalendarWidget.VerticalHeaderFormat.NoVerticalHeader)
    for weekday in (Qt.DayOfWeek.Saturday, Qt.DayOfWeek.Sunday):  # Qt makes them red
        calendar.setWeekdayTextFormat(weekday, QTextCharFormat())
    calendar.setMaximumDate(QDate(today.year, today.month, today.day))
    calendar.setAccessibleName(tr("Choose the day for {key}:").format(key=key))

    def on_chosen(chosen: QDate) -> None:
        write(date(chosen.year(), chosen.month(), chosen.day()))
        menu.close()
        if isinstance(whole := menu.parentWidget(), QMenu):
            whole.close()

    calendar.clicked.connect(on_chosen)
    entry = QWidgetAction(menu)
    entry.setDefaultWidget(calendar)
    menu.addSeparator()
    menu.addAction(entry)


def _model_name(model: str) -> str:
    return model.partition(":")[2] or model


def _source_name(source: str) -> str:
    return source_title(source) or "Commonplace"

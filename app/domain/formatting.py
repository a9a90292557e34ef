"""Formatting of numbers, dates and amounts of money for people, and the local calendar.

The language is that of `app.domain.translation`; what models read is English.
"""

import re
from datetime import date, datetime, timedelta

from app.domain.translation import ENGLISH, format_number, language, month_name, tr, weekday_name

_KIB, _MIB, _GIB = 1 << 10, 1 << 20, 1 << 30
_CENT_USD = 0.01
_TAG = re.compile(r"latest|v?\d[^:]*")  # of a model of Ollama: llama3:8b


def format_count(count: int, noun: str) -> str:
    """Return a number with its noun, which forms its plural with an s: "1 turn", "2 turns"."""
    return f"{format_number(count)} {noun if count == 1 else f'{noun}s'}"


def format_turn(turn_number: int) -> str:
    """Return what the window calls a turn: counted from 1; links and commands count from 0."""
    return tr("turn {number}").format(number=format_number(turn_number + 1))


def quoted(text: str) -> str:
    """Return a name or a text in the quotation marks of the language."""
    return tr("\u201c{title}\u201d").format(title=text)


def format_percent(share: float) -> str:
    """Return a share (0-1) in percent; only 1.0 gives "100%", only 0.0 gives "0%"."""
    percent = round(share * 100)
    if 0 < share < 1:
        percent = max(1, min(percent, 99))
    return f"{percent}%" if language() == ENGLISH else f"{percent}\u00a0%"


def model_label(model: str) -> str:
    """Return what PROVIDER:MODEL is called: without the provider; a file without its folder.

    Imported models have no provider, and may have a colon of their own.
    """
    provider, _, name = model.partition(":")
    if model.endswith(":"):
        return provider.capitalize()
    if not name or _TAG.fullmatch(name):
        return model
    return name if name[:1] != "/" and name[1:3] != ":\\" else re.split(r"[/\\]", name)[-1]


def format_duration(seconds: float) -> str:
    """Return a duration in seconds, minutes or hours."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{format_number(seconds / 3600, 1)} h"


def format_milliseconds(duration_ms: int) -> str:
    """Return a short duration, such as "820 ms", "4.2 s" or "3 min 5 s"."""
    if duration_ms < 1000:
        return f"{duration_ms} ms"
    if duration_ms < 60_000:
        return f"{format_number(duration_ms / 1000, 1)} s"
    return f"{duration_ms // 60_000} min {duration_ms % 60_000 // 1000} s"


def format_day(at: datetime) -> str:
    """Return the local day of a moment, such as "3 May 2026"."""
    local = at.astimezone()
    dot = "" if language() == ENGLISH else "."
    return f"{local.day}{dot} {month_name(local.month)} {local.year}"


def format_month(at: datetime) -> str:
    """Return the local month of a moment, such as "May 2026"."""
    local = at.astimezone()
    return f"{month_name(local.month, long=True)} {local.year}"


def long_day(day: date) -> str:
    """Return a day with its weekday, such as "Sunday, 3 May 2026"."""
    name, month = weekday_name(day.weekday()), month_name(day.month, long=True)
    dot = "" if language() == ENGLISH else "."
    return f"{name}, {day.day}{dot} {month} {day.year}"


def format_moment(at: datetime) -> str:
    """Return the local day and time of a moment, such as "3 May 2026, 14:05"."""
    return f"{format_day(at)}, {at.astimezone():%H:%M}"


def local_moment(at: datetime) -> str:
    """Return a local time for a model, such as "Sunday, 2026-05-03 14:05 (UTC+02:00)"."""
    local = at.astimezone()
    offset = f"{local:%z}"
    return f"{local:%A, %Y-%m-%d %H:%M} (UTC{offset[:3]}:{offset[3:5]})"


def format_size(size_bytes: int) -> str:
    """Return a size in bytes, KB, MB or GB (binary)."""
    if size_bytes < _KIB:
        return f"{size_bytes} B"
    if size_bytes < _MIB:
        return f"{size_bytes / _KIB:.0f} KB"
    if size_bytes < _GIB:
        return f"{format_number(size_bytes / _MIB, 1)} MB"
    return f"{format_number(size_bytes / _GIB, 2)} GB"


def format_usd(usd: float | None) -> str:
    """Return an amount of money; None is an amount that includes an unknown price."""
    return tr("unknown") if usd is None else money(usd)


def format_at_most(usd: float) -> str:
    """Return an upper bound of an amount; more than nothing is never "$0.00"."""
    if usd >= _CENT_USD or not usd:
        return money(usd)
    return tr("under {amount}").format(amount=money(_CENT_USD))


def format_time(minutes: float) -> str:
    """Return an estimated time, such as "about 3 minutes"."""
    if minutes < 1.5:
        return tr("a minute or less")
    if minutes < 120:
        return tr("about {minutes} minutes").format(minutes=format_number(minutes))
    return tr("about {hours} hours").format(hours=format_number(minutes / 60))


def format_price(cost_usd: float | None) -> str:
    """Return an estimated price, such as "for about $0.10"; None is unknown."""
    if cost_usd is None:
        return tr("at an unknown price")
    about = tr("for about {amount}").format(amount=money(max(cost_usd, _CENT_USD)))
    return about if cost_usd else tr("at no cost")


def format_estimate(minutes: float, cost_usd: float | None) -> str:
    """Return a time and a price, such as "about 3 minutes, for about $0.10"."""
    return f"{format_time(minutes)}, {format_price(cost_usd)}"


def money(usd: float, decimals: int = 2) -> str:
    """Return an amount, such as "$0.10" or "0,10 $"."""
    amount = format_number(usd, decimals)
    return f"${amount}" if language() == ENGLISH else f"{amount}\u00a0$"


def day_start(at: datetime) -> datetime:
    """Return the local midnight before `at`."""
    local = at.astimezone()
    return datetime(local.year, local.month, local.day).astimezone()


def month_start(at: datetime) -> datetime:
    """Return the first local midnight of the month of `at`."""
    local = at.astimezone()
    return datetime(local.year, local.month, 1).astimezone()


def next_day(at: datetime) -> datetime:
    """Return the local midnight after `at`."""
    later = at.astimezone().replace(tzinfo=None) + timedelta(days=1)
    return datetime(later.year, later.month, later.day).astimezone()


def next_month(at: datetime) -> datetime:
    """Return the first local midnight of the month after that of `at`."""
    local = at.astimezone()
    year, month = divmod(local.year * 12 + local.month, 12)
    return datetime(year, month + 1, 1).astimezone()

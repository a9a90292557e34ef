"""The user's calendar: when the local day and month of a moment began, and when the next begin.

All take and return moments with a time zone; a day may have 23 or 25 hours.
"""

from datetime import datetime, timedelta


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

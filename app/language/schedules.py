"""Schedules: phrases in English and German as cron expressions, these as text, due times.

Times are local. A time that does not exist on the day that clocks go forward is due when they have;
one that exists twice is due the first time (as in Debian's cron, which cronsim follows).
"""

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from cronsim import CronSim, CronSimError

from app.domain.errors import InvalidInput
from app.domain.translation import ENGLISH, language, tr, weekday_name

_DAY_NAMES = (
    ("sunday", "sundays", "sun", "sonntag", "sonntags", "so"),
    ("monday", "mondays", "mon", "montag", "montags", "mo"),
    ("tuesday", "tuesdays", "tue", "tues", "dienstag", "dienstags", "di"),
    ("wednesday", "wednesdays", "wed", "mittwoch", "mittwochs", "mi"),
    ("thursday", "thursdays", "thu", "thur", "thurs", "donnerstag", "donnerstags", "do"),
    ("friday", "fridays", "fri", "freitag", "freitags", "fr"),
    ("saturday", "saturdays", "sat", "samstag", "samstags", "sonnabend", "sonnabends", "sa"),
)
_DAYS = {name: number for number, names in enumerate(_DAY_NAMES) for name in names}
_NTH = {
    "first": "#1", "1st": "#1", "ersten": "#1", "second": "#2", "2nd": "#2", "zweiten": "#2",
    "third": "#3", "3rd": "#3", "dritten": "#3", "fourth": "#4", "4th": "#4", "vierten": "#4",
    "last": "L", "letzten": "L",
}  # fmt: skip
_DAY = "|".join(sorted(_DAYS, key=len, reverse=True))
_NTH_DAY = re.compile(rf"\b({'|'.join(_NTH)})\s+({_DAY})\b")
_DAY_RANGE = re.compile(rf"\b({_DAY})\s*(?:-|–|to|through|bis)\s*({_DAY})\b")
_ONE_DAY = re.compile(rf"\b({_DAY})\b")
_WEEKDAYS = re.compile(r"\b(weekdays?|workdays?|werktags?|werktagen|wochentags?|wochentagen)\b")
_WEEKEND = re.compile(r"\b(weekends?|wochenenden?)\b")
_MONTH_END = re.compile(r"\b(last day|letzten tag|end of (?:the|each|every) month|monatsende)\b")
_GERMAN_DATES = re.compile(
    r"\b(?:am|jeden)\s+((?:(?:ersten\b|\d{1,2}\.(?!\d))(?:\s*(?:,|und)\s*)?)+)"
)
_ENGLISH_DATE = re.compile(r"\b(\d{1,2})(?:st|nd|rd|th)\b")
_FIRST_DATE = re.compile(r"\b(first|ersten)\b")
_MONTHLY = re.compile(r"\b(monthly|monatlich)\b")
_EVERY = re.compile(
    r"\b(?:every|each|alle|jede)\s+(?:(\d{1,2})\s*)?(minutes?|mins?|minuten?|hours?|stunden?)\b"
)
_HOURLY = re.compile(r"\b(hourly|stündlich)\b")
_LATE_DAY = re.compile(r"\b(afternoons?|evenings?|nachmittags?|abends?|nachmittag|abend)\b")
_EARLY_DAY = re.compile(r"\b(mornings?|morgens?|vormittags?)\b")
_NOON = re.compile(r"\b(noon|mittags?)\b")
_MIDNIGHT = re.compile(r"\b(midnight|mitternachts?)\b")
_TIME = re.compile(
    r"(?<!\d)(\d{1,2})(?:[:.](\d{2}))?(?!\d)\s*(a\.?m\.?(?!\w)|p\.?m\.?(?!\w)|uhr|o'clock|h\b)?"
)
_FILLER = re.compile(
    r"a|and|at|of|on|in|the|every|each|days?|daily|time|months?|week|weekly|clock"
    r"|am|an|de[rmns]|und|um|uhr|gegen|jede[nsr]?|tage?|täglich|monats?|woche|wöchentlich|immer"
)
_END = re.compile(r"(?<!\d)[.!]+$")
_CRON_FIELDS = 5
_CRON_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_STEPS = {"minute": (5, 10, 15, 20, 30), "hour": (1, 2, 3, 4, 6, 8, 12)}
_MORNING_HOUR, _EVENING_HOUR, _NOON_HOUR = 9, 18, 12
_MOST_HOURS = 6
_EXAMPLES = (
    "Write for example 'every weekday at 9', 'every Monday and Thursday at 18:30', 'on the 1st at 8', "
    "'every 2 hours', or five fields of cron."
)


class SystemZone(tzinfo):
    """The system's time zone with its clock changes; it follows a change of the zone."""

    def utcoffset(self, dt: datetime | None) -> timedelta | None:
        """Return the offset of a local time, by its `fold` where it exists twice."""
        return None if dt is None else dt.replace(tzinfo=None).astimezone().utcoffset()

    def dst(self, _dt: datetime | None) -> timedelta | None:
        """Return None: unknown."""
        return None

    def tzname(self, dt: datetime | None) -> str | None:
        """Return the abbreviated name of the zone."""
        return None if dt is None else dt.replace(tzinfo=None).astimezone().tzname()

    def fromutc(self, dt: datetime) -> datetime:
        """Return the local time of a time in UTC, with its `fold` where it exists twice."""
        local = dt.replace(tzinfo=UTC).astimezone()
        first = local.replace(tzinfo=None).astimezone()
        return local.replace(tzinfo=self, fold=first.utcoffset() != local.utcoffset())


SYSTEM_ZONE = SystemZone()


# -- due times


def due_times(cron: str, after: datetime, zone: tzinfo = SYSTEM_ZONE) -> Iterator[datetime]:
    """Yield the times after `after` at which a valid expression is due, in order, UTC."""
    last = after.astimezone(UTC)
    for local in CronSim(cron, after.astimezone(zone)):
        due = local.astimezone(UTC)
        if due > last:  # times that do not exist become equal to others
            yield due
            last = due


def is_due_on(cron: str, day: date) -> bool:
    """Return whether an expression is due at some time of a day."""
    *_, days, months, weekdays = cron.split()
    midnight = datetime.combine(day, time())
    found = next(CronSim(f"0 0 {days} {months} {weekdays}", midnight - timedelta(seconds=1)), None)
    return found == midnight


# -- reading


def read_schedule(text: str) -> str:
    """Return the cron expression of a phrase or of an expression; raise InvalidInput."""
    if (cron := _as_cron(text)) is not None:
        return cron
    phrase = _Phrase(_END.sub("", " ".join(text.casefold().split())))
    cron = phrase.interval() or phrase.days_and_times()
    if rest := phrase.unread():
        raise InvalidInput(f"'{rest}' is not understood in the schedule '{text}'", _EXAMPLES)
    return cron


def _as_cron(text: str) -> str | None:
    """Return an expression in normal form; None for what is not meant as one."""
    fields = text.upper().split()
    if len(fields) != _CRON_FIELDS or not re.match(r"[\d*]", fields[0]):
        return None
    if any(re.search(r"[^\dA-Z*/,#-]", field) for field in fields):
        return None
    for number, name in enumerate(_CRON_DAYS):
        fields[-1] = fields[-1].replace(name, str(number))
    cron = " ".join(fields)
    try:
        next(CronSim(cron, datetime(2024, 1, 1)))  # noqa: DTZ001 - a local time
    except (CronSimError, StopIteration) as error:
        raise InvalidInput(
            f"'{text}' is never due: {error or 'no such date'}",
            "The fields are minute, hour, day of the month, month and day of the week.",
        ) from error
    return cron


class _Phrase:
    """A phrase that is read piece by piece; what is left in the end was not understood."""

    def __init__(self, text: str) -> None:
        self._left = text
        self._is_late = False

    def unread(self) -> str:
        """Return the first word that was not understood, "" for none."""
        words = re.findall(r"[^\s,;.]+", self._left)
        return next((word for word in words if not _FILLER.fullmatch(word)), "")

    def interval(self) -> str:
        """Return the expression of "every 2 hours", "" for another phrase."""
        found = self._take(_EVERY)
        if not found and not self._take(_HOURLY):
            return ""
        number, unit = found[0] if found else ("", "hour")
        count = int(number or 1)
        kind = "minute" if unit.startswith("min") else "hour"
        if count not in _STEPS[kind]:
            raise InvalidInput(
                f"'every {number or 1} {unit}' is not a supported interval",
                f"Use {', '.join(map(str, _STEPS[kind]))} {kind}s.",
            )
        if kind == "minute":
            return f"*/{count} * * * {self._weekdays()}"
        return f"0 {'*' if count == 1 else f'*/{count}'} * * {self._weekdays()}"

    def days_and_times(self) -> str:
        """Return the expression of days with times; without a time, 9 in the morning."""
        if not self._left or not re.search(r"\w", self._left):
            raise InvalidInput("The schedule is empty", _EXAMPLES)
        days = "*"
        weekdays = ",".join(f"{_DAYS[day]}{_NTH[nth]}" for nth, day in self._take(_NTH_DAY))
        if not weekdays:
            dates = self._dates()
            if self._take(_MONTHLY) and not dates:
                dates = ["1"]
            days = ",".join(dates) or "*"
            weekdays = self._weekdays()
        if days != "*" and weekdays != "*":
            raise InvalidInput(
                "A schedule by days of the month cannot name days of the week too", _EXAMPLES
            )
        minute, hours = self._times()
        return f"{minute} {hours} {days} * {weekdays}"

    def _take(self, pattern: re.Pattern[str]) -> list[tuple[str, ...]]:
        """Remove and return what matches, each as its groups."""
        found = [
            tuple(group or "" for group in match.groups()) for match in pattern.finditer(self._left)
        ]
        self._left = pattern.sub(" ", self._left)
        return found

    def _dates(self) -> list[str]:
        dates = ["L"] if self._take(_MONTH_END) else []
        numbers = [int(number) for (number,) in self._take(_ENGLISH_DATE)]
        for (part,) in self._take(_GERMAN_DATES):
            numbers += map(int, re.findall(r"\d+", part.replace("ersten", "1")))
        numbers += [1] * len(self._take(_FIRST_DATE))
        for number in numbers:
            if not 1 <= number <= 31:
                raise InvalidInput(f"No month has a day {number}", _EXAMPLES)
        return [*map(str, sorted(set(numbers))), *dates]

    def _weekdays(self) -> str:
        days: set[int] = set()
        for first, last in self._take(_DAY_RANGE):
            begin, end = _DAYS[first], _DAYS[last]
            days.update(day % 7 for day in range(begin, end + 1 + 7 * (end < begin)))
        if self._take(_WEEKDAYS):
            days.update(range(1, 6))
        if self._take(_WEEKEND):
            days.update((0, 6))
        days.update(_DAYS[day] for (day,) in self._take(_ONE_DAY))
        if days == {1, 2, 3, 4, 5}:
            return "1-5"
        return "*" if len(days) in (0, 7) else ",".join(map(str, sorted(days)))

    def _times(self) -> tuple[int, str]:
        self._is_late = bool(self._take(_LATE_DAY))
        self._take(_EARLY_DAY)
        times = [(_NOON_HOUR, 0)] if self._take(_NOON) else []
        times += [(0, 0)] if self._take(_MIDNIGHT) else []
        found = self._take(_TIME)
        if found and any(unit for *_, unit in found[-1:]):
            found = [(hour, minute, unit or found[-1][2]) for hour, minute, unit in found]
        times += [self._time(*each) for each in found]
        if not times:
            times = [(_EVENING_HOUR if self._is_late else _MORNING_HOUR, 0)]
        minutes = {minute for _, minute in times}
        if len(minutes) > 1:
            raise InvalidInput(
                "Several times of a day have to be at the same minute of the hour",
                "Make a routine for each, or use one minute, as in 'every day at 9:30 and 18:30'.",
            )
        return minutes.pop(), ",".join(map(str, sorted({hour for hour, _ in times})))

    def _time(self, hour_text: str, minute_text: str, unit: str) -> tuple[int, int]:
        hour, minute = int(hour_text), int(minute_text or 0)
        is_twelve = unit.startswith(("a", "p"))
        if is_twelve and 1 <= hour <= _NOON_HOUR:
            hour = hour % _NOON_HOUR + _NOON_HOUR * unit.startswith("p")
        elif self._is_late and hour < _NOON_HOUR:
            hour += _NOON_HOUR
        if hour > 23 or minute > 59:
            raise InvalidInput(f"'{hour_text}:{minute:02}' is not a time of day", _EXAMPLES)
        return hour, minute


# -- in words


def schedule_text(cron: str) -> str:
    """Return an expression in words, which `read_schedule` reads again; others stay as they are."""
    minute, hour, days, month, weekdays = cron.split()
    if month != "*":
        return cron
    step = re.fullmatch(r"\*/(\d+)", minute)
    if step and int(step[1]) in _STEPS["minute"]:
        when = tr("every {count} minutes").format(count=step[1])
        return _with_days(when, days, weekdays) if hour == "*" else cron
    count = "1" if hour == "*" else hour.removeprefix("*/")
    if minute == "0" and hour.startswith("*") and count in map(str, _STEPS["hour"]):
        when = tr("every hour") if hour == "*" else tr("every {count} hours").format(count=count)
        return _with_days(when, days, weekdays)
    hours = hour.split(",")
    if not minute.isdecimal() or not all(map(str.isdecimal, hours)) or len(hours) > _MOST_HOURS:
        return cron
    times = _listed([f"{int(each):02}:{int(minute):02}" for each in hours])
    on = _days_text(days, weekdays)
    return tr("{days} at {times}").format(days=on, times=times) if on else cron


def _with_days(when: str, days: str, weekdays: str) -> str:
    if days == "*" and weekdays == "*":
        return when
    on = "" if days != "*" else _days_text(days, weekdays)
    return f"{when}, {on}" if on else when


def _days_text(days: str, weekdays: str) -> str:
    """Return days in words, "" for those that have none."""
    if days == "*" and weekdays == "*":
        return tr("every day")
    if days == "*":
        return _weekdays_text(weekdays)
    if weekdays != "*":
        return ""
    *dates, last = days.split(",")
    dates = [*dates] if last == "L" else [*dates, last]
    if not all(map(str.isdecimal, dates)):
        return ""
    named = [_ordinal(int(each)) for each in dates]
    if last != "L":
        return tr("on the {days} of each month").format(days=_listed(named))
    if not named:
        return tr("on the last day of each month")
    return tr("on the {days} and the last day of each month").format(days=_listed(named))


def _weekdays_text(weekdays: str) -> str:
    if weekdays == "1-5":
        return tr("every weekday")
    if nth := re.fullmatch(r"([0-7])(?:#([1-4])|L)", weekdays):
        places = (tr("last"), tr("first"), tr("second"), tr("third"), tr("fourth"))
        day = weekday_name((int(nth[1]) - 1) % 7)
        return tr("on the {place} {day} of each month").format(
            place=places[int(nth[2] or 0)], day=day
        )
    numbers = weekdays.split(",")
    if not all(re.fullmatch("[0-7]", each) for each in numbers):
        return ""
    names = [weekday_name(day) for day in sorted((int(each) - 1) % 7 for each in numbers)]
    return tr("every {days}").format(days=_listed(names))


def _ordinal(number: int) -> str:
    if language() != ENGLISH:
        return f"{number}."
    endings = {1: "st", 2: "nd", 3: "rd"}
    return f"{number}{'th' if number in (11, 12, 13) else endings.get(number % 10, 'th')}"


def _listed(parts: list[str]) -> str:
    *others, last = parts
    return tr("{some} and {last}").format(some=", ".join(others), last=last) if others else last

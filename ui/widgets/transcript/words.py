"""Figures as words: what an answer cost, how long, how large, which day."""

from datetime import date, datetime

from PySide6.QtCore import QDate, QLocale

from app.domain.usage import Usage


def footer_words(model: str | None, usage: Usage | None) -> str:
    """Return one line: model, tokens in (cached apart) and out, cost, time to first token, duration.

    An unknown price is "cost unknown", never 0; counts the provider did not report carry "about".
    """
    parts = [model_words(model)] if model else []
    if usage is not None:
        parts += [_tokens(usage), _cost(usage)]
        if usage.first_token_ms is not None:
            parts.append(f"{duration(usage.first_token_ms)} to first words")
        if usage.duration_ms is not None:
            parts.append(f"{duration(usage.duration_ms)} in all")
    return "  ·  ".join(parts)


def model_words(model: str) -> str:
    """Return a model, PROVIDER:MODEL, as people call it: one that is all of its provider by that."""
    return model.removesuffix(":").capitalize() if model.endswith(":") else model


def _tokens(usage: Usage) -> str:
    about = "about " if usage.estimated else ""
    cached = f" ({number(usage.cached_tokens)} cached)" if usage.cached_tokens else ""
    return f"{about}{number(usage.input_tokens)} in{cached}, {number(usage.output_tokens)} out"


def _cost(usage: Usage) -> str:
    cost = usage.cost_usd
    if cost is None:
        return "cost unknown"
    if cost == 0:
        return "no cost"
    return f"${cost:.2f}" if cost >= 1 else f"${cost:.4f}" if cost >= 0.0001 else "under $0.0001"


def number(count: int) -> str:
    """Return a count with the user's thousands separators."""
    return QLocale().toString(count)


def duration(ms: int) -> str:
    """Return a time such as "820 ms", "4.2 s" or "3 min 5 s"."""
    if ms < 1000:
        return f"{ms} ms"
    if ms < 60_000:
        return f"{ms / 1000:.1f} s"
    return f"{ms // 60_000} min {ms % 60_000 // 1000} s"


def size(count: int) -> str:
    """Return a count of bytes or characters such as "812 B", "3.4 kB", "12 MB"."""
    if count < 1000:
        return f"{count} B"
    if count < 1_000_000:
        return f"{count / 1000:.1f} kB"
    return f"{count / 1_000_000:.0f} MB"


def day_words(day: date, today: date) -> str:
    """Return a day as people say it: Today, Yesterday, else its date in the user's language."""
    if day == today:
        return "Today"
    if (today - day).days == 1:
        return "Yesterday"
    return QLocale().toString(QDate(day.year, day.month, day.day), QLocale.FormatType.LongFormat)


def moment(at: datetime) -> str:
    """Return the local date and time of a UTC moment, short."""
    local = at.astimezone()
    day = QLocale().toString(
        QDate(local.year, local.month, local.day), QLocale.FormatType.ShortFormat
    )
    return f"{day} {local:%H:%M}"

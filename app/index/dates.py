"""When a passage was written, as index terms, and the months a query may name.

The month's own term cannot come from a text (an equals sign never stays in one), so that
"Mai 2023", "May 2023" and "mayo de 2023" all find what was written then.
"""

from datetime import datetime
from types import MappingProxyType

_NAMES = """
    january januar janvier enero gennaio janeiro januari januar styczeń январь января ianuarie ocak
    february februar février febrero febbraio fevereiro februari luty февраль февраля februarie şubat
    march märz mars marzo março maart marts mars marzec март марта martie mart
    april avril abril aprile апрель апреля kwiecień aprilie nisan
    may mai mayo maggio maio mei maj май мая mayıs
    june juni juin junio giugno junho czerwiec июнь июня iunie haziran
    july juli juillet julio luglio julho lipiec июль июля iulie temmuz
    august août agosto augustus augusti sierpień август августа ağustos
    september septembre septiembre settembre setembro wrzesień сентябрь сентября septembrie eylül
    october oktober octobre octubre ottobre outubro październik октябрь октября octombrie ekim
    november novembre noviembre novembro listopad ноябрь ноября noiembrie kasım
    december dezember décembre diciembre dicembre dezembro grudzień декабрь декабря decembrie aralık
"""

_MONTHS = MappingProxyType(
    {
        name: number
        for number, names in enumerate(_NAMES.strip().splitlines(), start=1)
        for name in names.split()
    }
)


def date_terms(when: datetime) -> str:
    """Return the terms of a date: day, month and year apart and together."""
    month = f"{when.year:04}-{when.month:02}"
    return f"{when.day} month={when.month} {when.year} {month} {month}-{when.day:02}"


def month_term(word: str) -> str | None:
    """Return the term of the month that a case-folded word names; None for any other word."""
    number = _MONTHS.get(word)
    return f"month={number}" if number else None

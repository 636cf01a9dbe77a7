"""Dates and times in SQL: their text forms, the session's time zone, and the calendar.

A time zone decides what `timestamp '2024-03-31 02:30:00'` means. Where it is not known, or its rules differ between
time zone databases (before 1970, or far in the future), an instant is known only within the range of all zones.
"""

from __future__ import annotations

import calendar
import re
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from oreo_lakehouse.history.literal import NotUnderstood

DAY_US = 86_400_000_000
HOUR_US = 3_600_000_000
EARLIEST, LATEST = -12 * HOUR_US, 14 * HOUR_US
"""The offsets from UTC that time zones have."""

_EPOCH = date(1970, 1, 1).toordinal()
_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})")
_WALL = re.compile(
    r"(\d{4}-\d{2}-\d{2})(?:[ T](\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,6}))?)? ?(?:(Z|UTC)|([+-])(\d{2}):(\d{2}))?)?"
)
_FIXED = re.compile(r"(?:UTC|GMT)?([+-])(\d{1,2})(?::?(\d{2}))?")


def parse_date(text: str) -> int:
    """Days since 1970 of `2024-01-31`, the one form that every engine and version reads the same way.

    >>> parse_date("2024-01-31")
    19753
    """
    found = _DATE.fullmatch(text)
    try:
        return date(*map(int, found.groups())).toordinal() - _EPOCH  # pyright: ignore[reportOptionalMemberAccess]
    except (AttributeError, ValueError):
        raise NotUnderstood("a text that is not a plain date") from None


def parse_wall(text: str) -> tuple[int, int | None]:
    """Microseconds since 1970 as the clock on the wall shows them, and the text's own offset from UTC if it has one."""
    found = _WALL.fullmatch(text)
    if found is None or int(found[2] or 0) > 23 or int(found[3] or 0) > 59 or int(found[4] or 0) > 59:
        raise NotUnderstood("a text that is not a plain time")
    seconds = int(found[2] or 0) * 3600 + int(found[3] or 0) * 60 + int(found[4] or 0)
    micros = parse_date(found[1]) * DAY_US + seconds * 1_000_000 + int((found[5] or "").ljust(6, "0"))
    if found[6]:
        return micros, 0
    if found[7]:
        offset = (int(found[8]) * 60 + int(found[9])) * 60_000_000
        return micros, -offset if found[7] == "-" else offset
    return micros, None


def check_day(days: int) -> int:
    """The day itself.

    Raises:
        NotUnderstood: it lies outside the years 1 to 9999.
    """
    if not 1 - _EPOCH <= days <= date.max.toordinal() - _EPOCH:
        raise NotUnderstood("a date outside the years 1 to 9999")
    return days


def add_months(days: int, months: int) -> int:
    """The same day `months` later, or that month's last day, as Spark's `add_months` has it."""
    start = date.fromordinal(check_day(days) + _EPOCH)
    year, month = divmod(start.year * 12 + start.month - 1 + months, 12)
    if not 1 <= year <= 9999:
        raise NotUnderstood("a date outside the years 1 to 9999")
    last = calendar.monthrange(year, month + 1)[1]
    return date(year, month + 1, min(start.day, last)).toordinal() - _EPOCH


def zone_of(name: str | None) -> tzinfo | None:
    """The time zone of that name, or None if it is not known here.

    >>> zone_of("GMT+2"), zone_of("Nowhere/Else")
    (datetime.timezone(datetime.timedelta(seconds=7200)), None)
    """
    if name in ("UTC", "Z", "GMT", "Etc/UTC"):
        return UTC
    if found := _FIXED.fullmatch(name or ""):
        offset = timedelta(hours=int(found[2]), minutes=int(found[3] or 0))
        return timezone(-offset if found[1] == "-" else offset) if offset < timedelta(hours=18) else None
    try:
        return ZoneInfo(name) if name else None
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


class Clock:
    """The session's clock: between instants (UTC microseconds) and what the wall shows, each as (lowest, highest).

    >>> Clock("America/New_York").instant(1_700_000_000_000_000)
    (1700018000000000, 1700018000000000)
    """

    def __init__(self, time_zone: str | None = None) -> None:
        self._zone = zone_of(time_zone)
        self.fixed = isinstance(self._zone, timezone)
        self.doubt = "the session's time zone is not known" if self._zone is None else "a change of clocks"

    def _offset(self, micros: int, wall: bool) -> int | None:
        """The zone's offset, if time zone databases agree on it at that time."""
        if self._zone is None or not (self.fixed or 0 <= micros < 4_102_444_800_000_000):
            return None
        moment = datetime(1970, 1, 1) + timedelta(microseconds=0 if self.fixed else micros)
        moment = moment.replace(tzinfo=self._zone) if wall else moment.replace(tzinfo=UTC).astimezone(self._zone)
        offset = moment.utcoffset()
        return None if offset is None else offset // timedelta(microseconds=1)

    def instant(self, wall: int) -> tuple[int, int]:
        """When the wall shows that. In the hour that the clocks skip, the offset before it counts, and in the hour that
        they repeat, its first run: as Java and so Spark have it."""
        offset = self._offset(wall, wall=True)
        return (wall - LATEST, wall - EARLIEST) if offset is None else (wall - offset, wall - offset)

    def wall(self, instant: int) -> tuple[int, int]:
        """What the wall shows then. Columns of wall-clock time are not monotone where clocks change, so a zone that has
        such changes leaves a doubt of a day."""
        offset = self._offset(instant, wall=False)
        if offset is None:
            return instant + EARLIEST, instant + LATEST
        doubt = 0 if self.fixed else DAY_US
        return instant + offset - doubt, instant + offset + doubt

    def day(self, instant: int) -> tuple[int, int]:
        """The local date then."""
        offset = self._offset(instant, wall=False)
        low, high = (EARLIEST, LATEST) if offset is None else (offset, offset)
        return (instant + low) // DAY_US, (instant + high) // DAY_US

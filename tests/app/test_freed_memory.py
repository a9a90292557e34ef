"""The C library's memory: fixed limits where there is glibc, nothing elsewhere."""

import ctypes
import sys
from unittest import mock

import pytest

from app.system.memory import give_back_freed_memory


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc alone")
def test_the_limits_are_set_before_anything_else_starts() -> None:
    with mock.patch.object(ctypes, "CDLL") as library:
        give_back_freed_memory()
    assert library.return_value.mallopt.call_count == 3


@pytest.mark.parametrize("platform", ["win32", "darwin"])
def test_another_system_is_not_asked_for_a_library_without_a_name(
    monkeypatch: pytest.MonkeyPatch, platform: str
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    with mock.patch.object(ctypes, "CDLL", side_effect=TypeError("NoneType")):
        give_back_freed_memory()


def test_a_linux_with_another_c_library_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    with mock.patch.object(ctypes, "CDLL", return_value=object()):
        give_back_freed_memory()

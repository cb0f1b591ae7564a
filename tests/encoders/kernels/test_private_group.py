"""Whose group may write a library: that of a user alone, which is to say the user."""

import os
from types import SimpleNamespace

import pytest

from polyseme.encoders.kernels import build

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no such groups")


def is_private(
    monkeypatch: pytest.MonkeyPatch, *, group: str, members: list[str], primary: int, user: int
) -> bool:
    """Of user `ada`, of that number, and a group of number 1000."""
    import grp
    import pwd

    account = SimpleNamespace(pw_name="ada", pw_gid=primary)
    found = SimpleNamespace(gr_name=group, gr_mem=members)
    monkeypatch.setattr(pwd, "getpwuid", lambda _: account)
    monkeypatch.setattr(grp, "getgrgid", lambda _: found)
    return build._is_private_group(1000, user)


@pytest.mark.parametrize("members", [[], ["ada"]])
def test_a_group_of_the_users_own_is_private(
    monkeypatch: pytest.MonkeyPatch, members: list[str]
) -> None:
    assert is_private(monkeypatch, group="ada", members=members, primary=1000, user=1000)


@pytest.mark.parametrize(
    "change",
    [
        {"group": "staff"},
        {"members": ["ada", "bob"]},
        {"members": ["bob"]},
        {"primary": 100},
        {"user": 0},
    ],
)
def test_any_other_is_not(monkeypatch: pytest.MonkeyPatch, change: dict[str, object]) -> None:
    own = {"group": "ada", "members": [], "primary": 1000, "user": 1000}
    assert not is_private(monkeypatch, **{**own, **change})  # type: ignore[arg-type]


def test_a_number_without_a_name_is_not() -> None:
    assert not build._is_private_group(2**31 - 7, 2**31 - 7)

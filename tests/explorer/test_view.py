"""Every state is an address, and back."""

from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyseme.errors import PolysemeError
from polyseme.explorer.view import FormValues, View, pack, unpack


def read(address: str) -> View:
    return View.read(FormValues(urlsplit(address).query, most=100))


@given(
    st.builds(
        View,
        q=st.text(min_size=1, max_size=20).filter(str.strip),
        regex=st.booleans(),
        finer=st.integers(-8, 8),
        layer=st.none() | st.integers(0, 12),
        where=st.lists(st.sampled_from(["year<1860", "a=b&c", "x=é #"]), max_size=3).map(tuple),
        uses=st.sets(st.integers(0, 5000), max_size=30).map(sorted).map(tuple),
        page=st.integers(1, 99),
        like=st.none() | st.integers(0, 5000),
    )
)
def test_a_view_comes_back_from_its_address(view: View) -> None:
    assert read(view.address("/word", page=view.page)) == view


@given(st.sets(st.integers(0, 10**6)))
def test_a_choice_of_uses_comes_back(numbers: set[int]) -> None:
    assert unpack(pack(sorted(numbers))) == tuple(sorted(numbers))


def test_a_choice_of_5000_uses_fits_into_an_address() -> None:
    assert len(pack(range(0, 10_000, 2))) < 16_000


@pytest.mark.parametrize(
    "query",
    ["finer=x", "finer=99", "page=0", "page=-1", "layer=-1", "like=1e9", "uses=1.-2", "uses=..",
     f"q={'x' * 5000}", "page=99999999999999999999", "uses=٣"],
)  # fmt: skip
def test_an_address_that_makes_no_sense_is_refused_in_words(query: str) -> None:
    with pytest.raises(PolysemeError):
        read(f"/word?{query}")


def test_forms_may_stand_behind_a_chinese_comma() -> None:
    assert View(q="走，走了").query.forms == ("走", "走了")

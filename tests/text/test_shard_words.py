"""The words of a shard, mapped: all that was written is found again, and faults are noticed."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyseme.storage.records import save_array
from polyseme.text import shard_words
from polyseme.text.shard_words import GroupWords, ShardWords, ShardWordsWriter

Sentences = Sequence[Sequence[str]]
# NUL and the last code point sort first and last; the empty word is no word, but does no harm.
WORDS = st.sampled_from(["", "a", "b", "bank", "Bank", "ß", "中", "中文", "\x00", "\U0010ffff"])
SENTENCES = st.lists(st.lists(WORDS, min_size=1, max_size=6), min_size=1, max_size=5)


def write(path: Path, groups: Sequence[Sentences]) -> ShardWords:
    with ShardWordsWriter(path) as writer:
        for sentences in groups:
            plain = pa.array(sentences, pa.list_(pa.string()))
            words = plain.values.dictionary_encode()
            writer.add(pa.ListArray.from_arrays(plain.offsets, words))
    return ShardWords(path)


def sentences_of(group: GroupWords) -> list[list[str]]:
    words = group.spell(group.codes)
    begins = group.offsets.tolist()
    return [words[begin:end] for begin, end in pairwise(begins)]


@given(groups=st.lists(SENTENCES, max_size=4), wanted=st.sets(WORDS), small=st.booleans())
@settings(max_examples=150, deadline=None)
def test_what_is_read_and_found_is_what_was_written(
    tmp_path_factory: pytest.TempPathFactory,
    groups: list[Sentences],
    wanted: set[str],
    *,
    small: bool,
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        if not small:  # as if there were too many distinct words for 16 bits
            patch.setattr(shard_words, "_SMALL", np.dtype("<u4"))
        shard = write(tmp_path_factory.mktemp("words") / "a.npy", groups)
        assert len(shard) == len(groups)
        for number, sentences in enumerate(groups):
            group = shard[number]
            assert sentences_of(group) == sentences
            there = {word for sentence in sentences for word in sentence}
            assert group.spell() == sorted(there)
            assert group.spell(np.array(group.find(wanted), int)) == sorted(there & wanted)


@pytest.mark.parametrize("count", [65_536, 65_537])
def test_numbers_are_wider_where_there_are_too_many_words(tmp_path: Path, count: int) -> None:
    words = [f"{number:x}" for number in range(count)]
    group = write(tmp_path / "a.npy", [[words]])[0]
    assert group.codes.dtype == (np.uint16 if count == 65_536 else np.uint32)
    assert sentences_of(group) == [words]
    for some in (words[:200], words[-3:]):
        assert group.spell(np.array(group.find(some))) == sorted(some)


def test_an_error_on_the_way_is_not_hidden(tmp_path: Path) -> None:
    with pytest.raises(KeyError), ShardWordsWriter(tmp_path / "a.npy"):
        raise KeyError("from the work")


def test_a_changed_byte_is_an_error_or_another_word(tmp_path: Path) -> None:
    write(tmp_path / "a.npy", [[["river", "bank"], ["bank"]]])
    content = (tmp_path / "a.npy").read_bytes()
    refused = 0
    for place in range(len(content)):
        changed = bytearray(content)
        changed[place] ^= 1
        (tmp_path / "a.npy").write_bytes(changed)
        try:
            assert sum(map(len, sentences_of(ShardWords(tmp_path / "a.npy")[0]))) == 3
        except ValueError:
            refused += 1
    assert refused > 100


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ([b"ab", [1, 2], [2], [0, 2]], "stands for none"),
        ([b"ab", [1, 2], [3], [0, 1]], "as many words"),
        ([b"ab", [2, 1], [2], [0, 1]], "one after another"),
        ([b"ab", [1, 9], [2], [0, 1]], "one after another"),
        ([b"\xff", [1], [1], [0]], "can't decode"),
        ([b"ab", [1, 2], [2]], "as many row groups"),
        ([], "as many row groups"),
    ],
)
def test_hostile_arrays_are_refused(tmp_path: Path, arrays: list[Any], message: str) -> None:
    with (tmp_path / "a.npy").open("wb") as stream:
        for values in [*arrays, [1]]:
            save_array(stream, np.array(list(values), "u1" if isinstance(values, bytes) else "<u4"))
    with pytest.raises(ValueError, match=message):
        sentences_of(ShardWords(tmp_path / "a.npy")[0])

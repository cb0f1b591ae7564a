"""Whatever a file holds, reading it ends in examples, in counts, or in an error with words."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from polyseme.errors import PolysemeError
from polyseme.tasks.families.classification import Classified
from polyseme.tasks.families.coreference import Document
from polyseme.tasks.families.tagging import Tagged
from polyseme.tasks.readers import read_examples
from polyseme.tasks.texts import ExampleStats
from tasks.readers.making import reader

READERS: list[dict[str, Any]] = [
    {"kind": "columns"},
    {"kind": "columns", "numbered": True, "word": -1, "label": 3},
    {"kind": "conllu", "label": "Case", "contractions": "joined"},
    {"kind": "propbank", "word": 1, "predicate": 2, "arguments": 3},
    {"kind": "table", "format": "csv", "text": "1", "label": "2", "header": False},
    {"kind": "table", "format": "tsv", "text": "1", "second": "1", "label": "1", "header": False},
    {"kind": "table", "format": "jsonl", "text": "a", "label": "b"},
    {"kind": "labelled"},
    {"kind": "segmented"},
    {"kind": "trees", "subtrees": True},
    {"kind": "senses"},
    {"kind": "coreference", "word": 1, "mentions": -1},
    {"kind": "squad"},
]
parts = [b"\n", b"\n\n", b"x (1)", b"(1|1)", b"\n#begin document (a/b);\n", b"\n#end document\n",
         b"\t", b" ", b"(", b")", b"*", b"*)", b"(V*)", b"-", b'"', b",", b"O",
         b"B-X", b"1", b"1-2", b"2.1", b"0", b"#", b"# x", b'{"a": "x", "b": ', b"}", b"[", b"null",
         b"\xff", b"\r", b"\x00", "\u3000吴".encode(), b"_\t" * 9, b"\xef\xbb\xbf"]  # fmt: skip
contents = st.lists(st.sampled_from(parts) | st.binary(max_size=3), max_size=30).map(b"".join)


@pytest.mark.parametrize("config", READERS, ids=lambda config: "-".join(map(str, config.values())))
@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=contents)
def test_any_bytes_are_read_counted_or_refused(
    tmp_path: Path, config: dict[str, Any], data: bytes
) -> None:
    path = tmp_path / "x.data.txt"
    path.write_bytes(data)
    path.with_name("x.gold.txt").write_bytes(b"1\n" * (data.count(b"\n") + 1))
    stats = ExampleStats()
    try:
        examples = list(read_examples(path, reader(**config), stats))
    except PolysemeError:
        return
    assert stats.examples == len(examples)
    assert stats.read == stats.kept + stats.rejected
    for example in examples:
        if isinstance(example, Tagged):
            assert len(example.words) == len(example.labels) > 0
            assert all(example.words)
            assert all(example.labels)
            assert example.target_index is None or example.target_index < len(example.words)
        elif isinstance(example, Classified):
            assert example.text
            assert example.label
        elif isinstance(example, Document):
            assert all(word for words in example.sentences for word in words)
            num_words = sum(map(len, example.sentences))
            for start, stop in (mention for each in example.clusters for mention in each):
                assert 0 <= start < stop <= num_words

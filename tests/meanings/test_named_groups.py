"""Two meanings of one word, told apart by a real model, with names and lines a person can read."""

import csv
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import polyseme
from polyseme.meanings.concordance.uses import Uses
from polyseme.meanings.features.use_encoder import ModelUseEncoder
from polyseme.meanings.groups.senses import MAX_USES, Senses, draw_uses, find_senses

MODEL = Path(__file__).parents[2] / "models" / "en-mini"
PEOPLE = ("The farmer", "An old man", "The queen", "My brother", "A soldier", "The boys", "Mary")
RIVERS = (
    "walked along the {} of the river to the old bridge .",
    "sat on the {} of the stream under the trees .",
    "reached the western {} of the river in the evening .",
    "built a house on the north {} of the lake .",
    "crossed the water and climbed the steep {} on the other side .",
    "found the boat on the muddy {} near the village .",
)
MONEY = (
    "has an account at the {} in London .",
    "borrowed money from the {} to buy the company .",
    "became the chairman of the {} in 1990 .",
    "sold the shares of the {} to the government .",
    "works for a central {} with many branches .",
    "received a loan of two million dollars from the {} .",
)


def bank_uses() -> tuple[Uses, list[bool]]:
    """84 uses of `bank`; True where a river has it."""
    sentences, spans, is_river = [], [], []
    for templates, river in ((RIVERS, True), (MONEY, False)):
        for person in PEOPLE:
            for template in templates:
                words = f"{person} {template}".split()
                at = words.index("{}")
                words[at] = "bank"
                sentences.append(words)
                spans.append((at, at + 1))
                is_river.append(river)
    return Uses.of(sentences, spans), is_river


@pytest.fixture(scope="module")
def encoder() -> ModelUseEncoder:
    return ModelUseEncoder(polyseme.load(MODEL, threads=1))


@pytest.fixture(scope="module")
def senses(encoder: ModelUseEncoder) -> Senses:
    return find_senses(bank_uses()[0], encoder, num_groups=2)


def test_rivers_and_money_are_told_apart(senses: Senses) -> None:
    is_river = bank_uses()[1]
    pairs = set(zip(senses.labels, is_river, strict=True))
    assert len(pairs) == 2
    assert {group.size for group in senses.groups} == {42}


def test_each_group_is_named_by_what_sets_it_apart(senses: Senses) -> None:
    river = next(group for group in senses.groups if "river" in group.collocates)
    money = next(group for group in senses.groups if group is not river)
    assert {"account", "money"} & {*money.collocates}
    assert {"side", "edge", "end", "shore", "coast", "banks"} & {*river.substitutes}
    assert "the" not in {*river.collocates, *money.collocates}
    assert river.name.startswith(f"{' '.join(river.substitutes)} | {' '.join(river.collocates)}")


def test_typical_lines_are_of_their_group(senses: Senses) -> None:
    for group in senses.groups:
        lines = list(senses.lines(group.number, 4))
        assert len(lines) == 4
        assert all(line.form == "bank" for line in lines)
        assert all(senses.labels[number] == group.number for number in group.typical)


def test_a_sample_says_that_it_is_one(
    encoder: ModelUseEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("polyseme.meanings.groups.senses.MAX_USES", 60)
    assert MAX_USES > 84
    senses = find_senses(bank_uses()[0], encoder, seed=2)
    assert (len(senses.uses), senses.num_found) == (60, 84)
    assert senses.notes[0] == "A random sample of 60 of 84 uses."


def sentences_of(number: int) -> list[list[str]]:
    """Some of them equal."""
    return [["The", "bank", "of", f"river{n // 2 if n % 10 == 0 else n}"] for n in range(number)]


def drawn(sentences: list[list[str]], seed: int = 1) -> list[int]:
    """The numbers in their words of those that are drawn."""
    uses = draw_uses(Uses.of(sentences, [(1, 2)] * len(sentences)), seed)
    return [int(words[-1].removeprefix("river")) for words in uses.sentences()]


def test_a_sample_stays_when_the_corpus_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polyseme.meanings.groups.senses.MAX_USES", 1_000)
    before = sentences_of(3_000)
    new = [["A", "new", f"river{n}"] for n in range(10_000, 10_060)]  # 2 % more, everywhere
    after = before.copy()
    for n, sentence in enumerate(new):
        after.insert(53 * n, sentence)
    first, second = drawn(before), drawn(after)
    assert len(first) == len(second) == 1_000
    assert drawn(before) == first
    kept = Counter(first) & Counter(second)
    assert kept.total() > 960  # 1,000 * 3,000 / 3,060, but for chance
    assert len({*drawn(before, seed=2)} & {*first}) < 450  # another seed draws others


def test_a_sample_is_drawn_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polyseme.meanings.groups.senses.MAX_USES", 1_000)
    alike = [["The", "bank", "said", "river1"]] * 2_000  # are not drawn all or none
    chosen = drawn([*sentences_of(2_000), *alike])
    assert 430 < chosen.count(1) < 570
    middle = sum(n >= 1_000 for n in chosen)
    assert 200 < middle < 300


def test_every_use_is_exported_with_its_group(senses: Senses, tmp_path: Path) -> None:
    senses.to_csv(tmp_path / "bank.csv")
    with (tmp_path / "bank.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["group"]) for row in rows] == senses.labels
    assert {row["form"] for row in rows} == {"bank"}
    frame = senses.to_pandas()
    assert frame["group"].tolist() == senses.labels
    assert set(frame["group_name"]) == {group.name for group in senses.groups}


def test_it_is_shown_in_a_line_a_notebook_and_as_json(senses: Senses) -> None:
    assert repr(senses).startswith("<Senses: 84 uses in 2 groups, 50%")
    assert "<table>" in senses._repr_html_()
    told = senses.to_json()
    assert [group["uses"] for group in told["groups"]] == [42, 42]
    assert all("bank" in line for group in told["groups"] for line in group["typical"])


def test_hostile_words_are_text_in_html(encoder: ModelUseEncoder) -> None:
    uses, _ = bank_uses()
    hostile = "<script>alert(1)</script>"
    sentences = [[hostile, *words] for words in uses.sentences()]
    senses = find_senses(Uses.of(sentences, uses.spans + 1), encoder)
    assert "<script" not in senses._repr_html_()
    assert "&lt;script&gt;" in senses._repr_html_()


def test_the_same_seed_gives_the_same_groups(encoder: ModelUseEncoder) -> None:
    uses, _ = bank_uses()
    one, two = find_senses(uses, encoder, seed=7), find_senses(uses, encoder, seed=7)
    assert one.labels == two.labels
    assert one.groups == two.groups
    assert np.array_equal(one.features.context, two.features.context)

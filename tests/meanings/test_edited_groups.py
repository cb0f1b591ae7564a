"""Groups as a user left them: the same uses, other groups and names, and nothing lost."""

import dataclasses
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import polyseme
from meanings.test_named_groups import MODEL, bank_uses, encoder, senses
from polyseme.errors import ConfigError, InputError
from polyseme.meanings.concordance.uses import Uses
from polyseme.meanings.edits import (
    Edit,
    GroupRef,
    LabelEdit,
    MergeEdit,
    RenameEdit,
    SplitEdit,
    UndoEdit,
    append_edit,
)
from polyseme.meanings.features.use_encoder import ModelUseEncoder
from polyseme.meanings.groups.senses import (
    Senses,
    find_senses,
    use_ids,
)

__all__ = ["encoder", "senses"]


def boats(senses: Senses) -> SplitEdit:
    """The uses with a boat in a group of their own."""
    group = senses.groups[senses.labels[0] - 1]
    uses = senses.editable.choose((), "\\bboat\\b", within=group.id)
    new = GroupRef(id=senses.editable.new_id(()), name="landing")
    return SplitEdit(group=senses.editable.ref(group.id), uses=uses, new=new)


def test_a_renamed_group_keeps_its_uses_its_words_and_its_stability(senses: Senses) -> None:
    after = senses.edited([RenameEdit(group=senses.editable.ref("1"), name="side of a river")])
    group = next(group for group in after.groups if group.id == "1")
    assert group.name == "side of a river"
    assert group.words == senses.groups[0].words
    assert group.stability == senses.groups[0].stability
    assert senses.groups[0].name != "side of a river"  # what was given stays as it was


def test_a_split_makes_a_group_of_its_own_with_words_of_its_own(senses: Senses) -> None:
    after = senses.edited([boats(senses)])
    landing = next(group for group in after.groups if group.name == "landing")
    assert (landing.id, landing.size) == ("3", 7)  # one of six templates, seven people
    assert landing.stability is None
    assert "boat" in landing.collocates
    assert all("boat" in use.text for use in after.lines(landing.number))
    assert sum(group.share for group in after.groups) == pytest.approx(1)
    assert Counter(after.labels)[landing.number] == 7


def test_a_group_that_lost_uses_has_no_stability_and_the_other_keeps_it(senses: Senses) -> None:
    after = senses.edited([boats(senses)])
    changed = boats(senses).group.id
    for group in after.groups:
        if group.id in ("1", "2") and group.id != changed:
            assert group.stability is not None
        else:
            assert group.stability is None


def test_a_file_of_edits_gives_what_the_list_gives(senses: Senses, tmp_path: Path) -> None:
    path = tmp_path / "edits.jsonl"
    append_edit(path, boats(senses))
    assert senses.edited(path).labels == senses.edited([boats(senses)]).labels
    with path.open("ab") as file:
        file.write(b'{"kind": "ren')
    assert "cut short" in " ".join(senses.edited(str(path)).notes)
    with pytest.raises(InputError, match="no file of edits"):
        senses.edited(tmp_path / "none.jsonl")


def test_a_new_group_gets_a_number_that_was_never_used(senses: Senses) -> None:
    merge = MergeEdit(groups=(GroupRef(id="1", name="a"), GroupRef(id="9", name="b")))
    assert senses.editable.new_id([merge]) == "10"


def test_uses_are_chosen_by_number_or_by_what_their_sentence_holds(senses: Senses) -> None:
    assert senses.editable.choose((1, 84), None) == (
        use_ids(senses.uses)[0],
        use_ids(senses.uses)[83],
    )
    assert len(senses.editable.choose((), "LONDON")) == 7
    with pytest.raises(ConfigError, match="Say which uses"):
        senses.editable.choose((), None)
    with pytest.raises(InputError, match="There is no use 85"):
        senses.editable.choose((85,), None)
    with pytest.raises(InputError, match="No use"):
        senses.editable.choose((), "nothing has this")
    with pytest.raises(ConfigError, match="not a valid RE2 expression"):
        senses.editable.choose((), "(")
    with pytest.raises(InputError, match=r"no group '7'. The groups are: 1, 2"):
        senses.editable.ref("7")


def test_senses_whose_words_are_not_known_can_be_edited_too(senses: Senses) -> None:
    bare = dataclasses.replace(senses, name_source=None)
    after = bare.edited([boats(senses)])
    assert next(group for group in after.groups if group.name == "landing").collocates == ()


def test_uses_that_begin_at_one_word_go_together(senses: Senses) -> None:
    twice = senses.uses.select([0, 0, *range(1, 84)])
    labels = senses.grouping.labels
    grouping = dataclasses.replace(
        senses.grouping,
        labels=labels[[0, 83, *range(1, 84)]],
        vectors=senses.grouping.vectors[[0, 0, *range(1, 84)]],
    )
    doubled = dataclasses.replace(senses, uses=twice, grouping=grouping, name_source=None)
    assert sum(len(group.uses) for group in doubled.editable.groups.values()) == 84
    after = doubled.edited([LabelEdit(uses=use_ids(bank_uses()[0])[:1], label="x")])
    assert after.labels[0] == after.labels[1]


def judged(senses: Senses) -> list[Edit]:
    """A name for the river's group, and its boats in a group of their own."""
    edits: list[Edit] = [boats(senses)]
    after = senses.edited(edits)
    river = boats(senses).group.id
    edits.append(RenameEdit(group=after.editable.ref(river), name="side of a river"))
    landing = next(group.id for group in after.groups if group.name == "landing")
    return [*edits, RenameEdit(group=after.editable.ref(landing), name="quay")]


def named_texts(senses: Senses, name: str) -> set[str]:
    [group] = [group for group in senses.groups if group.name == name]
    return {senses.uses[n].text for n, own in enumerate(senses.labels) if own == group.number}


def grown() -> Uses:
    """Two texts more, one before the others, so that each sentence has another number."""
    uses = bank_uses()[0]
    money = ["The", "bank", "paid", "the", "loan", "back", "in", "full", "."]
    new = [[*money[:-1], year, "."] for year in map(str, range(1900, 1960))]
    sentences = [*new, *uses.sentences(), *new[:5]]
    spans = [*[(1, 2)] * 60, *map(tuple, uses.spans.tolist()), *[(1, 2)] * 5]
    return Uses.of(sentences, spans)


def test_edits_survive_a_grown_corpus(senses: Senses, encoder: ModelUseEncoder) -> None:
    edits = judged(senses)
    larger = find_senses(grown(), encoder, num_groups=3)
    names = {group.name for group in senses.groups}
    assert {group.name for group in larger.groups} != names
    after = larger.edited(edits[1:2])
    assert after.problems == ()
    [old, new] = [named_texts(each, "side of a river") for each in (senses.edited(edits), after)]
    assert old <= new
    assert not any("paid the loan" in text for text in new)


def test_edits_survive_a_grown_corpus_of_which_a_sample_is_drawn(
    encoder: ModelUseEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("polyseme.meanings.groups.senses.MAX_USES", 60)
    uses, _ = bank_uses()
    senses = find_senses(uses, encoder, num_groups=2)
    edit = RenameEdit(group=senses.editable.ref("1"), name="mine")
    more = [*uses.sentences()]
    for at in (0, 20, 50):
        more.insert(at, ["They", "saw", "the", "bank", "of", "the", "canal", "."])
    grown = Uses.of(more, [(words.index("bank"), words.index("bank") + 1) for words in more])
    edited = find_senses(grown, encoder, num_groups=2).edited([edit])
    assert not edited.problems
    mine = next(group for group in edited.groups if group.name == "mine")
    before = {tuple(use.words) for use, n in zip(senses.uses, senses.labels, strict=True) if n == 1}
    numbers = [n for n, label in enumerate(edited.labels) if label == mine.number]
    assert len(before & {tuple(edited.uses[n].words) for n in numbers}) > 0.8 * len(before)


@pytest.mark.parametrize("num_groups", [3, 4])
def test_edits_survive_another_granularity(
    senses: Senses, encoder: ModelUseEncoder, num_groups: int
) -> None:
    other = find_senses(bank_uses()[0], encoder, num_groups=num_groups)
    after = other.edited(judged(senses))
    assert not [problem for problem in after.problems if not problem.is_applied]
    assert {"side of a river", "quay"} <= {group.name for group in after.groups}
    assert all("boat" in text for text in named_texts(after, "quay"))


def test_edits_survive_another_model(senses: Senses, encoder: ModelUseEncoder) -> None:
    larger = ModelUseEncoder(polyseme.load(MODEL.with_name("en-base"), threads=1))
    other = find_senses(bank_uses()[0], larger, num_groups=2)
    after = other.edited(judged(senses))
    assert {"side of a river", "quay"} <= {group.name for group in after.groups}


def test_edits_survive_another_form_of_the_query(senses: Senses, encoder: ModelUseEncoder) -> None:
    uses = bank_uses()[0]
    sentences = list(uses.sentences())
    plural = [
        [*["The", "steep", "banks", "of", "this", "river", "are", "green", "in"], str(year), "."]
        for year in range(1900, 1909)
    ]
    spans = [*[(2, 3)] * 9, *map(tuple, uses.spans.tolist())]
    both = find_senses(Uses.of([*plural, *sentences], spans), encoder, num_groups=2)
    after = both.edited(judged(senses)[1:2])
    assert after.problems == ()
    assert "side of a river" in {group.name for group in after.groups}


def test_a_log_by_names_is_read_as_before(senses: Senses, tmp_path: Path) -> None:
    path = tmp_path / "edits.jsonl"
    name = senses.groups[0].name
    line = {"kind": "rename", "group": {"id": "1", "name": name}, "name": "mine"}
    path.write_text(json.dumps(line) + "\n", encoding="utf-8")
    assert {group.name for group in senses.edited(path).groups} >= {"mine"}


def test_what_a_log_keeps_of_a_group_is_small(senses: Senses, tmp_path: Path) -> None:
    path = tmp_path / "edits.jsonl"
    append_edit(path, RenameEdit(group=senses.editable.ref("1"), name="x"))
    assert path.stat().st_size < 2500
    append_edit(path, UndoEdit(edit=1))
    assert path.read_text().splitlines()[1] == '{"kind":"undo","edit":1}'


def test_groups_of_the_same_sentences_are_known_by_name(senses: Senses) -> None:
    uses = senses.uses
    twice = Uses.of([*uses.sentences()] * 2, [*map(tuple, uses.spans.tolist())] * 2)
    labels = np.repeat([0, 1], 84)
    grouping = dataclasses.replace(
        senses.grouping, labels=labels, vectors=np.tile(senses.grouping.vectors, (2, 1))
    )
    doubled = dataclasses.replace(senses, uses=twice, grouping=grouping, name_source=None)
    assert doubled.editable.ref("1").members is None

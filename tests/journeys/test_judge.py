"""Judging together by the command line: sheets made, filled in, measured, and what comes next."""

import csv
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from command_line import polyseme
from journeys.test_senses import corpus
from meanings.test_named_groups import MODEL

import polyseme as polyseme_api
from polyseme.meanings.concordance.uses import find_uses
from polyseme.meanings.judgments import read_judgments
from polyseme.text.corpus import Corpus

__all__ = ["corpus"]

SHORE = ("river", "water", "boat", "stream", "grass", "lake", "shore", "fish")
Row = dict[str, str]


def rows_of(path: Path) -> list[Row]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def fill_in(folder: Path, column: str, judge: Callable[[Row, int], str]) -> None:
    for number, path in enumerate(sorted(folder.glob("*.csv"))):
        rows = rows_of(path)
        for row in rows:
            row[column] = judge(row, number)
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=[*rows[0]])
            writer.writeheader()
            writer.writerows(rows)


def is_shore(text: str) -> bool:
    return any(word in text.lower() for word in SHORE)


def relatedness(row: Row, number: int) -> str:
    """Two people who differ in every fifth pair or so."""
    same = is_shore(row["sentence1"]) == is_shore(row["sentence2"])
    odd = int(row["id"][1:], 16) % 5 == number
    return "4" if same != odd else "1"


def sense(row: Row, number: int) -> str:
    return (
        "?"
        if number and row["sentence"].startswith("A")
        else ("shore" if is_shore(row["sentence"]) else "institution")
    )


def test_pairs_are_judged_measured_and_chosen(corpus: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "round1", tmp_path / "round2"
    ask = ("judge", "bank", "--in", corpus, "--annotators", "ana,ben")
    shown = polyseme(*ask, "--number", "60", "--out", first).stdout
    assert "60 pairs of 'bank' for 2 annotators" in shown
    ana, ben = (rows_of(first / f"bank-{one}.csv") for one in ("ana", "ben"))
    assert [row["id"] for row in ana] != [row["id"] for row in ben]
    assert {row["id"] for row in ana} == {row["id"] for row in ben}
    assert all("*bank*" in row["sentence1"].lower() for row in ana)
    refused = polyseme(*ask, "--out", first, code=2).stderr
    assert "is there already, and may be filled in" in refused

    fill_in(first, "judgment", relatedness)
    out = tmp_path / "bank.csv"
    shown = polyseme("agreement", first, "--within", "0.05", "--out", out).stdout
    assert "120 judgments of 60 pairs by 2 annotators." in shown
    assert "Krippendorff's alpha (ordinal): 0." in shown
    assert "more items like these are needed" in " ".join(shown.split())
    told = json.loads(polyseme("agreement", first, "--json").stdout)
    found = polyseme_api.agreement(first)
    assert told["alpha"] == found.alpha.to_json()
    pairs = ("--model", MODEL, "--pairs", out)
    told = polyseme("same", "The *bank* lent.", "A *bank* of mud.", *pairs).stdout
    assert "cross-validated accuracy" in told

    three = ("judge", "bank", "--in", corpus, "--annotators", "ana,ben,eve", "--model", MODEL)
    shown = polyseme(*three, "--judgments", first, "--number", "20", "--out", second).stdout
    assert "New pairs are those of which the model is least sure" in shown
    ana, eve = (rows_of(second / f"bank-{one}.csv") for one in ("ana", "eve"))
    judged = {row["id"] for row in ben}
    assert len(ana) == len(eve) == 20
    assert not judged & {row["id"] for row in ana}  # whoever judged an item is not asked again
    assert 0 < len(judged & {row["id"] for row in eve}) <= 10
    assert {row["sample"] for row in ana} == {"chosen"}
    uses = Counter(row[name] for row in ana for name in ("identifier1", "identifier2"))
    assert max(uses.values()) <= 2


def test_few_judgments_choose_at_random(corpus: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "round1", tmp_path / "round2"
    ask = ("judge", "bank", "--in", corpus, "--annotators", "ana", "--number", "10")
    polyseme(*ask, "--out", first)
    fill_in(first, "judgment", relatedness)
    again = (*ask, "--judgments", first, "--model", MODEL, "--out", second)
    assert "New pairs are random" in polyseme(*again).stdout
    rows = rows_of(second / "bank-ana.csv")
    assert {row["sample"] for row in rows} == {"random"}
    assert not {row["id"] for row in rows} & {row["id"] for row in rows_of(first / "bank-ana.csv")}


def test_durel_gets_uses_and_pairs_and_gives_judgments(corpus: Path, tmp_path: Path) -> None:
    ask = ("bank", "--in", corpus, "--annotators", "ana,ben", "--number", "15")
    polyseme("judge", *ask, "--out", tmp_path / "sheets")
    uses, pairs = (
        list(csv.DictReader(
            (tmp_path / "sheets" / f"bank.{name}.tsv").read_text(encoding="utf-8").splitlines(),
            delimiter="\t", quoting=csv.QUOTE_NONE,
        ))
        for name in ("uses", "instances")
    )  # fmt: skip
    known = {row["identifier"] for row in uses}
    named = {row[name] for row in pairs for name in ("identifier1", "identifier2")}
    assert (len(pairs), known) == (15, named)
    for row in uses:
        begin, end = map(int, row["indexes_target_token"].split(":"))
        assert row["context"][begin:end].lower() == "bank"
    fill_in(tmp_path / "sheets", "judgment", relatedness)
    out = tmp_path / "durel" / "bank.judgments.tsv"
    out.parent.mkdir()
    polyseme("agreement", tmp_path / "sheets", "--out", out)
    assert read_judgments([out]).values == read_judgments([tmp_path / "sheets"]).values
    # Groups are one more annotator.
    groups = tmp_path / "durel" / "groups.judgments.tsv"
    polyseme("senses", "bank", "--in", corpus, "--model", MODEL, "--groups", "2", "--out", groups)
    compared = polyseme_api.agreement([out, groups]).pairs
    assert {(two.first, two.second) for two in compared} >= {("ana", "polyseme")}
    assert {two.num_items for two in compared} == {15}


def test_lines_become_labels_and_kept_senses(corpus: Path, tmp_path: Path) -> None:
    lines, mine = tmp_path / "lines", tmp_path / "labels.csv"
    ask = ("judge", "bank", "--in", corpus, "--annotators", "ana,ben", "--number", "30")
    senses = ("--senses", "shore,institution")
    shown = polyseme(*ask, *senses, "--out", lines).stdout
    assert "30 lines of 'bank' for 2 annotators" in shown
    fill_in(lines, "sense", sense)
    shown = polyseme("agreement", lines, "--out", mine).stdout
    assert "Krippendorff's alpha (nominal): 1.000" in shown
    labelled = ("label", "bank", "--in", corpus, "--model", MODEL, "--labels", mine, "--keep")
    assert "84 uses labelled" in polyseme(*labelled).stdout
    found = ("collocates", "bank", "--in", corpus, "--sense", "shore", "--min-g2", "0")
    assert "bank" in polyseme(*found).stdout
    more = (*ask, *senses, "--judgments", lines, "--model", MODEL, "--out", tmp_path / "more")
    assert "whose sense is least clear" in polyseme(*more).stdout
    rows, before = (rows_of(folder / "bank-ana.csv") for folder in (tmp_path / "more", lines))
    assert len(rows) == 30
    assert not {row["id"] for row in rows} & {row["id"] for row in before}


def test_what_cannot_be_judged_is_told(corpus: Path, tmp_path: Path) -> None:
    ask = ("judge", "bank", "--in", corpus, "--out", tmp_path / "out")
    assert "named twice" in polyseme(*ask, "--annotators", "ana,Ana", code=2).stderr
    one = ("--annotators", "ana", "--senses", "one")
    assert "two senses or more" in polyseme(*ask, *one, code=2).stderr
    other = polyseme_api.judge(corpus, "water", annotators=("ana",), out=tmp_path / "w", number=3)
    fill_in(tmp_path / "w", "judgment", relatedness)
    assert len(other.items) <= 3
    more = ("--annotators", "ana", "--judgments", tmp_path / "w", "--model", MODEL)
    assert "None of the judgments so far" in polyseme(*ask, *more, code=66).stderr


def test_the_same_seed_draws_the_same_pairs(corpus: Path) -> None:
    from polyseme.meanings.judging import Plan, draw_material

    uses = find_uses(Corpus.open(corpus), "bank")
    one, two, other = (
        draw_material(uses, Plan(("ana", "ben"), 20, seed=seed)) for seed in (1, 1, 2)
    )
    assert one.sheets == two.sheets
    assert set(one.items) != set(other.items)
    assert len(draw_material(uses, Plan(("ana",), 9_000)).items) == 84 * 83 // 2

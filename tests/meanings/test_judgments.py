"""Sheets and DURel's files read back: what counts, what is set aside, what most say."""

import csv
import random
from pathlib import Path

import pytest

from polyseme.errors import ConfigError, InputError
from polyseme.meanings.concordance.export import write_table
from polyseme.meanings.judgments import (
    Item,
    Judgments,
    Key,
    Sheet,
    measure_agreement,
    read_judgments,
    write_judgments,
)
from polyseme.meanings.same import read_pairs

PAIRS = [
    Item(
        Key.of_pair("bank", f"d-{n}", f"e-{n}"), (f"The *bank* {n}.", f'A "*bank*"; {n}'), "random"
    )
    for n in range(6)
]
LINES = [
    Item(Key("bank", f"d{n}", "4"), (f"The *bank* {n}.",), "random", ("shore", "institution"))
    for n in range(5)
]


def fill_in(
    path: Path,
    items: list[Item],
    cells: list[str],
    *,
    annotator: str | None = None,
    delimiter: str = ",",
) -> Path:
    """A sheet as `judge` writes it, filled in and saved by a spreadsheet."""
    kind, column = ("lines", "sense") if items[0].senses else ("pairs", "judgment")
    write_table(Sheet(kind, items, annotator or path.stem), path)  # type: ignore[arg-type]
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    for row, cell in zip(rows, cells, strict=True):
        row[column] = cell
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=[*rows[0]], delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_sheets_are_read_back_whatever_a_spreadsheet_makes_of_them(tmp_path: Path) -> None:
    fill_in(tmp_path / "ana.csv", PAIRS, ["4", "1", " 3 ", "2,0", "0", ""])
    fill_in(tmp_path / "ben.csv", PAIRS, ["4.0", "2", "3", "2", "1", "x"], delimiter=";")
    found = read_judgments([tmp_path])
    assert found.values[PAIRS[0].key] == {"ana": 4, "ben": 4}
    assert found.values[PAIRS[3].key] == {"ana": 2, "ben": 2}
    assert found.values[PAIRS[4].key] == {"ben": 1}
    assert (found.num_judgments, found.num_undecided, found.num_open) == (9, 1, 1)
    [rejected] = found.rejected
    assert str(rejected) == "ben.csv, row 7, judgment: 'x' is not 1 to 4, or 0."
    assert found.items[PAIRS[1].key].sentences == PAIRS[1].sentences


def test_neither_the_order_of_sheets_nor_that_of_rows_matters(tmp_path: Path) -> None:
    told = {}
    for number in range(3):
        folder = tmp_path / str(number)
        folder.mkdir()
        paths = []
        for annotator in ("ana", "ben", "eve"):
            order = [*range(6)]
            random.Random(f"{number}{annotator}").shuffle(order)
            cells = [str(1 + (row * len(annotator) + ord(annotator[0])) % 4) for row in order]
            items = [PAIRS[row] for row in order]
            paths.append(fill_in(folder / f"{annotator}.csv", items, cells))
        agreement = measure_agreement(read_judgments(paths[::-1] if number else paths))
        told[number] = agreement.to_json()
    assert told[0] == told[1] == told[2]
    assert told[0]["annotators"] == ["ana", "ben", "eve"]


def test_a_pair_is_the_same_whichever_use_comes_first(tmp_path: Path) -> None:
    header = "identifier1\tidentifier2\tannotator\tjudgment\tcomment\tlemma\n"
    (tmp_path / "judgments.csv").write_text(
        f"{header}a\tb\tana\t4\t\tbank\nb\ta\tben\t3\t\tbank\n", encoding="utf-8"
    )
    assert list(read_judgments([tmp_path]).values.values()) == [{"ana": 4, "ben": 3}]


USES = """lemma\tpos\tdate\tgrouping\tidentifier\tdescription\tcontext\tindexes_target_token\t\
indexes_target_sentence\tcontext_pos
plane_nn\tnn1\t1850\t1\ta.txt-1-4\t \tThe "plane of the table.\t5:10\t0:24\tx
plane_nn\tnn1\t1990\t2\tb.txt-2-1\t \tA plane flew by.\t2:7\t0:16\tx
plane_nn\tnn1\t1991\t2\tc.txt-3-1\t \tTheir plane was late.\t6:11\t0:21\tx
"""
DUREL = """identifier1\tidentifier2\tannotator\tjudgment\tcomment\tlemma\tround
a.txt-1-4\tb.txt-2-1\tannotator0\t1\t"so\tplane_nn\t1
b.txt-2-1\ta.txt-1-4\tannotator1\t2.0\t\tplane_nn\t1
b.txt-2-1\tc.txt-3-1\tannotator0\t4\t\tplane_nn\t1
b.txt-2-1\tc.txt-3-1\tannotator1\t4\t\tplane_nn\t2
a.txt-1-4\tc.txt-3-1\tannotator0\t0\t\tplane_nn\t2
a.txt-1-4\tc.txt-3-1\tannotator1\t1\t\tplane_nn\t2
b.txt-2-1\tc.txt-3-1\tannotator0\t4\t\tplane_nn\t3
a.txt-1-4\tb.txt-2-1\tannotator0\t2\t\tplane_nn\t3
"""
"""In the columns of a DWUG, with a quotation mark that is one, and pairs judged twice."""


def write_durel(folder: Path) -> Path:
    (folder / "plane_nn").mkdir()
    (folder / "plane_nn" / "uses.csv").write_text(USES, encoding="utf-8")
    (folder / "plane_nn" / "judgments.csv").write_text(DUREL, encoding="utf-8")
    return folder / "plane_nn"


def test_durels_files_are_read_with_the_sentences_of_their_uses(tmp_path: Path) -> None:
    found = read_judgments([write_durel(tmp_path)])
    one = Key("plane_nn", "a.txt-1-4", "b.txt-2-1")
    two = Key("plane_nn", "b.txt-2-1", "c.txt-3-1")
    assert found.items[one].sentences == ('The "*plane* of the table.', "A *plane* flew by.")
    assert found.values[two] == {"annotator0": 4, "annotator1": 4}
    assert found.num_undecided == 1
    # As DURel does: the median of what one person said, if it is on the scale.
    assert found.values[one] == {"annotator1": 2}
    assert "one of 2 that differ" in str(found.rejected[0])


def test_durels_judgments_are_written_as_they_were_read(tmp_path: Path) -> None:
    read = read_judgments([write_durel(tmp_path)])
    out = tmp_path / "again.judgments.tsv"
    write_judgments(measure_agreement(read), out)
    again = read_judgments([out])
    assert again.values == read.values
    header, first, *_ = out.read_text(encoding="utf-8").splitlines()
    assert header == "identifier1\tidentifier2\tannotator\tjudgment\tcomment\tlemma"
    assert first == "a.txt-1-4\tb.txt-2-1\tannotator1\t2\t \tplane_nn"


def test_judged_pairs_are_written_for_the_comparison_of_two_uses(tmp_path: Path) -> None:
    fill_in(tmp_path / "ana.csv", PAIRS, ["4", "1", "3", "2", "1", "4"])
    fill_in(tmp_path / "ben.csv", PAIRS, ["4", "2", "2", "2", "4", ""])
    agreement = measure_agreement(read_judgments([tmp_path]))
    out = tmp_path / "pairs.csv"
    write_judgments(agreement, out)
    pairs, num_unread = read_pairs(out)
    assert {(pair.first, pair.is_same) for pair in pairs} == {
        ("The *bank* 0.", True), ("The *bank* 1.", False), ("The *bank* 3.", False),
        ("The *bank* 5.", True),
    }  # fmt: skip
    assert num_unread == 2  # 3 and 2, 1 and 4: neither the same nor not
    assert agreement.most_disputed[0] == PAIRS[4].key


def test_lines_get_what_most_say(tmp_path: Path) -> None:
    fill_in(tmp_path / "ana.csv", LINES, ["shore", "shore", "institution", "?", ""])
    fill_in(tmp_path / "ben.csv", LINES, ["Shore", "institution", "institution", "shore", "purse"])
    fill_in(tmp_path / "eve.csv", LINES, ["shore", "", "shore", "", ""])
    found = read_judgments([tmp_path])
    assert [found.label(item.key) for item in LINES[:4]] == ["shore", None, "institution", "shore"]
    assert str(found.rejected[0]) == (
        "ben.csv, row 6, sense: 'purse' is not a sense of its list, or ?."
    )
    assert measure_agreement(found).relatedness is None


def test_a_mean_is_of_pairs_that_were_drawn_at_random(tmp_path: Path) -> None:
    chosen = [Item(item.key, item.sentences, "chosen") for item in PAIRS[3:]]
    fill_in(tmp_path / "one.csv", PAIRS[:3], ["4", "4", "1"], annotator="ana")
    fill_in(tmp_path / "two.csv", chosen, ["1", "1", "1"], annotator="ana")
    found = measure_agreement(read_judgments([tmp_path])).relatedness
    assert found is not None
    assert (found.value, found.num_items) == (3.0, 3)


def test_each_two_annotators_are_compared_where_both_judged(tmp_path: Path) -> None:
    fill_in(tmp_path / "ana.csv", PAIRS, ["1", "2", "3", "4", "", ""])
    fill_in(tmp_path / "ben.csv", PAIRS, ["1", "2", "3", "4", "4", ""])
    fill_in(tmp_path / "eve.csv", PAIRS, ["", "", "4", "1", "4", "1"])
    found = {
        (two.first, two.second): two for two in measure_agreement(read_judgments([tmp_path])).pairs
    }
    assert found["ana", "ben"][2:] == (4, 1.0, 1.0)
    assert found["ben", "eve"].num_items == 3
    assert found["ana", "eve"].alpha < 0


def test_an_item_whose_name_a_spreadsheet_changed_is_set_aside(tmp_path: Path) -> None:
    path = fill_in(tmp_path / "ana.csv", PAIRS, ["1"] * 6)
    path.write_text(path.read_text(encoding="utf-8").replace("d-2", "2. Dec", 1), encoding="utf-8")
    found = read_judgments([path])
    assert len(found.values) == 5
    assert "row 4" in str(found.rejected[0])
    assert "identifier1 or identifier2 was changed" in str(found.rejected[0])


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("a,b\n1,2\n", "has no judgments"),
        ("\xff\xfe", "cannot be read"),
        ("identifier1\tidentifier2\tannotator\tjudgment\n", "no judgment yet"),
    ],
)
def test_what_is_no_sheet_is_told(content: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(InputError, match=told):
        measure_agreement(read_judgments([path]))


def test_pairs_and_lines_are_not_mixed(tmp_path: Path) -> None:
    fill_in(tmp_path / "pairs.csv", PAIRS, ["1"] * 6)
    fill_in(tmp_path / "lines.csv", LINES, ["shore"] * 5)
    with pytest.raises(ConfigError, match="read them one by one"):
        read_judgments([tmp_path])


def test_a_folder_without_judgments_is_told(tmp_path: Path) -> None:
    (tmp_path / "other.csv").write_text("a,b\n", encoding="utf-8")
    with pytest.raises(InputError, match="No judgments in"):
        read_judgments([tmp_path])


def test_hundreds_of_senses_are_refused() -> None:
    keys = [Key("bank", str(n), "0") for n in range(60)]
    values = {key: {"ana": f"sense {key.first}", "ben": "one"} for key in keys}
    items = {key: Item(key, ()) for key in keys}
    judgments = Judgments("lines", items, values, ("ana", "ben"))
    with pytest.raises(InputError, match="61 different values"):
        measure_agreement(judgments)

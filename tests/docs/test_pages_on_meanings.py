"""Pages on senses of your own, on judging, periods and indexes, run from top to bottom on a corpus
of uses of *bank*. What people fill in there, a test does by the words that stand beside *bank*.
"""

import csv
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from command_line import polyseme
from explorer.making import make_corpus_of
from meanings.test_named_groups import PEOPLE, bank_uses
from pages import FENCE, commands_in
from required import need, need_package

import polyseme as package

ROOT = Path(__file__).parents[2]
MODELS = ROOT / "models"
PAGES = [
    "how-to/label-your-own-senses.md",
    "how-to/judge-together.md",
    "how-to/compare-two-periods.md",
    "how-to/index-a-corpus.md",
    "tutorials/read-a-word-by-its-meanings.md",
]
BLOOD = (
    "gave blood to the bank and met another donor .",
    "brought the blood from the bank to the sick donor .",
    "asked the donor at the bank for more blood .",
)
SENSES = {"blood": "blood bank", "river": "shore", "stream": "shore", "lake": "shore"}
AS_HERE = {
    "models/en-base": "models/en-mini",
    "corpus/novels": "corpus/en",
    "corpus/eltec": "corpus/en",
    "change train": "change bank",
    "*play*": "*bank*",
    "play.csv": "bank.csv",
    '"play"': '"bank"',
    "senses play": "senses bank",
    "plays,played,playing": "banks",
    "polyseme index corpus/en": "polyseme index corpus/en --words bank --workers 1 --replace",
    "year<1860": "year<1900",
    " < 1860": " < 1900",
    "--epochs 0.5": "--steps 1",
    "--min-uses 150": "--min-uses 40",
}
"""What a page has that the corpus here has not."""


def sense_of(text: str) -> str:
    return next((sense for word, sense in SENSES.items() if word in text), "institution")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """126 uses: of rivers in 1850 by some authors, of money and blood in 1950 by others."""
    uses, is_river = bank_uses()
    texts = [" ".join(words) for words in uses.sentences()]
    texts += [f"{person} {text}" for person in PEOPLE for text in BLOOD for _ in range(2)]
    rows: list[dict[str, Any]] = []
    for number, text in enumerate(texts):
        is_old = number < len(is_river) and is_river[number]
        year, author = (1850, "Old") if is_old else (1950, "New")
        rows.append({"text": text, "year": year + number % 5, "author": f"{author} {number % 9}"})
    folder = tmp_path_factory.mktemp("meanings")
    return make_corpus_of(folder, rows, meta=("year", "author")).folder


@pytest.fixture
def folder(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    need((MODELS / "en-mini").is_dir(), "models/en-mini")
    need_package("anywidget")  # the map of a notebook
    monkeypatch.chdir(tmp_path)
    Path("corpus").mkdir()
    shutil.copytree(corpus, "corpus/en")
    shutil.copytree(MODELS / "en-mini", "models/en-mini")
    pairs = [
        '{"sentence1": "Mary sat on the *bank* of the river.", '
        f'"sentence2": "{each} the *bank*.", "label": {label}}}'
        for each, label in (("Ben swam to", "true"), ("Ben has an account at", "false"))
    ]
    Path("wic.jsonl").write_text("\n".join(10 * pairs) + "\n", encoding="utf-8")
    return tmp_path


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def fill_in() -> None:
    """What annotators do with the tables that are there."""
    for path in Path().rglob("*.csv"):
        rows = rows_of(path)
        for row in rows:
            if path.name == "mine.csv":
                row["label"] = sense_of(" ".join(row.values()))
            elif "sentence1" in row:
                is_same = sense_of(row["sentence1"]) == sense_of(row["sentence2"])
                row["judgment"] = "4" if is_same else "1"
            elif "senses" in row:
                sense = sense_of(row["sentence"])
                row["sense"] = sense if sense in row["senses"] else "?"
        is_sheet = {"judgment", "sense"} & {*rows[0]} and "annotator" in rows[0] if rows else False
        if is_sheet or path.name == "mine.csv":
            with path.open("w", encoding="utf-8", newline="") as file:
                writer = csv.DictWriter(file, list(rows[0]))
                writer.writeheader()
                writer.writerows(rows)


def bring_durel() -> None:
    """The files of the page on judging that come from elsewhere, from what was judged here."""
    polyseme("agreement", "round1", "--out", "durel.judgments.tsv")
    Path("dwug_en/data/plane_nn").mkdir(parents=True)
    for folder in (Path(), Path("dwug_en/data/plane_nn")):
        shutil.copy("durel.judgments.tsv", folder / "judgments.csv")
        shutil.copy("round1/bank.uses.tsv", folder / "uses.csv")


def headings(text: str) -> set[str]:
    """Heads of tables, and what stands before a figure: what a changed layout would change."""
    heads = re.findall(r"^┃.*┃$", text, re.MULTILINE)
    names = re.findall(r"^([A-Z]\w[\w ]*?|[a-z]\w*)  +[\d.]+ ", text, re.MULTILINE)
    return {" ".join(each.split()) for each in [*heads, *names]}


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.usefixtures("folder")
def test_the_page_runs_as_it_stands(name: str) -> None:
    page = (ROOT / "docs" / name).read_text(encoding="utf-8")
    for old, new in AS_HERE.items():
        page = page.replace(old, new)
    names: dict[str, Any] = {"polyseme": package}
    printed = ""
    for kind, code in FENCE.findall(page):
        match kind:
            case "sh":
                for words in commands_in(code):
                    if words[:2] == ["agreement", "judgments.csv"]:
                        bring_durel()
                    printed += polyseme(*words).stdout
                    fill_in()
            case "python":
                shutil.rmtree("round1", ignore_errors=True)  # sheets are never overwritten
                for part in code.split("\n\n"):
                    exec(compile(part, name, "exec"), names)
                    fill_in()
            case "text":
                assert headings(code) <= headings(printed)


def test_tables_of_the_chinese_page_have_the_heads_of_the_other() -> None:
    page, other = (
        headings((ROOT / "docs" / folder / "read-a-word-by-its-meanings.md").read_text("utf-8"))
        for folder in ("zh", "tutorials")
    )
    assert page
    assert page <= other

"""Real sets, read whole: their counts are those their makers and the shared tasks give."""

import io
import shutil
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from required import need

from polyseme.tasks.families.classification import Classified, Paired
from polyseme.tasks.families.coreference import Document
from polyseme.tasks.families.tagging import Tagged
from polyseme.tasks.readers import Loaded, load_examples, read_examples
from polyseme.tasks.spans import Scheme, convert, find_spans
from polyseme.tasks.texts import ExampleStats
from tasks.readers.making import reader
from tasks.rules import is_allowed

ARCHIVES = Path(__file__).parents[4] / "shared" / "data" / "tasks"


class Case(NamedTuple):
    """A file of a set, how it is read, and how many rows, rejected ones, and words it has."""

    archive: str
    file: str
    config: dict[str, Any]
    rows: int
    rejected: int = 0
    words: int | None = None
    examples: int | None = None
    spans: int | None = None
    scheme: Scheme | None = None
    """That of its labels, if they mark spans."""
    broken: int = 0
    """Sentences that break it: slips of the sets themselves, found by a regular expression."""


NER = {"kind": "columns"}
WEIBO = {"kind": "columns", "numbered": True}
PROPBANK = {"kind": "propbank"}
CONLLU = {"kind": "conllu"}
TREES = {"kind": "trees"}
LABELLED = {"kind": "labelled"}
LATIN = {"kind": "labelled", "encoding": "latin-1"}
SNLI = {"kind": "table", "text": "premise", "second": "hypothesis", "quoted": True}
GLUE = {"kind": "table", "text": "sentence1", "second": "sentence2", "quoted": True}
SICK = {"kind": "table", "text": "sentence_A", "second": "sentence_B", "format": "tsv"}
SICK["label"] = "entailment_judgment"
AFQMC: dict[str, Any] = {"kind": "table", "text": "1", "second": "2", "label": "3", "format": "tsv"}
AFQMC["header"] = False
CHNSENTI = {"kind": "table", "text": "1", "label": "2", "header": False}
OCNLI = {"kind": "table", "text": "sentence1", "second": "sentence2"}
SQUAD = {"kind": "squad"}

CASES = [
    # Spans: Tjong Kim Sang and De Meulder (2003), table 2.
    Case("conll2003-ner", "eng.train", NER, 14_041, words=203_621, scheme="iob1",
         spans=7_140 + 3_438 + 6_321 + 6_600, broken=2),
    Case("conll2003-ner", "eng.testa", NER, 3_250, words=51_362, spans=1_837 + 922 + 1_341 + 1_842,
         scheme="iob1"),
    Case("conll2003-ner", "eng.testb", NER, 3_453, words=46_435, spans=1_668 + 702 + 1_661 + 1_617,
         scheme="iob1"),
    Case("wnut17", "wnut17train.conll", NER, 3_394, words=62_730),
    Case("wnut17", "emerging.dev.conll", NER, 1_009, words=15_733),
    Case("wnut17", "emerging.test.annotated", NER, 1_287, words=23_394),
    # As conlleval reports for the shared task's test set.
    Case("conll2000-chunking", "test.txt", NER, 2_012, words=47_377, spans=23_852, scheme="bio"),
    Case("zh-ner-resume", "train.char.bmes", NER, 3_821, scheme="bmes", broken=4),
    Case("zh-ner-resume", "test.char.bmes", NER, 477),
    Case("zh-ner-weibo", "weiboNER_2nd_conll.train", WEIBO, 1_350, words=73_778),
    Case("zh-ner-weibo", "weiboNER_2nd_conll.test", WEIBO, 270, words=14_842),
    # 104,372 words: the second bakeoff's own count of this test set.
    Case("zh-ner-weibo", "pku_test_gold.utf8", {"kind": "segmented"}, 1_944, spans=104_372,
         scheme="bmes"),
    Case("zh-ner-peoples-daily", "example.dev", NER, 2_318, scheme="bio"),
    Case("ewt-propbank-srl", "ewt-srl.dev.conll", PROPBANK, 1_965, 434, examples=4_963),
    Case("ewt-propbank-srl", "ewt-srl.test.conll", PROPBANK, 2_056, 521, examples=4_795),
    Case("ud-english-ewt", "en_ewt-ud-dev.conllu", CONLLU, 2_001, words=25_147),
    Case("ud-english-ewt", "en_ewt-ud-test.conllu", CONLLU, 2_077, words=25_094),
    Case("ud-chinese-gsdsimp", "zh_gsdsimp-ud-dev.conllu", CONLLU, 500, words=12_663),
    Case("ud-chinese-gsdsimp", "zh_gsdsimp-ud-test.conllu", CONLLU, 500, words=12_012),
    Case("sst", "trees/dev.txt", TREES, 1_101),
    Case("sst", "trees/test.txt", TREES, 2_210),
    Case("sst", "TREC.train.all", LATIN, 5_452),
    Case("sst", "TREC.test.all", LABELLED, 500),
    Case("sst", "rt-polarity.all", LATIN, 10_662),
    Case("sst", "subj.all", LATIN, 10_000),
    Case("sst", "custrev.all", LABELLED, 3_775, 4),  # four lines have a label and nothing else
    Case("pairs-en", "snli/validation.tsv", SNLI, 9_842),
    Case("pairs-en", "snli/test.tsv", SNLI, 9_824),
    Case("pairs-en", "rte/train.tsv", GLUE, 2_490),
    Case("pairs-en", "mrpc/test.tsv", GLUE, 1_725),
    Case("pairs-en", "wic/train.tsv", GLUE, 5_428),
    Case("sick2014", "SICK_train.txt", SICK, 4_500),
    Case("sick2014", "SICK_trial.txt", SICK, 500),
    Case("sick2014", "SICK_test_annotated.txt", SICK, 4_927),
    Case("zh-sentiment-pairs", "AFQMC/dev.txt", AFQMC, 4_316),
    Case("zh-sentiment-pairs", "ChnSentiCorp/dev.tsv", CHNSENTI, 1_200),
    Case("zh-ocnli", "dev.json", OCNLI, 3_000, 50),
    Case("xquad-en-zh", "xquad.en.json", SQUAD, 1_190),
    Case("xquad-en-zh", "xquad.zh.json", SQUAD, 1_190),
    Case("zh-cmrc2018", "cmrc2018_dev.json", SQUAD, 3_219),
    Case("zh-cmrc2018", "cmrc2018_trial.json", SQUAD, 1_002, 2),  # two questions are empty
    Case("zh-drcd", "DRCD_dev.json", SQUAD, 3_524),
    Case("zh-drcd", "DRCD_test.json", SQUAD, 3_493),
]  # fmt: skip


class Shelf:
    """Sets unpacked into a folder of the test's, each once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def files(self, archive: str) -> Path:
        """The folder of a set, unpacked if it was not yet."""
        source = ARCHIVES / f"{archive}.tar.xz"
        need(source.is_file(), f"the set {archive} (looked in {ARCHIVES})")
        folder = self.folder / archive
        if not folder.exists():
            with tarfile.open(source) as tar:
                tar.extractall(folder, filter="data")
            for packed in folder.rglob("*.zip"):
                zipfile.ZipFile(io.BytesIO(packed.read_bytes())).extractall(folder)
        return folder

    def load(self, archive: str, file: str, config: dict[str, Any]) -> Loaded:
        """The examples of one file of a set."""
        (path,) = [path for path in self.files(archive).rglob("*") if path.match(file)]
        return load_examples(path, reader(**config))


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shelf]:
    folder = tmp_path_factory.mktemp("sets")
    yield Shelf(folder)
    shutil.rmtree(folder)  # pytest would keep it, and it is large


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.archive}/{case.file}")
def test_every_row_of_a_real_set_is_read_or_accounted_for(shelf: Shelf, case: Case) -> None:
    examples, stats = shelf.load(case.archive, case.file, case.config)
    assert stats.read == case.rows
    assert stats.rejected == case.rejected
    num_examples = case.rows - case.rejected if case.examples is None else case.examples
    assert stats.examples == len(examples) == num_examples
    if case.words is not None:
        assert sum(len(e.words) for e in examples if isinstance(e, Tagged)) == case.words
    if case.scheme is not None:
        check_spans(case, [e.labels for e in examples if isinstance(e, Tagged)])


def check_spans(case: Case, labels_of_examples: list[tuple[str, ...]]) -> None:
    """As many as published, in every scheme."""
    found = broken = 0
    for labels in labels_of_examples:
        spans = find_spans(labels)
        bioes = convert(labels, "bioes")
        assert find_spans(bioes) == spans
        found += len(spans)
        if is_allowed(labels, case.scheme or "bio"):
            assert convert(bioes, case.scheme or "bio") == list(labels)
        else:
            broken += 1
    assert found == case.spans or case.spans is None
    assert broken == case.broken


def test_the_place_of_a_predicate_is_that_of_its_v(shelf: Shelf) -> None:
    """But for compounds such as code-named, whose V is longer than the word that names them."""
    examples = shelf.load("ewt-propbank-srl", "ewt-srl.dev.conll", PROPBANK).examples
    at_place = 0
    for example in examples:
        assert isinstance(example, Tagged)
        assert example.target_index is not None
        assert is_allowed(example.labels, "bio")
        at_place += example.labels[example.target_index] == "B-V"
    assert at_place > 0.999 * len(examples)


@pytest.mark.parametrize(("part", "uses"), [("train", 23_370), ("test", 10_196)])
def test_all_uses_of_the_twenty_words_are_read(shelf: Shelf, part: str, uses: int) -> None:
    stats = ExampleStats()
    for path in shelf.files("coarsewsd20").rglob(f"CoarseWSD-20/*/{part}.data.txt"):
        word = path.parent.name
        for example in read_examples(path, reader("senses"), stats):
            assert isinstance(example, Classified)
            assert example.label.startswith(f"{word}_")
    assert (stats.read, stats.rejected) == (uses, 0)


def test_novels_have_as_many_words_and_mentions_as_published(shelf: Shelf) -> None:
    """Bamman, Lewke and Mansoor (2020): 100 texts, 210,532 words, 29,103 mentions."""
    stats = ExampleStats()
    num_words = num_mentions = 0
    for path in shelf.files("litbank-coref").rglob("coref/conll/*.conll"):
        for example in read_examples(path, reader("coreference"), stats):
            assert isinstance(example, Document)
            num_words += sum(map(len, example.sentences))
            num_mentions += sum(map(len, example.clusters))
    assert (stats.read, stats.rejected) == (100, 0)
    assert (num_words, num_mentions) == (210_532, 29_103)


def test_labels_of_trees_and_of_flat_files_agree(shelf: Shelf) -> None:
    trees = shelf.load("sst", "trees/test.txt", TREES).examples
    flat = shelf.load("sst", "stsa.fine.test", LABELLED).examples
    labels = [sorted(e.label for e in one if isinstance(e, Classified)) for one in (trees, flat)]
    assert labels[0] == labels[1]


def test_pairs_are_running_text(shelf: Shelf) -> None:
    first = shelf.load("pairs-en", "snli/test.tsv", SNLI).examples[0]
    assert isinstance(first, Paired)
    assert first.second == "The church has cracks in the ceiling."

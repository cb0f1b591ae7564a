"""The labelled data that gains are measured on: where its files lie, how they are read, by what.

Where the labels of a test set are not public, the development set is measured on at the end, and
every tenth training example decides when to stop. Where there is one file only, every fifth of its
articles or lines is measured on, and the rest learned from. Settings are the same for static and
frozen.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

NUM_FOLDS = 5
"""Parts of a set that has one file only."""


@dataclass(frozen=True)
class LabelledSet:
    """One task."""

    archive: str
    train: str
    test: str
    reader: dict[str, Any]
    network: dict[str, Any]
    dev: str | None = None
    language: Literal["english", "chinese"] = "english"
    training: dict[str, Any] = field(default_factory=dict)
    mix: dict[str, Any] = field(default_factory=dict)
    """How the model's layers become one vector."""
    labels_characters: bool = False
    """Whether labels stand at characters."""
    is_split: bool = False
    """Whether `train` is the one file there is: some of it is taken for `test`."""
    documents: str | None = None
    """Where every document is a file of its own: which files, to be joined into those above."""


_TAGS = {"kind": "tagging", "context": {"dim": 256, "dropout": 0.4}}
_TEXTS = {"kind": "classification", "context": {"dim": 256, "dropout": 0.5}}
_PAIRS = {"kind": "pairs", "context": {"dim": 256, "dropout": 0.4}}
_ANSWERS = {"kind": "question_answering", "context": {"dim": 128, "dropout": 0.2}}
# By words, which takes half the time: the words around the gold answers of CMRC 2018 and DRCD have
# an F1 of 99.4 and 97.8 with them, by characters. A window holds the longest passage.
_CHINESE_ANSWERS = {**_ANSWERS, "unit": "characters", "window": 640}
_SQUAD = {"kind": "squad"}
# The model's numbers are a third as large as those of static vectors beside them; made as large,
# the network learns from them sooner. Chosen on development data of XQuAD.
_NORMALIZED = {"layer_norm": True}
_COLUMNS = {"kind": "columns"}
_TABLE = {"kind": "table"}

TASKS: dict[str, LabelledSet] = {
    "conll2003": LabelledSet(
        "conll2003-ner", "eng.train", "eng.testb", _COLUMNS, _TAGS, dev="eng.testa"
    ),
    "sst": LabelledSet(
        "sst", "trees/train.txt", "trees/test.txt", {"kind": "trees"}, _TEXTS, dev="trees/dev.txt"
    ),
    "srl": LabelledSet(
        "ewt-propbank-srl",
        "ewt-srl.train.conll",
        "ewt-srl.test.conll",
        {"kind": "propbank"},
        {
            "kind": "tagging",
            "has_target": True,
            "ignore_labels": ["V"],
            "context": {"num_layers": 2, "dim": 256, "dropout": 0.3},
        },
        dev="ewt-srl.dev.conll",
        training={"epochs": 6, "batch": 64},
    ),
    "snli": LabelledSet(
        "pairs-en",
        "snli/validation.tsv",
        "snli/test.tsv",
        {**_TABLE, "text": "premise", "second": "hypothesis", "quoted": True},
        _PAIRS,
    ),
    "pos": LabelledSet(
        "ud-english-ewt",
        "en_ewt-ud-train.conllu",
        "en_ewt-ud-test.conllu",
        {"kind": "conllu"},
        {**_TAGS, "scheme": "none"},
        dev="en_ewt-ud-dev.conllu",
    ),
    "chunking": LabelledSet("conll2000-chunking", "train.txt", "test.txt", _COLUMNS, _TAGS),
    "wnut17": LabelledSet(
        "wnut17",
        "wnut17train.conll",
        "emerging.test.annotated",
        _COLUMNS,
        _TAGS,
        dev="emerging.dev.conll",
    ),
    "coreference": LabelledSet(
        "litbank-coref",
        "train.conll",
        "test.conll",
        {"kind": "coreference"},
        {"kind": "coreference", "context": {"dim": 256, "dropout": 0.4}},
        dev="dev.conll",
        training={"batch": 1, "epochs": 12, "patience": 4},
        documents="coref/conll/*.conll",
    ),
    "next_sentence": LabelledSet(
        "eltec-next-sentence",
        "train.jsonl",
        "test.jsonl",
        {"kind": "choices"},
        {"kind": "choice", "context": {"dim": 128, "dropout": 0.3}},
        dev="dev.jsonl",
        training={"epochs": 8},
    ),
    "weibo": LabelledSet(
        "zh-ner-weibo",
        "weiboNER_2nd_conll.train",
        "weiboNER_2nd_conll.test",
        {**_COLUMNS, "numbered": True},
        {**_TAGS, "scheme": "bmes"},
        dev="weiboNER_2nd_conll.dev",
        language="chinese",
        training={"epochs": 25},
        labels_characters=True,
    ),
    "resume": LabelledSet(
        "zh-ner-resume",
        "train.char.bmes",
        "test.char.bmes",
        _COLUMNS,
        {**_TAGS, "scheme": "bmes"},
        dev="dev.char.bmes",
        language="chinese",
        labels_characters=True,
    ),
    "chnsenticorp": LabelledSet(
        "zh-sentiment-pairs",
        "ChnSentiCorp/train.tsv",
        "ChnSentiCorp/dev.tsv",
        {**_TABLE, "text": "1", "label": "2", "header": False},
        _TEXTS,
        language="chinese",
        training={"epochs": 6},
    ),
    "classical": LabelledSet(
        "zh-classical-to-modern",
        "train.tsv",
        "test.tsv",
        {**_TABLE, "text": "classical", "target": "modern", "by_character": True},
        {"kind": "seq2seq", "context": {"dim": 256, "dropout": 0.3}, "vocabulary": 6_000},
        dev="dev.tsv",
        language="chinese",
        training={"epochs": 6, "batch": 64},
        labels_characters=True,
    ),
    "ocnli": LabelledSet(
        "zh-ocnli",
        "train.10k.json",
        "dev.json",
        {**_TABLE, "text": "sentence1", "second": "sentence2"},
        _PAIRS,
        language="chinese",
    ),
    "pku": LabelledSet(
        "zh-ner-weibo",
        "pku_test_gold.utf8",
        "pku.test.txt",
        {"kind": "segmented"},
        {**_TAGS, "scheme": "bmes"},
        language="chinese",
        training={"epochs": 8},
        labels_characters=True,
        is_split=True,
    ),
    "xquad": LabelledSet(
        "xquad-en-zh",
        "xquad.en.json",
        "xquad.test.json",
        _SQUAD,
        _ANSWERS,
        training={"epochs": 20, "batch": 16, "learning_rate": 2e-3},
        mix=_NORMALIZED,
        is_split=True,
    ),
    "drcd": LabelledSet(
        "zh-drcd",
        "DRCD_dev.json",
        "DRCD_test.json",
        _SQUAD,
        _CHINESE_ANSWERS,
        language="chinese",
        training={"epochs": 10, "batch": 16, "learning_rate": 2e-3},
        mix=_NORMALIZED,
    ),
    "cmrc2018": LabelledSet(
        "zh-cmrc2018",
        "cmrc2018_dev.json",
        "cmrc2018_trial.json",
        _SQUAD,
        _CHINESE_ANSWERS,
        language="chinese",
        training={"epochs": 10, "batch": 16, "learning_rate": 2e-3},
        mix=_NORMALIZED,
    ),
}


def settings_of(
    task: LabelledSet, data: Path, models: dict[str, Path], *, cache: Path, fold: int = 0
) -> dict[str, Any]:
    """The settings of a task, static vectors and model both named, as `TaskConfig` takes them.

    `fold`: which fifth is measured on, where a task has one file only.
    """
    model, static = models[task.language], models[f"static_{task.language}"]
    # All but rare words, so that words of the test data that training has not seen have vectors.
    vectors: dict[str, Any] = {"extra_words": 100_000}
    vectors |= (
        {"kind": "file", "path": static} if static.is_file() else {"kind": "model", "model": static}
    )
    words: dict[str, Any] = {"vectors": vectors, "dropout": 0.3}
    if task.network["kind"] in ("tagging", "coreference") and not task.labels_characters:
        words["characters"] = {}
    embeddings: dict[str, Any] = {
        "words": words,
        "model": {"kind": "frozen", "model": model, "cache": {"folder": cache}},
        "mix": {"dropout": 0.4, **task.mix},
    }
    if task.labels_characters:
        embeddings["character_labels"] = {"tokenizer_from": model}
    if task.is_split:
        folder = cache.parent / "data" / f"fold-{fold}"
        files = split_file(_find(data, task.train), folder, task.test, fold=fold)
    else:
        files = {name: _find(data, file) for name, file in _files(task).items()}
    return {
        "data": {**files, "reader": task.reader, "tokenizer_from": model},
        "embeddings": embeddings,
        "network": task.network,
        "training": {"learning_rate": 1e-3, **task.training},
    }


def split_file(source: Path, folder: Path, test: str, *, fold: int) -> dict[str, Path]:
    """The files of a set that has one only: every fifth article, or line, for testing, beginning
    with the one that `fold` numbers."""
    files = {"train": folder / source.name, "test": folder / test}
    folder.mkdir(parents=True, exist_ok=True)
    text = source.read_text(encoding="utf-8")
    articles = json.loads(text)["data"] if source.suffix == ".json" else None
    units: list[Any] = text.splitlines(keepends=True) if articles is None else articles
    for name, file in files.items():
        is_test = name == "test"
        own = [each for at, each in enumerate(units) if (at % NUM_FOLDS == fold) == is_test]
        content = "".join(own) if articles is None else json.dumps({"data": own})
        file.write_text(content, encoding="utf-8")
    return files


def join_documents(task: LabelledSet, data: Path, out: Path) -> Path:
    """The folder of files for training, development and test, 8 : 1 : 1 by the documents' names in
    their order; the same whenever it is called."""
    assert task.documents is not None
    assert task.dev is not None
    parts: dict[str, list[str]] = {task.test: [], task.dev: [], task.train: []}
    for number, path in enumerate(sorted(data.rglob(task.documents))):
        part = (task.test, task.dev)[number % 10] if number % 10 < 2 else task.train
        parts[part].append(path.read_text(encoding="utf-8"))
    out.mkdir(parents=True, exist_ok=True)
    for name, texts in parts.items():
        (out / name).write_text("".join(texts), encoding="utf-8")
    return out


def _files(task: LabelledSet) -> dict[str, str]:
    named = {"train": task.train, "dev": task.dev, "test": task.test}
    return {name: file for name, file in named.items() if file is not None}


def _find(data: Path, file: str) -> Path:
    [found] = [path for path in data.rglob(Path(file).name) if path.as_posix().endswith(file)]
    return found

"""Polyseme: your texts in, every word's meanings out.

    embedder = polyseme.load("models/en-mini")
    for sentence in embedder.embed("She plays the piano. It rains."):
        print(sentence.words, sentence.vectors.shape)

Importing this package loads nothing but this file. Its functions do what the commands of the same
names do, with the same settings, and import what they need when they are called.
"""

import sys
from typing import TYPE_CHECKING, Any, Literal, TypeVar

if sys.version_info < (3, 11):  # noqa: UP036  # so this file has to be readable for older Pythons
    _told = "Polyseme needs Python 3.11 or later; this is %d.%d." % sys.version_info[:2]  # noqa: UP031
    _name = (sys.argv or [""])[0].replace("\\", "/").split("/")[-1]
    # The command ends with a sentence; a program that imports the package may want to go on.
    raise SystemExit(_told) if _name == "-m" or _name.startswith("polyseme") else ImportError(_told)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from os import PathLike

    from polyseme.commands.index import IndexResult
    from polyseme.commands.prepare import PrepareResult
    from polyseme.commands.train import TrainResult
    from polyseme.config import AnySettings
    from polyseme.embedding.word_embedder import WordEmbedder
    from polyseme.meanings.change.periods import SensesOverTime
    from polyseme.meanings.change.sides import WordChange
    from polyseme.meanings.change.vocabulary import VocabularyChange
    from polyseme.meanings.concordance.uses import Uses
    from polyseme.meanings.groups.senses import Senses
    from polyseme.meanings.judging import Material
    from polyseme.meanings.judgments import Agreement
    from polyseme.meanings.labels import LabelledUses
    from polyseme.meanings.nearest import Nearest
    from polyseme.meanings.same import SameMeaning
    from polyseme.meanings.substitutes import Substitutes
    from polyseme.meanings.wordlists.ngrams import NgramList
    from polyseme.meanings.wordlists.word_list import WordList
    from polyseme.pretraining.evaluation import Score
    from polyseme.pretraining.generation import GeneratedText
    from polyseme.pretraining.run import PretrainResult
    from polyseme.tasks.task import Task
    from polyseme.text.corpus import Corpus

    Folder = str | PathLike[str]

_Result = TypeVar("_Result")

__version__ = "0.2.0"
__all__ = [
    "Corpus", "Task", "__version__", "agreement", "change", "collocates", "generate", "index",
    "judge", "keywords", "label", "load", "nearest", "ngrams", "prepare", "pretrain", "query",
    "same", "score", "senses", "senses_over_time", "substitutes", "train", "uses",
    "vocabulary_change",
]  # fmt: skip


def load(
    model: "Folder",
    *,
    device: str | None = None,
    precision: Literal["float32", "bfloat16"] = "float32",
    threads: int | None = None,
    tokenizer_from: "str | PathLike[str] | None" = None,
    pooling: Literal["mean", "first"] = "mean",
    download: bool = False,
) -> "WordEmbedder":
    """The model in a folder, ready to embed words; hf:FOLDER for a Hugging Face encoder.

    Without `device`, a GPU is used if there is one. `precision="bfloat16"` is faster, and less
    exact in the third digit. `threads` is the number of CPU threads of torch, set for the whole
    process; by default, all.

    A Hugging Face encoder does not define how text is split into words: `tokenizer_from` does, a
    language code, or the folder of a model or a corpus. `pooling` makes one vector of a word's
    subword tokens. `download`: fetch the model if it is not here; nothing else uses the network.
    """
    from polyseme.errors import extra_needed_for

    with extra_needed_for("Embedding"):
        from polyseme.embedding.loading import load_embedder
    return load_embedder(
        model,
        device=device,
        precision=precision,
        threads=threads,
        tokenizer_from=tokenizer_from,
        pooling=pooling,
        download=download,
    )


def prepare(
    inputs: "Folder | Sequence[Folder]",
    out: "Folder",
    *,
    language: str,
    progress: bool = False,
    **settings: Any,
) -> "PrepareResult":
    """Turn texts into a corpus, `result.corpus`; an interrupted run is resumed.

    `inputs`: files, folders or globs. `settings` are those of `polyseme prepare`: `held_out=0.05`,
    `segmenter="whitespace"`, `workers=2`. With `progress`, bars are shown on standard error,
    and in a notebook below the cell.
    """
    from polyseme.commands.prepare import PrepareConfig, run

    many = inputs if isinstance(inputs, list | tuple) else [inputs]
    given = {"inputs": tuple(map(str, many)), "out": out, "language": language, **settings}
    return _call(run, PrepareConfig, given, progress=progress)


def pretrain(
    corpus: "Folder",
    out: "Folder",
    *,
    preset: str = "elmo-mini",
    progress: bool = False,
    **settings: Any,
) -> "PretrainResult | None":
    """Train a language model on a corpus, or resume an interrupted run.

    `settings` are those of `polyseme pretrain`: `hours=2`, `epochs=1`, `from_model="models/en"`,
    `model={"encoder": {...}}`. Of several processes (torchrun), only the first returns a result.
    """
    from polyseme.commands.pretrain import run
    from polyseme.pretraining import PretrainConfig

    given = {"corpus": corpus, "out": out, "preset": preset, **settings}
    return _call(run, PretrainConfig, given, progress=progress, purpose="Pretraining")


def score(
    texts: "str | Sequence[str]",
    *,
    model: "Folder | None" = None,
    ngram: "Folder | Corpus | None" = None,
    order: int = 3,
) -> "list[Score]":
    """How likely each sentence of these texts is by a model, word by word.

    `score.total` is the mean over directions of the natural log-probability; `score.parts` has
    each direction, word by word. With `ngram`, a corpus, `score.ngram` has the same by n-grams of
    its training part, of this order.
    """
    from pathlib import Path

    from polyseme.errors import extra_needed_for

    with extra_needed_for("Scoring"):
        from polyseme.config import build
        from polyseme.data.ngrams import NgramConfig
        from polyseme.pretraining.evaluation import score_texts
    many = [texts] if isinstance(texts, str) else texts
    counted = None if ngram is None else Path(ngram)
    ngrams = build(NgramConfig, {"order": order})
    return score_texts(Path(_chosen(model, many)), many, ngram=counted, ngrams=ngrams)


def generate(
    prompts: "str | Sequence[str]" = "",
    *,
    model: "Folder | None" = None,
    samples: int = 1,
    max_words: int = 50,
    temperature: float = 1.0,
    seed: int = 1,
    **settings: Any,
) -> "list[GeneratedText]":
    """Text generated from these prompts by a causal or bidirectional model.

    `settings` are the others of `polyseme generate`: `top_k=50`, `top_p=0.9`, `unknown=True`. All
    samples of the first prompt come first. `text.text` is the whole, `text.words` what was added.
    """
    from pathlib import Path

    from polyseme.config import build
    from polyseme.errors import extra_needed_for
    from polyseme.pretraining import GenerationConfig

    given = {"samples": samples, "max_words": max_words, "temperature": temperature, "seed": seed}
    config = build(GenerationConfig, {**given, **settings})
    with extra_needed_for("Generating text"):
        from polyseme.pretraining.generation import generate_from
    many = [prompts] if isinstance(prompts, str) else prompts
    return generate_from(Path(_chosen(model, many)), many, config)


def senses(
    corpus: "Folder",
    word: str | None = None,
    *,
    model: "Folder | None" = None,
    index: "Folder | None" = None,
    progress: bool = False,
    **settings: Any,
) -> "Senses":
    """The uses of a word in a corpus, in groups by meaning, with names and typical lines.

    `model` describes the uses now; `index`, made by `polyseme index`, knows them already.
    `settings` are those of `polyseme senses`: `forms=("plays", "played")`, `where="year<1860"`,
    `groups=4`, `finer=1`, `layer=2`, `edits="bank.jsonl"`. `senses.groups` has the groups,
    `senses.to_pandas()` every use.
    """
    from polyseme.commands.senses import SensesConfig, run

    given = {"word": word, "corpus": corpus, "model": model, "index": index, **settings}
    return _call(run, SensesConfig, given, progress=progress, purpose="Grouping uses").found


def change(
    corpus: "Folder",
    word: str | None = None,
    *,
    model: "Folder | None" = None,
    before: "str | Sequence[str]",
    after: "str | Sequence[str]",
    progress: bool = False,
    **settings: Any,
) -> "WordChange":
    """Whether a word changed between two sets of texts, and which of its meanings moved.

    `before` and `after` are conditions on metadata: "year<1860". `settings` are those of
    `polyseme change`: `forms=("trains",)`, `shuffle="uses"`, or `index="index/novels"` in the place
    of `model`.
    """
    from polyseme.commands.change import ChangeConfig, run
    from polyseme.meanings.change.sides import WordChange

    given = {"word": word, "corpus": corpus, "model": model, "before": before, "after": after}
    found = _call(
        run, ChangeConfig, given | settings, progress=progress, purpose="Grouping uses"
    ).found
    assert isinstance(found, WordChange)
    return found


def senses_over_time(
    corpus: "Folder",
    word: str | None = None,
    *,
    by: str,
    periods: int = 4,
    model: "Folder | None" = None,
    progress: bool = False,
    **settings: Any,
) -> "SensesOverTime":
    """The share of each sense of a word in each period, with a 95 % interval.

    `by` is the metadata that tell when: "year". Senses are those that are kept beside the corpus
    (`polyseme senses --keep`, `label --keep`); without any, or with a `model`, groups that are
    found. `settings` are those of `polyseme change`: `where="year<1900"`, `report="bank.html"`.
    """
    from polyseme.commands.change import ChangeConfig, run
    from polyseme.meanings.change.periods import SensesOverTime

    given = {"word": word, "corpus": corpus, "model": model, "by": by, "periods": periods}
    found = _call(run, ChangeConfig, given | settings, progress=progress).found
    assert isinstance(found, SensesOverTime)
    return found


def label(
    corpus: "Folder",
    word: str | None = None,
    *,
    labels: "Folder",
    model: "Folder | None" = None,
    progress: bool = False,
    **settings: Any,
) -> "LabelledUses":
    """Label every use of a word after the labels that a user gave to some of them.

    `labels`: a table of uses with a column `label`, or a log of edits. `settings` are those of
    `polyseme label`: `forms=("banks",)`, `next=20`, `at_random=True`, or `index="index/en"` in the
    place of `model`. `labelled.learned` has the confidences, `labelled.lines_to_label()` the uses
    to look at next.
    """
    from polyseme.commands.label import LabelConfig, run

    given = {"word": word, "corpus": corpus, "model": model, "labels": labels, **settings}
    return _call(run, LabelConfig, given, progress=progress, purpose="Learning from labels").found


def judge(
    corpus: "Folder",
    word: str | None = None,
    *,
    annotators: "Sequence[str]",
    out: "Folder",
    model: "Folder | None" = None,
    progress: bool = False,
    **settings: Any,
) -> "Material":
    """Write a table for each annotator, of pairs of uses to judge, or of lines if senses are named.

    `settings` are those of `polyseme judge`: `number=50`, `senses=("shore", "institution")`, or
    `judgments="round1"`, judgments so far, after which the next are chosen by `model`.
    """
    from polyseme.commands.judge import JudgeConfig, run

    given = {"word": word, "corpus": corpus, "annotators": tuple(annotators), "out": out}
    given |= {"model": model, **settings}
    return _call(run, JudgeConfig, given, progress=progress, purpose="Choosing items").material


def agreement(files: "Folder | Sequence[Folder]", **settings: Any) -> "Agreement":
    """How far annotators agree: Krippendorff's alpha, each two of them, what is in dispute.

    `files`: tables of `polyseme.judge` that were filled in, DURel's judgments, or folders of them.
    `agreement.table()` has every item with its judgments and what most say; `settings` are those of
    `polyseme agreement`: `out="bank.csv"`, `seed=2`.
    """
    from os import PathLike, fspath

    from polyseme.commands.agreement import AgreementConfig, run

    given = [files] if isinstance(files, str | PathLike) else files
    paths = tuple(fspath(each) for each in given)
    return _call(run, AgreementConfig, {"files": paths, **settings}, progress=False).agreement


def substitutes(
    text: str, *, model: "Folder | WordEmbedder | None" = None, word: str = "", top: int = 10
) -> "Substitutes":
    """The words a model expects in the place of one word of a sentence, with probabilities.

    The word is marked with asterisks ("He sat on the *bank*"), or named by `word`. `model` may also
    be what `polyseme.load` gave.
    """
    from os import PathLike

    from polyseme.errors import extra_needed_for

    with extra_needed_for("Asking a model"):
        from polyseme.meanings.concordance.uses import read_marked
        from polyseme.meanings.substitutes import find_substitutes

    if model is None or isinstance(model, str | PathLike):
        embedder = load(_chosen(model, [text]))
    else:
        embedder = model
    return find_substitutes(embedder, read_marked(embedder, text, word), top)


def index(
    corpus: "Folder",
    out: "Folder",
    *,
    model: "Folder | None" = None,
    progress: bool = False,
    **settings: Any,
) -> "IndexResult":
    """Compute once what describes the uses of many words; an interrupted run is resumed.

    `settings` are those of `polyseme index`: `words=("bank", "plant")`, `min_uses=200`. Then
    `polyseme.senses(corpus, "bank", index=out)`.
    """
    from polyseme.commands.index import IndexConfig, run

    given = {"corpus": corpus, "model": model, "out": out, **settings}
    return _call(run, IndexConfig, given, progress=progress, purpose="Indexing")


def nearest(
    corpus: "Folder",
    text: str,
    *,
    model: "Folder | None" = None,
    progress: bool = False,
    **settings: Any,
) -> "Nearest":
    """The uses of a word in a corpus that mean what it means in one sentence, the nearest first.

    The word is marked with asterisks ("He sat on the *bank*"), or named by `word`. `settings` are
    those of `polyseme nearest`: `index="index/en"`, `top=20`.
    """
    from polyseme.commands.nearest import NearestConfig, run

    given = {"inputs": (text,), "corpus": corpus, "model": model, **settings}
    return _call(run, NearestConfig, given, progress=progress, purpose="Comparing uses").found[0]


def same(
    first: str,
    second: str,
    *,
    model: "Folder | None" = None,
    progress: bool = False,
    **settings: Any,
) -> "SameMeaning":
    """Whether a word means the same in two sentences: how similar, and how likely.

    The word is marked with asterisks, or named by `word`. With `pairs`, a file of pairs
    judged by people, there is a probability.
    """
    from polyseme.commands.same import SameConfig, run

    given = {"inputs": (first, second), "model": model, **settings}
    return _call(run, SameConfig, given, progress=progress, purpose="Comparing uses").found[0]


def train(
    task: "Folder",
    out: "Folder",
    *,
    seeds: "Sequence[int]" = (1,),
    progress: bool = False,
    **settings: Any,
) -> "TrainResult":
    """Train the task that a TOML file describes, once for each seed.

    `settings` are those of `polyseme train`, and parts of the file that shall differ:
    `training={"epochs": 3}`, `data={"share": 0.1}`. `polyseme.Task.load(out)` has the best seed.
    """
    from polyseme.commands.train import TrainConfig, run

    given = {"task": task, "out": out, "seeds": tuple(seeds), **settings}
    return _call(run, TrainConfig, given, progress=progress, purpose="Training a task")


def uses(
    corpus: "Folder | Corpus",
    word: str | None = None,
    *,
    forms: "Sequence[str]" = (),
    regex: str | None = None,
    case_sensitive: bool = False,
    where: "str | Sequence[str]" = (),
) -> "Uses":
    """Every use of a word in a corpus: a sequence, each with its sentence, document and metadata.

    A term may have several words; `forms` are others of which any will do; `regex`, instead of a
    word, is a pattern that whole words must match. `where`: a condition on metadata, such as
    `"year<1860 and author~Dickens"`; or several, of which all must be met.
    """
    from polyseme.meanings.concordance.search import Query
    from polyseme.meanings.concordance.uses import find_uses
    from polyseme.text.corpus import Corpus

    query = Query.of(word, forms=forms, regex=regex, case_sensitive=case_sensitive)
    opened = corpus if isinstance(corpus, Corpus) else Corpus.open(corpus)
    return find_uses(opened, query, where=where)


def query(corpus: "Folder | Corpus", cql: str, *, where: "str | Sequence[str]" = ()) -> "Uses":
    """Every match of a query in CQL: `'[lemma="bank" & upos="NOUN"] []{0,3} "account"'`.

    A sequence as of `polyseme.uses`: it can be sorted, grouped by meaning, and written to a table.
    """
    from polyseme.meanings.concordance.search import Query
    from polyseme.meanings.concordance.uses import find_uses
    from polyseme.text.corpus import Corpus

    opened = corpus if isinstance(corpus, Corpus) else Corpus.open(corpus)
    return find_uses(opened, Query.of(cql=cql), where=where)


def collocates(
    corpus: "Folder", word: str | None = None, *, progress: bool = False, **settings: Any
) -> "WordList":
    """The words that stand around a word more often than elsewhere, the strongest first.

    `settings` are those of `polyseme collocates`: `left=0`, `right=3`, `sort="g2"`,
    `where="year<1860"`, `attribute="lemma"`, `upos=("NOUN",)`, `top=100`. Each has its counts,
    `log_dice`, `g2`, and `log_ratio` with its interval.
    """
    from polyseme.commands.collocates import CollocatesConfig, run

    given = {"word": word, "corpus": corpus, **settings}
    return _call(run, CollocatesConfig, given, progress=progress).found


def keywords(
    corpus: "Folder",
    *,
    where: "str | Sequence[str]" = (),
    against: "str | Sequence[str]" = (),
    progress: bool = False,
    **settings: Any,
) -> "WordList":
    """The words that set one part of a corpus apart from another: first those that are more
    frequent there, then those that are less.

    `where` and `against` are conditions on metadata: "year<1860"; without `against`, the part is
    compared with the rest. `settings` are those of `polyseme keywords`: `sense="river"` and
    `against_sense="money"` for sentences with a kept sense, `sort="log-ratio"`,
    `attribute="lemma"`, `top=100`.
    """
    from polyseme.commands.keywords import KeywordsConfig, run

    given = {"corpus": corpus, "where": where, "against": against, **settings}
    return _call(run, KeywordsConfig, given, progress=progress).found


def ngrams(
    corpus: "Folder", word: str | None = None, *, progress: bool = False, **settings: Any
) -> "NgramList":
    """The most frequent sequences of words of a corpus, or those with a word in them.

    `settings` are those of `polyseme ngrams`: `size=4`, `where="year<1860"`, `attribute="lemma"`,
    `top=100`. Each has `ngram`, `count`, `per_million`, `documents` and `dp`.
    """
    from polyseme.commands.ngrams import NgramsConfig, run

    given = {"word": word, "corpus": corpus, **settings}
    return _call(run, NgramsConfig, given, progress=progress).found


def vocabulary_change(
    corpus: "Folder",
    *,
    model: "Folder | None" = None,
    before: "str | Sequence[str]",
    after: "str | Sequence[str]",
    words: "Sequence[str]" = (),
    words_file: "Folder | None" = None,
    progress: bool = False,
    **settings: Any,
) -> "VocabularyChange":
    """Which words changed between two sets of texts: all that are frequent enough, or some.

    `words_file` has one per line. `settings` are those of `polyseme change`:
    `min_uses=100`, `out="changes.csv"`; with `out`, an interrupted run is resumed.
    """
    from polyseme.commands.change import ChangeConfig, run
    from polyseme.meanings.change.vocabulary import VocabularyChange

    given = {"corpus": corpus, "model": model, **settings}
    given |= {"words": tuple(words), "words_file": words_file}
    given["all_words"] = not words and words_file is None
    sides = {"before": before, "after": after}
    found = _call(
        run, ChangeConfig, given | sides, progress=progress, purpose="Comparing words"
    ).found
    assert isinstance(found, VocabularyChange)
    return found


def _call(
    run: "Callable[..., _Result]",
    kind: "type[AnySettings]",
    given: "Mapping[str, Any]",
    *,
    progress: bool,
    purpose: str = "",
) -> "_Result":
    """Run a command as the command line would, its settings by name; bars only if asked for.

    `purpose`: what needs a package that is not always installed. Paths, and a corpus, become text,
    as typed.
    """
    from contextlib import nullcontext
    from os import PathLike, fspath

    from polyseme.config import build_flat
    from polyseme.devices import wait_asleep
    from polyseme.errors import extra_needed_for

    plain = {n: fspath(v) if isinstance(v, PathLike) else v for n, v in given.items()}
    with extra_needed_for(purpose) if purpose else nullcontext():
        config = build_flat(kind, plain)
        wait_asleep()
        if not progress:
            return run(config)
        from polyseme.cli.terminal import NotebookProgress, RichProgress, is_notebook

        with NotebookProgress() if is_notebook() else RichProgress() as bars:
            return run(config, bars)


def _chosen(model: "Folder | None", texts: "Sequence[str]") -> str:
    from os import fspath

    from polyseme.storage.installed import chosen_model

    return chosen_model(None if model is None else fspath(model), texts)


def __getattr__(name: str) -> Any:
    """The public classes, imported when they are asked for."""
    if name == "Corpus":
        from polyseme.text.corpus import Corpus

        return Corpus
    if name == "Task":
        from polyseme.errors import extra_needed_for

        with extra_needed_for("A task"):
            from polyseme.tasks.task import Task
        return Task
    raise AttributeError(f"module 'polyseme' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__} - {"TYPE_CHECKING", "Any", "Literal", "TypeVar"})

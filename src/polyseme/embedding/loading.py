"""The embedder of a model's name, whoever's model it is: the one place that decides it.

en-mini             a model that was installed by pip
models/en-mini      a model folder of ours
hf:models/bert      a model folder of Hugging Face
hf:OWNER/MODEL      a model in Hugging Face's own cache

Golden vectors: what a few numbers of published models must be, on any machine.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike, fspath
from pathlib import Path

import numpy as np

from polyseme.config import build
from polyseme.devices import choose_device
from polyseme.embedding.embedder import Embedder
from polyseme.embedding.hf.embedder import HfEmbedder, hf_environment
from polyseme.embedding.hf.folder import HfFolder, hf_name
from polyseme.embedding.hf.network import find_folder
from polyseme.embedding.settings import Pooling, Precision
from polyseme.embedding.word_embedder import Vectors, WordEmbedder
from polyseme.encoders.environment import Environment, describe
from polyseme.errors import ConfigError, ModelError
from polyseme.model import ARTIFACT, preparation_of
from polyseme.storage.files import sha256_of
from polyseme.storage.folders import HF_PREFIX, MANIFEST, check_holds, holds, read_manifest
from polyseme.storage.installed import model_folder
from polyseme.storage.store import is_url, url_of
from polyseme.text.corpus import Corpus
from polyseme.text.preprocessing import Preparation
from polyseme.text.settings import CorpusConfig

Name = str | PathLike[str]


def load_embedder(
    name: Name,
    *,
    device: str | None = None,
    precision: Precision = "float32",
    threads: int | None = None,
    tokenizer_from: Name | None = None,
    pooling: Pooling = "mean",
    download: bool = False,
) -> WordEmbedder:
    """The embedder of a model.

    `tokenizer_from`: how words are found in texts, where the model does not say; see
    `preparation_from`. `pooling`: of the subword tokens of an encoder of Hugging Face.
    `download`: fetch such a model if it is not here; without it, no network is asked.
    """
    if (hf := hf_name(name)) is not None:
        return HfEmbedder(
            HfFolder.open(find_folder(hf, download=download)),
            device=device,
            precision=precision,
            threads=threads,
            pooling=pooling,
            preparation=preparation_for(name, None, tokenizer_from),
        )
    check_pooling(name, pooling)
    embedder = Embedder.load(name, device=device, precision=precision, threads=threads)
    if tokenizer_from is None:
        return embedder
    preparation = preparation_for(name, embedder.preparation, tokenizer_from)
    model = replace(embedder.model, preparation=preparation)
    return Embedder(
        model, device=device, precision=precision, threads=threads, fingerprint=embedder.fingerprint
    )


def load_for_corpus(name: str, corpus: Corpus) -> WordEmbedder:
    """The embedder of a model that reads the words of a corpus, or an error if it found others.

    A model of Hugging Face takes words as the corpus has them.
    """
    embedder = load_embedder(name, tokenizer_from=corpus.folder if hf_name(name) else None)
    corpus.check_same_words(embedder.preparation)
    return embedder


def check_pooling(name: Name, pooling: Pooling) -> None:
    """Refuse to pool where there is nothing to pool."""
    if hf_name(name) is None and pooling != "mean":
        raise ConfigError(
            f"pooling = {pooling!r} is for Hugging Face encoders (hf:FOLDER), which read words as "
            f"subword tokens; {fspath(name)} reads whole words."
        )


def fingerprint_of(name: Name, pooling: Pooling = "mean") -> str:
    """That of the model's embedder, without loading it."""
    if (hf := hf_name(name)) is not None:
        return HfFolder.open(find_folder(hf)).fingerprint(pooling)
    folder = model_folder(name)
    check_holds(folder, "model", "polyseme pretrain CORPUS", ModelError)
    return sha256_of(folder / MANIFEST)


def model_files(name: Name) -> list[Path]:
    """The files that make up a model, all in one folder."""
    if (hf := hf_name(name)) is not None:
        return HfFolder.open(find_folder(hf)).files
    folder = model_folder(name)
    return [folder / file for file in (*read_manifest(folder, ARTIFACT)["files"], MANIFEST)]


def environment_for(
    name: Name, *, device: str | None = None, precision: Precision, threads: int | None
) -> Environment:
    """That of the model's embedder on this machine, without loading it."""
    told = {"device": choose_device(device), "precision": precision}
    if hf_name(name) is not None:
        return hf_environment(**told, threads=threads)
    return describe(**told, threads=threads)


def absolute(name: Name) -> str:
    """The name from wherever it is read: workers may start in another folder."""
    if is_url(name):
        return url_of(name)
    hf = hf_name(name)
    if hf is None:
        return str(model_folder(name).resolve())
    return f"{HF_PREFIX}{find_folder(hf).resolve()}"


def preparation_for(
    name: Name, own: Preparation | None, tokenizer_from: Name | None
) -> Preparation | None:
    """How words are found for a model: its own way, or that of `tokenizer_from` if it has none."""
    if tokenizer_from is None:
        return own
    if own is not None:
        raise ConfigError(
            f"{fspath(name)} defines how text is split into words. Leave out tokenizer_from."
        )
    return preparation_from(tokenizer_from)


def preparation_from(name: Name) -> Preparation:
    """How text became words: of a model or a corpus in a folder, or of a language by its code."""
    text = fspath(name)
    if hf_name(text) is not None:
        raise ModelError(
            f"{text} does not say how text is split into words: its tokenizer finds parts of them. "
            "Name a language, or the folder of a model or a corpus: tokenizer_from = 'en'."
        )
    folder = model_folder(text)
    if not (folder.exists() or "/" in text or "\\" in text):
        return Preparation.of(build(CorpusConfig, {"language": text}))
    if holds(folder, "corpus"):
        return Corpus.open(folder).preparation
    preparation = preparation_of(folder)
    if preparation is None:
        raise ModelError(
            f"{text} does not say how its text was split into words. Name another model or a "
            "corpus, or a language by its code: tokenizer_from = 'en'."
        )
    return preparation


TOLERANCE = 0.001
"""Far above what another order of adding up changes, far below what a wrong weight does."""
_COPIES = 64  # of the sentence, so that there is enough to read for the compiled kernel to be used


@dataclass(frozen=True)
class GoldenVector:
    """Some dimensions of the top layer at one word of a sentence."""

    words: tuple[str, ...]
    position: int
    values: dict[int, float]


# A sentence of each language, and where its word stands: the same for all models of its words.
_ENGLISH = ("He", "sat", "on", "the", "bank", "of", "the", "river", "."), 4
_CHINESE = ("他", "在", "银行", "工作", "。"), 2
_CHARACTERS = ("他", "往", "河", "边", "走", "去", "。"), 4

GOLDEN = {
    "en-mini": GoldenVector(
        *_ENGLISH,
        {0: 0.731344, 100: 0.75777, 191: -0.000267, 192: 0.902993, 300: -0.888559, 383: 0.252359},
    ),
    "zh-mini": GoldenVector(
        *_CHINESE,
        {
            0: -0.823018,
            100: -0.210568,
            191: 0.813523,
            192: -0.123593,
            300: 0.981897,
            383: -0.254558,
        },
    ),
    "en-base": GoldenVector(
        *_ENGLISH,
        {0: 0.793852, 100: 0.812421, 191: -0.12522, 192: 0.640343, 300: -0.662993, 383: 0.386748},
    ),
    "zh-base": GoldenVector(
        *_CHINESE,
        {
            0: -0.905255,
            100: 0.124272,
            191: 0.663366,
            192: -0.030069,
            300: 0.93768,
            383: -0.126178,
        },
    ),
    "en-novels": GoldenVector(
        *_ENGLISH,
        {0: 0.871432, 100: 0.845844, 191: 0.120129, 192: 1.056335, 300: -0.171946, 383: 0.663737},
    ),
    "zh-classics": GoldenVector(
        *_CHARACTERS,
        {0: 0.755322, 100: -0.870007, 191: 0.450065, 192: 0.498921, 300: 1.060391, 383: -0.097914},
    ),
}
"""By the name of the model."""


def largest_difference(name: str) -> float:
    """How far the vector of an installed model is here from the golden one, at most."""
    return _difference(load_embedder(name), GOLDEN[name])


def check_vectors(embedder: WordEmbedder, name: str) -> None:
    """An error where a model does not give the vectors it should.

    Those of a published model, in a folder of its name, are known. Of any other, a sentence alone
    and among others must have the same vectors: different code works them out.
    """
    golden = GOLDEN.get(Path(name).name)
    if golden is not None:
        difference = _difference(embedder, golden)
    else:
        many, alone = _many_and_alone(embedder, _ENGLISH[0])
        difference = float(np.abs(many - alone).max() / max(1.0, float(np.abs(many).max())))
    if not difference <= TOLERANCE:
        raise ModelError(
            f"{name} gives vectors that differ from the right ones by {difference:.1e}, so the "
            "model or this installation is damaged. Run: polyseme doctor. A model of your own "
            "needs a folder that is not named like a published model."
        )


def _many_and_alone(embedder: WordEmbedder, words: Sequence[str]) -> tuple[Vectors, Vectors]:
    many = next(embedder.stream([words] * _COPIES, layers="top"))  # (1, T, D)
    alone = next(embedder.stream([words], layers="top"))  # by other code: see few_rows.c
    return many, alone


def _difference(embedder: WordEmbedder, golden: GoldenVector) -> float:
    if max(golden.values) >= embedder.dim:  # another model with its name
        return float("inf")
    return float(
        max(
            np.abs(found[0, golden.position, at] - value)
            for found in _many_and_alone(embedder, golden.words)
            for at, value in golden.values.items()
        )
    )

"""The models of a server, in a process of their own: batches of requests in, answers out.

    in   frames on standard input: the settings, then batches of requests
    out  frames on standard output: what was loaded, then the answers to each batch

There is no HTTP here and no queue. A request that cannot be answered is refused by itself, the
others of its batch are answered; a process that dies takes nothing along but the batch in hand.
"""

import contextlib
import json
import os
import struct
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from polyseme.embedding.loading import check_vectors, load_embedder, load_for_corpus
from polyseme.embedding.word_embedder import (
    InputSentence,
    LayerChoice,
    Vectors,
    WordEmbedder,
    read_sentences,
    text_means,
)
from polyseme.errors import ConfigError, InputError, PolysemeError
from polyseme.meanings.concordance.search import Query
from polyseme.meanings.concordance.uses import NoUseError, Uses, find_terms, find_uses
from polyseme.meanings.features.use_encoder import ModelUseEncoder
from polyseme.meanings.features.use_features import UseEncoder
from polyseme.meanings.groups.grouping import MIN_USES
from polyseme.meanings.groups.senses import find_senses
from polyseme.meanings.index.use_index import open_for
from polyseme.tasks.task import Task
from polyseme.text.corpus import Corpus

HEADER = struct.Struct("<II")
"""Of a frame: how many bytes of JSON follow, and how many of numbers after them."""
_OF_VECTORS = "embeddings", "words", "embed_all"
_UNFIT = (
    "The input is not what the task reads: a text is empty or too long, there are too few or too "
    "many together, or no word is marked where one has to be."
)


def pack(told: Any, payload: bytes = b"") -> bytes:
    """A frame."""
    text = json.dumps(told, separators=(",", ":")).encode()
    return b"".join((HEADER.pack(len(text), len(payload)), text, payload))


class NotFoundError(InputError):
    """There is nothing of what was asked for."""


@dataclass
class Engine:
    """What answers requests: vectors by an embedder, predictions by a task, senses in a corpus."""

    embedder: WordEmbedder | None = None
    task: Task | None = None
    senses: "SenseFinder | None" = None
    max_words: int = 1 << 14
    max_word_characters: int = 1_000
    batch_invariant: bool = False
    seconds_per_character: float = 0.0
    """In a large batch, when it was loaded."""

    @classmethod
    def load(cls, settings: dict[str, Any]) -> "Engine":
        """Load what is to be served, and check that the model gives the vectors that it should."""
        limits = {name: settings[name] for name in ("max_words", "max_word_characters")}
        engine = cls(**limits, batch_invariant=settings["batch_invariant"])
        model, options = settings["model"], {"threads": settings["threads"]}
        if settings["role"] == "senses":
            engine.senses = SenseFinder(settings["corpus"], model, settings["index"])
            return engine
        if model:
            options |= {"device": settings["device"], "tokenizer_from": settings["tokenizer_from"]}
            engine.embedder = load_embedder(model, **options)
            check_vectors(engine.embedder, model)
            engine.seconds_per_character = _warm_up(engine.embedder)
        if settings["task"]:
            engine.task = Task.load(settings["task"])
        return engine

    @property
    def about(self) -> dict[str, Any]:
        """What was loaded."""
        told: dict[str, Any] = {"seconds_per_character": self.seconds_per_character}
        if (embedder := self.embedder) is not None:
            told |= {
                "num_layers": embedder.num_layers,
                "dim": embedder.dim,
                "max_length": embedder.max_length,
                "fingerprint": embedder.fingerprint,
                "environment": embedder.environment,
            }
        if self.task is not None:
            told["task"] = self.task.config.network.kind
            told["num_texts"] = self.task.family.num_texts
        return told

    def answer(self, requests: Sequence[dict[str, Any]]) -> tuple[list[dict[str, Any]], bytes]:
        """An answer to each; its numbers are `bytes` of the payload, from and to."""
        answers: list[dict[str, Any]] = [{} for _ in requests]
        numbers: list[bytes] = []
        size = 0

        def put(place: int, answer: dict[str, Any], vectors: bytes = b"") -> None:
            nonlocal size
            answers[place] = {**answer, "bytes": [size, size + len(vectors)]}
            numbers.append(vectors)
            size += len(vectors)

        together: dict[str, list[_Read]] = defaultdict(list)
        for place, request in enumerate(requests):
            try:
                if request["kind"] in _OF_VECTORS:
                    read = self._read(place, request)
                    together[json.dumps(request["layers"])].append(read)
                else:
                    put(place, self._other(request))
            except (ConfigError, InputError) as error:
                is_missing = isinstance(error, NotFoundError)
                answers[place] = {
                    "refused": f"{error}".partition("\n")[0],
                    "is_missing": is_missing,
                }
        for read_together in together.values():
            for read in self._embedded(read_together):
                put(read.place, *read.answer())
        return answers, b"".join(numbers)

    def _read(self, place: int, request: dict[str, Any]) -> "_Read":
        assert self.embedder is not None
        LayerChoice(request["layers"], self.embedder.num_layers)  # which refuses what is not there
        if request.get("dimensions") not in (None, self.embedder.dim):
            raise ConfigError(f"The model has {self.embedder.dim} dimensions.")
        preprocessor = self.embedder.preprocessor
        sentences = list(read_sentences(request["input"], preprocessor))
        num_words = sum(len(each.words) for each in sentences)
        self._check_number(num_words)
        longest = max((len(word) for each in sentences for word in each.words), default=0)
        if longest > self.max_word_characters:
            raise InputError(
                f"A word has {longest:,} characters; at most {self.max_word_characters:,}."
            )
        return _Read(place, request, sentences, self.embedder)

    def _embedded(self, together: "list[_Read]") -> "Iterator[_Read]":
        """The requests, each once its sentences have their vectors; all are read in one batch."""
        assert self.embedder is not None
        found = self.embedder.stream(
            [sentence.words for read in together for sentence in read.sentences],
            layers=together[0].request["layers"],
            batch_invariant=self.batch_invariant,
        )
        for read in together:
            is_one = read.request["layers"] != "all"
            vectors = [next(found) for _ in read.sentences]
            read.vectors = [each[0] for each in vectors] if is_one else vectors
            yield read

    def _other(self, request: dict[str, Any]) -> dict[str, Any]:
        if request["kind"] == "senses":
            assert self.senses is not None
            return self.senses(request)
        assert self.task is not None
        texts = request["input"]
        flat = [text for each in texts for text in ([each] if isinstance(each, str) else each)]
        num_words = sum(len(self.task.reader.split(text)) for text in flat)
        self._check_number(num_words)
        try:
            found = self.task.predict(texts, probabilities=request["probabilities"])
        except InputError as error:
            raise InputError(_UNFIT) from error  # which would repeat the text
        return {"num_words": num_words, "data": [each.as_json() for each in found]}

    def _check_number(self, num_words: int) -> None:
        if num_words > self.max_words:
            raise InputError(
                f"{num_words:,} words are too many for one request; at most {self.max_words:,}."
            )


@dataclass
class _Read:
    """A request for vectors, its sentences, and what the model makes of them."""

    place: int
    request: dict[str, Any]
    sentences: list[InputSentence]
    embedder: WordEmbedder
    vectors: list[Vectors] = field(default_factory=list)

    def answer(self) -> tuple[dict[str, Any], bytes]:
        """In the form that was asked for."""
        num_words = sum(len(each.words) for each in self.sentences)
        answer: dict[str, Any] = {"num_words": num_words}
        if self.request["kind"] == "embeddings":
            found = zip((each.index for each in self.sentences), self.vectors, strict=True)
            texts = len(self.request["input"])
            return answer, text_means(found, texts, self.embedder.dim).tobytes()
        indices = [each.index for each in self.sentences]
        kind = np.dtype(self.request["dtype"])
        vectors = b"".join(each.astype(kind).tobytes() for each in self.vectors)
        answer |= {"indices": indices, "shapes": [each.shape for each in self.vectors]}
        if self.request["kind"] == "words":
            truncation = [self.embedder.truncation(each.words) for each in self.sentences]
            answer |= {
                "words": [list(each.words) for each in self.sentences],
                "starts": [each.starts for each in self.sentences],
                "chunks": [each.chunks for each in truncation],
                "truncated_characters": [each.characters for each in truncation],
            }
        return answer, vectors


class SenseFinder:
    """Groups of a word's uses in one corpus; those of the words asked for last are kept."""

    _KEPT = 32

    def __init__(self, corpus: str, model: str, index: str | None) -> None:
        self._corpus, self._model = Corpus.open(corpus), model
        self._index = open_for(Path(index), self._corpus, model) if index else None
        self._found: dict[str, dict[str, Any]] = {}

    def __call__(self, request: dict[str, Any]) -> dict[str, Any]:
        """The groups, as JSON."""
        key = json.dumps([request["word"], request["finer"]])
        found = self._found.pop(key, None)
        if found is None:
            uses, encoder = self._uses(Query.of(request["word"]))
            if len(uses) < MIN_USES:
                raise NotFoundError(
                    f"The corpus has too few uses of this word to group them: {len(uses)}. "
                    f"At least {MIN_USES} are needed."
                )
            found = find_senses(uses, encoder, finer=request["finer"]).to_json()
        self._found[key] = found  # the newest stands last
        while len(self._found) > self._KEPT:
            self._found.pop(next(iter(self._found)))
        return found

    def _uses(self, query: Query) -> tuple[Uses, UseEncoder]:
        """From the index if it has the word; else the model reads them."""
        try:
            find_terms(query, self._corpus)
            if self._index is not None:
                with contextlib.suppress(InputError):
                    indexed = self._index.find(self._corpus, query)
                    return indexed.uses, indexed
            return find_uses(self._corpus, query), self._encoder
        except NoUseError as error:  # which would tell the word, and where the corpus lies
            raise NotFoundError("The corpus has no use of this word.") from error

    @cached_property
    def _encoder(self) -> UseEncoder:
        return ModelUseEncoder(load_for_corpus(self._model, self._corpus), self._corpus)


def _warm_up(embedder: WordEmbedder) -> float:
    """Do once what the first request would wait for; seconds for a character of a large batch."""
    text = "Once upon a time. "
    if embedder.preparation is not None:
        embedder.preprocessor(text)
    many = [text.split()] * 128
    began = time.monotonic()
    for _ in embedder.stream(many):
        pass
    return (time.monotonic() - began) / (len(many) * len(text))


def main() -> None:
    """Serve standard input until it ends."""
    source, sink = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not end up between frames
    settings, _ = read_frame(source)
    try:
        engine = Engine.load(settings)
    except PolysemeError as error:
        _write(sink, {"failed": str(error)})
        return
    _write(sink, engine.about)
    while True:
        try:
            requests, _ = read_frame(source)
        except EOFError:
            return
        _write(sink, *engine.answer(requests))


def read_frame(source: BinaryIO) -> tuple[Any, bytes]:
    """The next frame; an EOFError where there is none."""
    header = source.read(HEADER.size)
    if len(header) < HEADER.size:
        raise EOFError
    text, payload = HEADER.unpack(header)
    return json.loads(source.read(text)), source.read(payload)


def _write(sink: BinaryIO, told: Any, payload: bytes = b"") -> None:
    sink.write(pack(told, payload))
    sink.flush()

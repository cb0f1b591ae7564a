"""Words in, vectors out: what a model is for.

    in   texts, or sentences as lists of words, any number of them
    out  every layer's vectors of every word, in the order given

A sentence's vectors depend on the sentence alone: not on its neighbours, on what was embedded
before, or on padding. No state is kept but layer 0 of words met lately, which changes no bit.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set, Sized
from os import PathLike
from pathlib import Path
from typing import Any, Literal, overload

from polyseme.encoders.environment import Environment, describe
from polyseme.encoders.transformer import TransformerConfig
from polyseme.errors import ConfigError, InputError
from polyseme.model import Model
from polyseme.text.settings import CorpusConfig
from polyseme.training.processes import choose_device
from polyseme.vectors.embedded import Cut, EmbeddedSentence, LayerChoice, Vectors
from polyseme.vectors.encoding import Encoding
from polyseme.vectors.reading import Given, Reader, check_words, refuse_flat
from polyseme.vectors.settings import Layers
from polyseme.vectors.windows import gather

Precision = Literal["float32", "bfloat16"]
_NO_TEXTS = (bytes, bytearray, Mapping, Set)
_WINDOW_BYTES = 256 << 20  # of vectors that wait to be handed on


class Embedder:
    """A model ready to turn words into vectors. Its weights must not change while it is used."""

    def __init__(
        self,
        model: Model,
        *,
        device: str | None = None,
        precision: Precision = "float32",
        threads: int | None = None,
    ) -> None:
        if precision not in ("float32", "bfloat16"):
            raise ConfigError(f"precision={precision!r} is not one of 'float32', 'bfloat16'.")
        if threads is not None and threads < 1:
            raise ConfigError(f"threads={threads}: at least one must work.")
        self.model = model
        self.device = choose_device(device)
        """Where the work is done: the device asked for, or the first there is of cuda, mps, cpu."""
        self.precision, self._threads = precision, threads
        self._reader = Reader(model.preparation)
        self._encode = Encoding(model, device=self.device, precision=precision, threads=threads)

    @classmethod
    def load(
        cls,
        folder: str | PathLike[str],
        *,
        device: str | None = None,
        precision: Precision = "float32",
        threads: int | None = None,
    ) -> "Embedder":
        """The embedder of the model in a folder."""
        model = Model.load(Path(folder))
        return cls(model, device=device, precision=precision, threads=threads)

    @property
    def environment(self) -> Environment:
        """What decides the last bits of its vectors besides model, text and settings."""
        return describe(device=self.device, precision=self.precision, threads=self._threads)

    @property
    def num_layers(self) -> int:
        """Vectors for each word: layer 0 and those with context."""
        return self.model.config.encoder.num_layers

    @property
    def width(self) -> int:
        """Numbers in each vector."""
        return self.model.config.encoder.output_width

    @property
    def longest(self) -> int:
        """Words that are read at once, as in training. A longer sentence is read in pieces."""
        settings = self.model.preparation.get("settings", {})
        longest = int(settings.get("max_words", CorpusConfig.model_fields["max_words"].default))
        context = self.model.config.encoder.context
        if isinstance(context, TransformerConfig) and context.positions == "learned":
            longest = min(longest, context.longest - 2)  # the marks have places too
        return longest

    @property
    def segmenter(self) -> Mapping[str, str]:
        """What found the words of the model's corpus, and its version; empty if not known."""
        found: Mapping[str, str] = self.model.preparation.get("preparation", {}).get(
            "segmenter", {}
        )
        return found

    def cleaned(self, text: str) -> str:
        """The text that the places of words refer to: normalised as the model's corpus was."""
        return self._reader.cleaned(text)

    @overload
    def embed(
        self, texts: str | Sequence[Any], *, layers: Layers = ..., exact: bool = ...
    ) -> list[EmbeddedSentence]: ...

    @overload
    def embed(
        self, texts: Iterator[Any], *, layers: Layers = ..., exact: bool = ...
    ) -> Iterator[EmbeddedSentence]: ...

    @overload
    def embed(
        self, texts: Iterable[Any], *, layers: Layers = ..., exact: bool = ...
    ) -> list[EmbeddedSentence] | Iterator[EmbeddedSentence]: ...

    def embed(
        self, texts: str | Iterable[Any], *, layers: Layers = "all", exact: bool = False
    ) -> list[EmbeddedSentence] | Iterator[EmbeddedSentence]:
        """The sentences of a text, of several texts, or given as lists of words.

        Text is split into sentences and words as the model's corpus was; text without a word has no
        sentence. A list of words is one sentence. What has a length gives a list. Anything else
        that can be gone through gives an iterator, in bounded memory: it reads up to a thousand
        sentences ahead.
        """
        choice = LayerChoice(layers, self.num_layers)
        if isinstance(texts, str):
            return list(self._embed(self._reader.read([texts]), choice, exact=exact))
        if not isinstance(texts, Iterable) or isinstance(texts, _NO_TEXTS) or _is_table(texts):
            raise InputError(
                f"A {type(texts).__name__} cannot be embedded. Give a text, texts (one column of a "
                "table), or sentences as lists of words."
            )
        given = self._reader.read(texts)
        if isinstance(texts, Sized):
            return list(self._embed(refuse_flat(given), choice, exact=exact))
        return self._embed(given, choice, exact=exact)

    def stream(
        self, sentences: Iterable[Sequence[str]], *, layers: Layers = "all", exact: bool = False
    ) -> Iterator[Vectors]:
        """(L, T, D) for each list of words, in order, in bounded memory; L = 1 for a single layer.

        A list longer than `longest` is read in equal pieces, as a corpus would cut it; its vectors
        come as one array. `cut` tells of it.
        """
        checked = (check_words(words, index) for index, words in enumerate(sentences))
        return self._stream(checked, LayerChoice(layers, self.num_layers), exact=exact)

    def cut(self, words: Sequence[str]) -> Cut:
        """What of a sentence with these words is not read as it stands."""
        pieces = max(1, -(-len(words) // self.longest))
        kind, most = self.model.config.lexicon.characters, self._most_characters
        if kind == "none" or self.model.config.encoder.widest_filter == 0:
            return Cut(pieces)
        long = [word for word in words if 4 * len(word) > most]  # no character has more bytes
        sizes = [len(word.encode()) if kind == "bytes" else len(word) for word in long]
        return Cut(pieces, sum(max(0, size - most) for size in sizes))

    @property
    def _most_characters(self) -> int:
        return self.model.config.lexicon.max_characters - 2  # a spelling has a begin and an end

    def _embed(
        self, given: Iterator[Given], choice: LayerChoice, *, exact: bool
    ) -> Iterator[EmbeddedSentence]:
        waiting: deque[Given] = deque()

        def words() -> Iterator[Sequence[str]]:
            for sentence in given:
                waiting.append(sentence)
                yield sentence.words

        for vectors in self._stream(words(), choice, exact=exact):
            sentence = waiting.popleft()
            yield EmbeddedSentence(
                tuple(sentence.words),
                vectors[0] if choice.is_one else vectors,
                sentence.index,
                sentence.starts,
                self.cut(sentence.words),
            )

    def _stream(
        self, sentences: Iterable[Sequence[str]], choice: LayerChoice, *, exact: bool
    ) -> Iterator[Vectors]:
        most_words = _WINDOW_BYTES // (4 * choice.num_layers * self.width)
        for window in gather(sentences, most_words=most_words):
            found = deque(self._encode(window, choice, longest=self.longest, exact=exact))
            while found:
                yield found.popleft()  # and forget it


def _is_table(texts: object) -> bool:
    """Whether going through it would give the names of columns, as with a data frame."""
    return hasattr(texts, "columns")

"""What everything downstream asks of an embedder, whoever's encoder is behind it.

    in   sentences as lists of words, or texts
    out  every layer's vectors of every word, in the order given

A sentence's vectors depend on the sentence alone: not on its neighbours, on what was embedded
before, or on padding. An encoder of another library needs what is abstract here, and a line in
`loading.py`; it inherits the rest.

Raw text goes the one path of all text. A list of words is one sentence, taken as it is. What could
silently be taken for something else is refused.
"""

import math
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set, Sized
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Protocol, overload

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.progress import track
from torch import Tensor, from_numpy

from polyseme.display import html_table, sentence, summary
from polyseme.embedding.settings import Layers
from polyseme.encoders.environment import Environment
from polyseme.errors import ConfigError, InputError
from polyseme.text.preprocessing import Preparation, PreprocessedText, TextPreprocessor


@dataclass(frozen=True, slots=True)
class InputSentence:
    """A sentence as it was given: which text it is of, its words, and where they stand."""

    index: int
    words: Sequence[str]
    starts: tuple[int, ...] | None = None


def read_sentences(
    items: Iterable[Any], preprocess: Callable[[str], PreprocessedText], first: int = 0
) -> Iterator[InputSentence]:
    """The sentences of each text; a list of words is one sentence, even if it is empty.

    `first`: the number of the first text.
    """
    for index, item in enumerate(items, first):
        if not isinstance(item, str):
            yield InputSentence(index, check_words(item, index))
            continue
        try:
            found = preprocess(item)
        except InputError as error:
            raise InputError(f"Text {index}: {error}") from error
        for each in found.whole():
            yield InputSentence(index, each.words, tuple(each.starts))


def check_words(item: Any, index: int) -> Sequence[str]:
    """A sentence as a list of words, or an error that says what else it is."""
    if isinstance(item, str):
        raise InputError(
            f"Sentence {index} is the text {_quote(item)}; a list of words was expected. "
            "Embedder.embed splits text into words."
        )
    if not isinstance(item, Sequence | np.ndarray) or isinstance(item, bytes | bytearray):
        raise InputError(
            f"Text {index} is {_quote(item)}, of type {type(item).__name__}. Give texts as str, "
            "or sentences as lists of str."
        )
    for word in item:
        if not isinstance(word, str) or not word:
            raise InputError(
                f"Sentence {index} has the word {_quote(word)}, of type {type(word).__name__}. "
                "Words are str, and not empty."
            )
    # A copy: whoever gave it may write the next sentence into the same list.
    return [str(word) for word in item]


def refuse_flat(given: Iterator[InputSentence]) -> Iterator[InputSentence]:
    """The same, unless every text is but one word: then the texts are the words of a sentence."""
    held: list[InputSentence] = []
    for each in given:
        held.append(each)
        if len(each.words) != 1 or each.starts is None:
            break
        if len(held) > 1 and each.index == held[-2].index:
            break
    else:
        if len(held) > 1:
            words = [each.words[0] for each in held]
            raise InputError(
                f"Each of the {len(held)} texts is one word: {words[:4]}. If they are the words of "
                "one sentence, give [words]; if each is a text of its own, give "
                "[[word] for word in words]."
            )
    yield from held
    yield from given


def _quote(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


Vectors = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Truncation:
    """What of a sentence the model did not see as it was given."""

    chunks: int = 1
    """Parts that were read apart, none seeing the others; 1 unless the sentence is very long."""
    characters: int = 0
    """Characters (of models that read bytes: bytes) at the ends of overlong words, not read."""
    unread_words: int = 0
    """Words that an encoder of subword tokens has no token for; their vectors are zeros."""


@dataclass(frozen=True, slots=True, eq=False)
class EmbeddedSentence:
    """One sentence, its words and their vectors. Padding and special tokens are not in it."""

    words: tuple[str, ...]
    vectors: Vectors
    """(L, T, D), layer 0 being the word without its sentence; (T, D) if one or a mix was asked."""
    index: int
    """Which of the given texts, or lists of words, it comes from; from 0."""
    starts: tuple[int, ...] | None = None
    """Where each word begins, in characters of the normalized text; None for lists of words."""
    truncation: Truncation = Truncation()

    def __repr__(self) -> str:
        shape = " x ".join(map(str, self.vectors.shape))
        return summary("EmbeddedSentence", f"vectors {shape}", sentence(self.words))

    def _repr_html_(self) -> str:
        """One word per row, with the length of its vector in each layer."""
        layers = self.vectors.reshape(-1, *self.vectors.shape[-2:])  # (L, T, D)
        lengths = np.linalg.norm(layers, axis=-1).T.tolist()  # (T, L)
        rows = [(word, *each) for word, each in zip(self.words, lengths, strict=True)]
        header = ("word", *(f"length {layer}" for layer in range(len(layers))))
        return html_table(f"vectors {self.vectors.shape}", rows, header)

    @property
    def ends(self) -> tuple[int, ...] | None:
        """Where each word ends, as `starts`."""
        if self.starts is None:
            return None
        return tuple(at + len(word) for at, word in zip(self.starts, self.words, strict=True))

    def sentence_vector(self) -> Vectors:
        """The mean over the words: (D,), or (L, D) with all layers. Zeros if there is no word."""
        mean: Vectors = self.vectors.sum(axis=-2) / np.float32(max(1, len(self.words)))
        return mean


class LayerChoice:
    """The layers asked for, made out of all an encoder gives."""

    def __init__(self, wish: Layers, num_layers: int) -> None:
        self._weights: list[float] | None = None
        self._number = 0
        self.is_one = not (isinstance(wish, str) and wish == "all")
        """Whether one vector for each word comes out."""
        if isinstance(wish, str):
            if wish not in ("all", "top", "average"):
                raise _unknown(wish, num_layers)
            self._number = num_layers - 1
            self._weights = [1 / num_layers] * num_layers if wish == "average" else None
        elif isinstance(wish, int | np.integer) and not isinstance(wish, bool):
            if not -num_layers <= wish < num_layers:
                raise _unknown(wish, num_layers)
            self._number = int(wish) % num_layers
        else:
            self._weights = _check_weights(wish, num_layers)
        self.num_layers = 1 if self.is_one else num_layers

    def __call__(self, each: Sequence[Tensor]) -> list[Tensor]:
        """L times (B, T, D) -> as many as asked for."""
        if not self.is_one:
            return list(each)
        if self._weights is None:
            return [each[self._number]]
        parts = [weight * layer for weight, layer in zip(self._weights, each, strict=True)]
        return [sum(parts[1:], parts[0])]


def _check_weights(wish: object, num_layers: int) -> list[float]:
    try:
        weights = [float(weight) for weight in wish]  # type: ignore[attr-defined]
    except (TypeError, ValueError) as error:
        raise _unknown(wish, num_layers) from error
    if len(weights) != num_layers or not all(map(math.isfinite, weights)):
        raise _unknown(wish, num_layers)
    return weights


def _unknown(wish: object, num_layers: int) -> ConfigError:
    return ConfigError(
        f"layers={wish!r} cannot be given. This model has {num_layers} layers: 'all', 'top', "
        f"'average', a number from 0 to {num_layers - 1}, or {num_layers} weights."
    )


def is_finite(vectors: npt.NDArray[Any]) -> bool:
    """Whether no number is NaN or infinite. Looks at each only if their sum gives cause to."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(vectors.sum(dtype=np.float32)) or np.isfinite(vectors).all())


def cosines(one: Vectors, other: Vectors) -> Vectors:
    """(N, M): the cosine of each row of one with each of the other; 0 for a row of zeros."""
    if one.shape[1] != other.shape[1]:
        raise InputError(
            f"Vectors of {one.shape[1]} and {other.shape[1]} dimensions cannot be compared. Encode "
            "both with the same model and layers."
        )
    found: Vectors = normalized(one) @ normalized(other).T
    return found


def normalized(vectors: Vectors) -> Vectors:
    """(N, D): each row of length 1; zeros stay."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    found: Vectors = (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)
    return found


_NO_TEXTS = (bytes, bytearray, Mapping, Set)


class WordEmbedder(Protocol):
    """Turns words into vectors."""

    @property
    @abstractmethod
    def num_layers(self) -> int:
        """Vectors for each word: layer 0, the encoder's input, and those with context."""

    @property
    @abstractmethod
    def dim(self) -> int:
        """Dimensions of each vector."""

    @property
    @abstractmethod
    def max_length(self) -> int:
        """What is read at once: words, or the subword tokens that words are made of.

        A longer sentence is read in parts, and its vectors come as one array.
        """

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Hash of all that decides its vectors but for their last bits, which `environment` has."""

    @property
    @abstractmethod
    def environment(self) -> Environment:
        """What decides the last bits of its vectors besides model, text and settings."""

    @property
    @abstractmethod
    def preparation(self) -> Preparation | None:
        """How texts become words; None if that is not known, and lists of words alone are read."""

    @abstractmethod
    def stream(
        self,
        sentences: Iterable[Sequence[str]],
        *,
        layers: Layers = "all",
        batch_invariant: bool = False,
    ) -> Iterator[Vectors]:
        """(L, T, D) for each list of words, in order, in bounded memory; L = 1 for a single layer.

        `batch_invariant`: the same bits for a sentence whatever it is embedded with; slower.
        """

    @abstractmethod
    def truncation(self, words: Sequence[str]) -> Truncation:
        """What of a sentence with these words is not read as it stands."""

    @property
    def segmenter(self) -> Mapping[str, Any]:
        """What finds the words in texts, and its version; empty if not known."""
        return self.preparation.segmenter if self.preparation else {}

    @cached_property
    def preprocessor(self) -> TextPreprocessor:
        """Turns texts into sentences as the model's corpus was. Lists of words need none."""
        return TextPreprocessor.of_model(self.preparation)

    def normalize(self, text: str) -> str:
        """The text that offsets of words refer to, as the model's corpus would store it."""
        return self.preprocessor.normalize(text)[0]

    @overload
    def embed(
        self, texts: str | Sequence[Any], *, layers: Layers = ..., batch_invariant: bool = ...
    ) -> list[EmbeddedSentence]: ...

    @overload
    def embed(
        self, texts: Iterator[Any], *, layers: Layers = ..., batch_invariant: bool = ...
    ) -> Iterator[EmbeddedSentence]: ...

    @overload
    def embed(
        self, texts: Iterable[Any], *, layers: Layers = ..., batch_invariant: bool = ...
    ) -> list[EmbeddedSentence] | Iterator[EmbeddedSentence]: ...

    def embed(
        self, texts: str | Iterable[Any], *, layers: Layers = "all", batch_invariant: bool = False
    ) -> list[EmbeddedSentence] | Iterator[EmbeddedSentence]:
        """The sentences of a text, of several texts, or given as lists of words.

        Text is split into sentences and words as the model's corpus was; text without a word has no
        sentence. A list of words is one sentence. What has a length gives a list. Anything else
        that can be gone through gives an iterator, in bounded memory: it reads up to a thousand
        sentences ahead. `batch_invariant`: the same bits for a sentence whatever it is embedded
        with; slower.
        """
        LayerChoice(layers, self.num_layers)  # which refuses what cannot be had
        if isinstance(texts, str):
            return list(self._embed(self._read([texts]), layers, batch_invariant=batch_invariant))
        # Going through a data frame would give the names of its columns.
        is_table = hasattr(texts, "columns")
        if not isinstance(texts, Iterable) or isinstance(texts, _NO_TEXTS) or is_table:
            raise InputError(
                f"A {type(texts).__name__} cannot be embedded. Give a text, texts (one column of a "
                "table), or sentences as lists of words."
            )
        given = self._read(texts)
        if isinstance(texts, Sized):
            return list(self._embed(refuse_flat(given), layers, batch_invariant=batch_invariant))
        return self._embed(given, layers, batch_invariant=batch_invariant)

    def to(self, device: str) -> "WordEmbedder":
        """The same embedder, working on another device from now on."""
        raise ConfigError(f"{type(self).__name__} cannot move to device = {device!r}.")

    @overload
    def encode(
        self,
        sentences: str | Sequence[Any],
        *,
        layers: Layers = ...,
        batch_size: int | None = ...,
        show_progress_bar: bool | None = ...,
        convert_to_numpy: Literal[True] = ...,
        convert_to_tensor: Literal[False] = ...,
        device: str | None = ...,
        normalize_embeddings: bool = ...,
    ) -> Vectors: ...

    @overload
    def encode(
        self,
        sentences: str | Sequence[Any],
        *,
        layers: Layers = ...,
        batch_size: int | None = ...,
        show_progress_bar: bool | None = ...,
        convert_to_numpy: bool = ...,
        convert_to_tensor: Literal[True],
        device: str | None = ...,
        normalize_embeddings: bool = ...,
    ) -> Tensor: ...

    @overload
    def encode(
        self,
        sentences: str | Sequence[Any],
        *,
        layers: Layers = ...,
        batch_size: int | None = ...,
        show_progress_bar: bool | None = ...,
        convert_to_numpy: bool = ...,
        convert_to_tensor: bool = ...,
        device: str | None = ...,
        normalize_embeddings: bool = ...,
    ) -> Vectors | Tensor | list[Tensor]: ...

    def encode(  # noqa: PLR0913  # as many as sentence-transformers has
        self,
        sentences: str | Sequence[Any],
        *,
        layers: Layers = "average",
        batch_size: int | None = None,
        show_progress_bar: bool | None = None,
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        device: str | None = None,
        normalize_embeddings: bool = False,
    ) -> Vectors | Tensor | list[Tensor]:
        """One vector for each text, or list of words: the mean over its words. (N, D)

        (D,) for a single text. Zeros for a text without a word. All layers stand one after the
        other. The options are those of sentence-transformers: `batch_size` texts are read at once
        (by default as many as fit); `convert_to_tensor` gives one tensor on the embedder's device,
        `convert_to_numpy=False` a list of them; `device` moves the embedder there first;
        `normalize_embeddings` gives vectors of length 1.
        """
        if batch_size is not None and batch_size < 1:
            raise ConfigError(f"batch_size={batch_size}: the batch size must be at least 1.")
        if device is not None:
            self.to(device)
        given = [sentences] if isinstance(sentences, str) else list(sentences)
        size = batch_size or max(1, len(given))
        starts = track(
            range(0, len(given), size),
            "Encoding",
            console=Console(stderr=True, force_jupyter=False),  # there it needs ipywidgets
            disable=not show_progress_bar,
        )
        parts = [self._means(given[at : at + size], layers, first=at) for at in starts]
        found = np.concatenate(parts) if parts else self._means([], layers, first=0)
        if normalize_embeddings:
            found = normalized(found)
        each = found[0] if isinstance(sentences, str) else found
        if not (convert_to_tensor or not convert_to_numpy):
            return each
        tensor = from_numpy(each).to(getattr(self, "device", "cpu"))
        return tensor if convert_to_tensor or isinstance(sentences, str) else list(tensor)

    def _means(self, texts: Sequence[Any], layers: Layers, *, first: int) -> Vectors:
        """(N, D): the mean over the words of each text; `first`: the number of the first."""
        dim = self.dim * LayerChoice(layers, self.num_layers).num_layers
        sentences = self._embed(self._read(texts, first), layers, batch_invariant=False)
        found = ((sentence.index - first, sentence.vectors) for sentence in sentences)
        return text_means(found, len(texts), dim)

    def similarity(
        self,
        one: str | Sequence[Any] | Vectors,
        other: str | Sequence[Any] | Vectors,
        *,
        layers: Layers = "average",
    ) -> Any:
        """The cosine of two texts, a number; or of each of some with each of others, (N, M).

        Texts, or what `encode` made of them.
        """
        sides = [
            side if isinstance(side, np.ndarray) else self.encode(side, layers=layers)
            for side in (one, other)
        ]
        found = cosines(np.atleast_2d(sides[0]), np.atleast_2d(sides[1]))
        return float(found[0, 0]) if sides[0].ndim == sides[1].ndim == 1 else found

    def _read(self, texts: Iterable[Any], first: int = 0) -> Iterator[InputSentence]:
        return read_sentences(texts, self._preprocess, first)

    def _preprocess(self, text: str) -> PreprocessedText:
        return self.preprocessor(text)  # looked up only for a text: lists of words need none

    def _embed(
        self, given: Iterator[InputSentence], layers: Layers, *, batch_invariant: bool
    ) -> Iterator[EmbeddedSentence]:
        is_one = LayerChoice(layers, self.num_layers).is_one
        waiting: deque[InputSentence] = deque()

        def words() -> Iterator[Sequence[str]]:
            for sentence in given:
                waiting.append(sentence)
                yield sentence.words

        for vectors in self.stream(words(), layers=layers, batch_invariant=batch_invariant):
            sentence = waiting.popleft()
            yield EmbeddedSentence(
                tuple(sentence.words),
                vectors[0] if is_one else vectors,
                sentence.index,
                sentence.starts,
                self.truncation(sentence.words),
            )


def text_means(sentences: Iterable[tuple[int, Vectors]], num_texts: int, dim: int) -> Vectors:
    """(N, D): the mean over the words of each text, of whose sentences each comes with the text's
    number; zeros for a text without a word."""
    rows, counts = np.zeros((num_texts, dim)), np.zeros((num_texts, 1))
    for text, vectors in sentences:
        rows[text] += vectors.sum(axis=-2, dtype=np.float64).ravel()
        counts[text] += vectors.shape[-2]
    means: Vectors = (rows / np.maximum(counts, 1)).astype(np.float32)
    return means

"""Sequence to sequence: a text for a text. Translating, rewriting, summarising.

    in   the words of the source, (B, T, D), read with any embeddings, as for every other task
    then an LSTM, or a causal Transformer that was pretrained (`decoder.model`), over what is
         written so far; at each word it attends to the source (Luong et al.
         2015), and either writes a word of its vocabulary or copies one of the source
         (pointer-generator, See et al. 2017): a gate weighs the two
    out  losses of the words that should be written; or the words that are, by beam search

The most frequent words of the training data have vectors learned with the task. Words have numbers:
0 is no word, 1 the end, 2 a word that is not in the vocabulary; words of the source that are not in
it have numbers after the last, for each example its own.

A beam of one takes the best word each time, which is greedy search. What is written to its end
leaves the beam, which is then so much smaller (Sutskever et al. 2014). A beam that no sequence has
to leave finds the best of all.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Self, TypeAlias

import numpy as np
import pyarrow as pa
import torch
from pydantic import Field
from rich.console import RenderableType
from torch import Tensor, nn

from polyseme.config import Settings
from polyseme.data.batch import FIRST_ROW, UNK, Batch, Integers
from polyseme.display import PrintableText, html_words, sentence, summary
from polyseme.errors import ConfigError, InputError
from polyseme.model import Model
from polyseme.storage.installed import model_folder
from polyseme.tasks.embeddings.features import ByteDropout, InputDims, TaskInputs
from polyseme.tasks.families.family import Columns, Network, TaskBatch, TaskFamily, Text
from polyseme.tasks.families.labels import COLOURS, Context, ContextConfig, check_finite, pool
from polyseme.tasks.measures import TEXT_MEASURES, TextScores, load_bleu, score_texts
from polyseme.tasks.texts import TextReader, WordTuple

State: TypeAlias = tuple[Tensor, ...]
"""What a decoder carries on; the first dimension of each part is that of the sequences."""
Step: TypeAlias = Callable[[State, Tensor], tuple[Tensor, State]]
"""(N, ...), (N,) -> (N, V), (N, ...)"""


class BeamConfig(NamedTuple):
    """How wide and how far."""

    size: int
    max_length: int
    """Words that are written at most, the end counted."""
    length_penalty: float
    """Log p is divided by the length to this power before sequences are compared."""


class _Finished:
    """The best sequence of each example so far."""

    def __init__(self, num_examples: int) -> None:
        self.scores = [-float("inf")] * num_examples
        self.words: list[list[int]] = [[] for _ in range(num_examples)]

    def add(self, example: int, score: float, words: list[int]) -> None:
        """One more; of two that are alike the first is kept."""
        if score > self.scores[example]:
            self.scores[example], self.words[example] = score, words


def beam_search(
    step: Step, state: State, *, num_examples: int, end: int, config: BeamConfig
) -> list[list[int]]:
    """For each example the sequence with the highest score, without its end.

    `state`: of B examples. `end`: the word that ends a sequence, and also begins it.
    """
    size, device = config.size, state[0].device
    state = tuple(part.repeat_interleave(size, dim=0) for part in state)
    words = torch.full((num_examples, size), end, device=device)
    scores = torch.full((num_examples, size), -torch.inf, device=device)
    scores[:, 0] = 0  # all others are copies of the first until it has been written on
    written = words.new_empty((num_examples, size, 0))
    finished = _Finished(num_examples)
    for length in range(1, config.max_length + 1):
        log_probs, state = step(state, words.flatten())
        following = scores[..., None] + log_probs.view(num_examples, size, -1)  # (B, N, V)
        scores, index = following.flatten(start_dim=1).topk(size, dim=1)
        parent, words = index // following.shape[-1], index % following.shape[-1]
        # The state of each sequence is that of the one it goes on from.
        rows = (torch.arange(num_examples, device=device)[:, None] * size + parent).flatten()
        state = tuple(part[rows] for part in state)
        before = written.gather(1, parent[..., None].expand(-1, -1, written.shape[-1]))
        written = torch.cat([before, words[..., None]], dim=-1)
        is_done = words == end if length < config.max_length else torch.ones_like(words).bool()
        weight = length**config.length_penalty
        for example, place in (is_done & (scores > -torch.inf)).nonzero().tolist():
            found = [word for word in written[example, place].tolist() if word != end]
            finished.add(example, float(scores[example, place]) / weight, found)
        scores = scores.masked_fill(is_done, -torch.inf)
        if not _may_improve(scores, finished, config):
            break
    return finished.words


def _may_improve(scores: Tensor, finished: _Finished, config: BeamConfig) -> bool:
    """Whether any sequence that is being written could still become its example's best: log p only
    falls, and is divided by the longest length at most."""
    most = scores.amax(dim=1) / config.max_length**config.length_penalty
    return any(best > known for best, known in zip(most.tolist(), finished.scores, strict=True))


END, UNKNOWN, FIRST_WORD = 1, 2, FIRST_ROW
_SMALLEST = 1e-30  # of a probability whose logarithm is taken


class DecoderConfig(Settings):
    """How a text is written."""

    model: Path | None = None
    """Folder of a causal model of Polyseme (as the preset gpt-mini) that reads what is written so
    far, and is trained further with the task; without it an LSTM does, which is trained from
    scratch. The folder is needed beside the task."""
    dim: int = Field(256, ge=2, le=8_192)
    """Dimension of the LSTM and of the vectors of words that are written; a model has its own."""
    dropout: float = Field(0.3, ge=0, lt=1)
    """Dropout on words and outputs in training."""
    copies: bool = True
    """Whether words of the source can be copied, those that training has never seen too."""
    max_length: int = Field(128, ge=1, le=4_096)
    """Words that are written at most, the end counted; training cuts longer targets there."""
    beam: int = Field(4, ge=1, le=256)
    """Beam size; 1 is greedy decoding, the fastest."""
    length_penalty: float = Field(1.0, ge=0, le=4)
    """Sequences are compared by log p / length to this power: 0 prefers short ones."""


class Source(NamedTuple):
    """What was read."""

    vectors: Tensor  # (B, T, D)
    mask: Tensor  # (B, T)
    words: Tensor  # (B, T)
    """By number."""

    def select(self, rows: Tensor) -> "Source":
        """Those of some examples; an example may be there several times."""
        return Source(*(part[rows] for part in self))


class Output(NamedTuple):
    """What is known at each of U words that are to be written."""

    log_probs: Tensor  # (B, U, V)
    """Of words of the vocabulary, if one of them is written."""
    attention: Tensor  # (B, U, T)
    """Of words of the source, if one of them is copied."""
    gate: Tensor  # (B, U)
    """The probability that one is copied."""


class LstmWriter(nn.Module):
    """Reads what is written so far by an LSTM that begins with what the source is about."""

    def __init__(self, dim: int, *, read: int) -> None:
        super().__init__()
        self.start = nn.Linear(2 * read, 2 * dim)
        self.lstm = nn.LSTM(dim, dim, batch_first=True)

    def begin(self, pooled: Tensor) -> State:
        """(B, 2 D) of the source -> hidden and cell, (B, H) each."""
        hidden, cell = self.start(pooled).tanh().chunk(2, dim=-1)
        return hidden, cell

    def forward(self, words: Tensor, embedded: Tensor, state: State) -> tuple[Tensor, State]:  # noqa: ARG002
        """(B, U) words and their vectors (B, U, H) -> (B, U, H), and the state behind them."""
        first = (state[0][None].contiguous(), state[1][None].contiguous())
        hidden, (last, cell) = self.lstm(embedded, first)
        return hidden, (last[0], cell[0])


class PretrainedWriter(nn.Module):
    """The same by a causal model, which knows how texts go on; its state is what is written."""

    def __init__(self, folder: Path, words: Sequence[str], *, max_length: int) -> None:
        super().__init__()
        model = Model.load(model_folder(folder))
        config = model.config.encoder
        if config.direction != "forward" or not config.contextualizer.num_layers:
            raise ConfigError(
                f"{folder} cannot generate text: decoder.model must be causal (direction "
                f"'forward', as in the preset gpt-mini); this one is '{config.direction}'."
            )
        longest = config.contextualizer.max_length
        if longest is not None and longest < max_length:
            raise ConfigError(
                f"{folder} reads {longest} words at a time: set decoder.max_length to at most that."
            )
        self.encoder, self.dim = model.network.encoder, config.output_dim
        # Rows of this table are the numbers of words: none, the end, which also begins, the unknown
        # word, and those of the vocabulary.
        table = model.vocabulary.table_of(pa.array(words, pa.string()))
        ids, chars = table.ids.copy(), table.char_ids.astype(np.int64)
        ids[UNKNOWN], chars[UNKNOWN] = UNK, model.vocabulary.special_token_chars[UNK]
        self._ids, self._char_ids = torch.from_numpy(ids), torch.from_numpy(chars)

    def begin(self, pooled: Tensor) -> State:
        """Nothing is written yet: (B, 0)."""
        return (torch.zeros(len(pooled), 0, dtype=torch.int64, device=pooled.device),)

    def forward(self, words: Tensor, embedded: Tensor, state: State) -> tuple[Tensor, State]:  # noqa: ARG002
        """(B, U) words behind those of the state -> (B, U, D), and all of them."""
        [before] = state
        whole = torch.cat([before, words], dim=1)
        with_padding = torch.cat([whole.new_zeros(1), whole.flatten()])
        distinct, index = torch.unique(with_padding, return_inverse=True)
        ids, char_ids = (each.to(whole.device) for each in (self._ids, self._char_ids))
        lengths = whole.new_full((len(whole),), whole.shape[1])
        batch = Batch(index[1:].view(whole.shape), lengths, ids[distinct], char_ids[distinct])
        return self.encoder(batch).top[:, before.shape[1] :], (whole,)


class AttentionDecoder(Network):
    """Layers that read, an LSTM or a pretrained Transformer that writes."""

    def __init__(
        self, context: ContextConfig, config: DecoderConfig, dims: InputDims, words: Sequence[str]
    ) -> None:
        """`words`: those of the vocabulary."""
        super().__init__()
        self.config, self.num_words = config, FIRST_WORD + len(words)
        self.context = Context(context, dims)
        read, dim = self.context.dim, config.dim
        self.writer: LstmWriter | PretrainedWriter
        if config.model is None:
            self.writer = LstmWriter(dim, read=read)
        else:
            self.writer = PretrainedWriter(config.model, words, max_length=config.max_length)
            dim = self.writer.dim
        self.embedding = nn.Embedding(self.num_words, dim)  # it is also the output layer
        nn.init.normal_(self.embedding.weight, std=dim**-0.5)
        self.query = nn.Linear(dim, read, bias=False)
        self.combine = nn.Linear(dim + read, dim)
        self.bias = nn.Parameter(torch.zeros(self.num_words))
        self.copy = nn.Linear(2 * dim + read, 1) if config.copies else None
        self.dropout = ByteDropout(config.dropout)

    def losses(self, inputs: TaskInputs, batch: TaskBatch) -> Tensor:
        """(B,): -log p of the target's words, the mean over them, each after the right ones."""
        source, state = self._read(inputs, batch)
        target = batch["target"]  # (B, U)
        is_word = target > 0
        before = torch.cat([torch.full_like(target[:, :1], END), target[:, :-1]], dim=1)
        output, _ = self._write(source, state, before)
        losses = -self._log_prob_of(output, source, target) * is_word
        return losses.sum(dim=1) / is_word.sum(dim=1)

    @torch.no_grad()
    def decode(self, inputs: TaskInputs, batch: TaskBatch) -> list[list[int]]:
        """The words of each text, by number."""
        source, start = self._read(inputs, batch)
        num_numbers = max(self.num_words, int(source.words.max()) + 1)
        row = torch.arange(len(batch), device=source.words.device)

        def step(state: State, words: Tensor) -> tuple[Tensor, State]:
            rows, *written = state
            own = source.select(rows)
            output, after = self._write(own, tuple(written), words[:, None])
            check_finite(output.log_probs[:, 0, END:])
            log_probs = all_log_probs(output, own.words, num_numbers)[:, 0]
            log_probs[:, :END] = log_probs[:, UNKNOWN] = -torch.inf
            return log_probs, (rows, *after)

        own = self.config
        beam = BeamConfig(own.beam, own.max_length, own.length_penalty)
        return beam_search(step, (row, *start), num_examples=len(batch), end=END, config=beam)

    def _read(self, inputs: TaskInputs, batch: TaskBatch) -> tuple[Source, State]:
        """What is read, and the state from which is written."""
        vectors = self.context(inputs)
        state = self.writer.begin(pool(vectors, inputs.mask))
        vectors = vectors * inputs.mask[..., None]
        return Source(vectors, inputs.mask, batch["source"]), state

    def _write(self, source: Source, state: State, before: Tensor) -> tuple[Output, State]:
        """`before` (B, U): the word before each that is to be written."""
        known = torch.where(before < self.num_words, before, UNKNOWN)
        embedded = self.dropout(self.embedding(known))
        hidden, state = self.writer(known, embedded, state)
        asked = self.query(hidden) @ source.vectors.transpose(1, 2)  # (B, U, T)
        attention = asked.masked_fill(~source.mask[:, None], -torch.inf).softmax(dim=-1)
        found = attention @ source.vectors
        written = self.dropout(self.combine(torch.cat([hidden, found], dim=-1)).tanh())
        scores = written @ self.embedding.weight.T + self.bias
        # No word has number 0; a large negative number, since infinity is for damaged weights.
        scores = scores.index_fill(2, scores.new_zeros(1).long(), -1e4)
        if self.copy is None:
            gate = attention.new_zeros(attention.shape[:2])
        else:
            gate = self.copy(torch.cat([hidden, found, embedded], dim=-1)).sigmoid()[..., 0]
        return Output(scores.float().log_softmax(dim=-1), attention, gate), state

    def _log_prob_of(self, output: Output, source: Source, target: Tensor) -> Tensor:
        """(B, U): of the right word, written or copied."""
        known = torch.where(target < self.num_words, target, 0)
        own = output.log_probs.gather(2, known[..., None])[..., 0].exp()
        is_right = source.words[:, None] == target[..., None]  # (B, U, T)
        copied = (output.attention * is_right).sum(dim=-1)
        gate = output.gate
        return ((1 - gate) * own + gate * copied).clamp_min(_SMALLEST).log()


def all_log_probs(output: Output, source: Tensor, num_numbers: int) -> Tensor:
    """(B, U, W): of every number, those of words of the source included; -inf for none."""
    probs = output.log_probs.exp() * (1 - output.gate[..., None])
    whole = probs.new_zeros((*probs.shape[:2], num_numbers))
    whole[..., : probs.shape[-1]] = probs
    place = source[:, None].expand_as(output.attention)
    whole.scatter_add_(2, place, output.attention * output.gate[..., None])
    return whole.log()


MAX_WORDS = 1 << 18
"""Words of the target's vocabulary."""
LONGEST_SOURCE = 4_096
"""Words of a text that is read whole: every word written attends to all of them."""


class Seq2SeqConfig(Settings):
    """A text for a text: translating, rewriting, summarising."""

    kind: Literal["seq2seq"] = "seq2seq"
    context: ContextConfig = ContextConfig()
    """Layers that read the source."""
    decoder: DecoderConfig = DecoderConfig()
    """How the target is written."""
    vocabulary: int = Field(8_000, ge=1, le=MAX_WORDS)
    """Words that can be written without being copied: the most frequent of the training data's
    targets."""
    by_sentence: bool = True
    """Whether a text to be predicted is read sentence by sentence, as for translating; otherwise as
    a whole, as for summarising."""


@dataclass(frozen=True, slots=True)
class Translated:
    """A text, and what is to be written for it."""

    source: Text
    target: Text
    by_character: bool = False
    """Whether characters are the words of both."""

    def with_words(self, reader: TextReader, /) -> Self:
        """Both as words."""
        return replace(
            self, source=self._split(self.source, reader), target=self._split(self.target, reader)
        )

    def _split(self, text: Text, reader: TextReader) -> WordTuple:
        if isinstance(text, tuple):
            return tuple("".join(text)) if self.by_character else text
        if self.by_character:
            return tuple("".join(reader.preprocess.normalize(text)[0].split()))
        return reader.split(text)

    @property
    def sentences(self) -> tuple[WordTuple, ...]:
        """The source."""
        assert isinstance(self.source, tuple)
        return (self.source,)


@dataclass(frozen=True)
class TargetVocabulary:
    """Words that can be written, in the order of their numbers from `FIRST_WORD` on."""

    words: WordTuple = ()

    @classmethod
    def of(cls, targets: Sequence[WordTuple], most: int) -> "TargetVocabulary":
        """The most frequent; of equally frequent ones the first in the order of characters."""
        counts = Counter(word for words in targets for word in words)
        ordered = sorted(counts, key=lambda word: (-counts[word], word))
        return cls(tuple(ordered[:most]))

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each."""
        return {word: number for number, word in enumerate(self.words, start=FIRST_WORD)}

    def __len__(self) -> int:
        """How many numbers there are."""
        return FIRST_WORD + len(self.words)

    def copied(self, source: WordTuple) -> dict[str, int]:
        """Numbers of the source's words that are not in the vocabulary."""
        unknown = dict.fromkeys(word for word in source if word not in self.numbers)
        return {word: number for number, word in enumerate(unknown, start=len(self))}

    def encode(self, words: WordTuple, copied: Mapping[str, int]) -> list[int]:
        """Words by number."""
        return [self.numbers.get(word) or copied.get(word, UNKNOWN) for word in words]

    def decode(self, numbers: Sequence[int], source: WordTuple) -> WordTuple:
        """The reverse, for what was written for this source."""
        own = {number: word for word, number in self.copied(source).items()}
        return tuple(
            own[number] if number >= len(self) else self.words[number - FIRST_WORD]
            for number in numbers
        )


@dataclass(frozen=True, repr=False)
class PredictedText:
    """A text, and what was written for it."""

    source: str
    text: str

    def __repr__(self) -> str:
        return summary("Predicted", sentence(self.text.split()), sentence(self.source.split()))

    def _repr_html_(self) -> str:
        return html_words([(self.source, "", ""), (self.text, "", COLOURS[0])])

    def __rich__(self) -> RenderableType:
        text = PrintableText(self.source)
        text.append("  →  ", style="dim")
        return text.append(self.text, style="bold cyan")

    def as_json(self) -> dict[str, Any]:
        """What is written."""
        return {"source": self.source, "text": self.text}


@dataclass(frozen=True)
class Seq2Seq(TaskFamily[Translated, PredictedText]):
    """A text for a text."""

    example_types: ClassVar = (Translated,)
    measures: ClassVar = TEXT_MEASURES
    config: Seq2SeqConfig
    vocabulary: TargetVocabulary = field(default=TargetVocabulary(), kw_only=True)
    by_character: bool = field(default=False, kw_only=True)

    def fit(self, examples: Sequence[Translated]) -> Self:
        """With the vocabulary of the training data, and whether it is read by character."""
        load_bleu()  # what is missing is to be told before an epoch is over, not after
        targets = [_target(example) for example in examples]
        vocabulary = TargetVocabulary.of(targets, self.config.vocabulary)
        if not vocabulary.words:
            raise InputError("There is nothing to learn: all targets are empty.")
        return replace(self, vocabulary=vocabulary, by_character=examples[0].by_character)

    def to_json(self) -> dict[str, Any]:
        """The same."""
        return {"target_words": list(self.vocabulary.words), "by_character": self.by_character}

    def restore(self, told: Mapping[str, Any]) -> Self:
        """The reverse."""
        words, by_character = told["target_words"], told["by_character"]
        is_list = isinstance(words, list) and 0 < len(words) <= MAX_WORDS
        if not is_list or not all(isinstance(word, str) and word for word in words):
            raise ValueError(f"target_words are not a list of up to {MAX_WORDS:,} words")
        if len(set(words)) < len(words) or not isinstance(by_character, bool):
            raise ValueError("target_words repeat a word, or by_character is not true or false")
        return replace(self, vocabulary=TargetVocabulary(tuple(words)), by_character=by_character)

    def facts(self) -> list[tuple[str, str]]:
        """How many words it can write."""
        units = "characters" if self.by_character else "words"
        return [("writes", f"{len(self.vocabulary.words):,} {units}")]

    def encode(self, examples: Sequence[Translated], *, with_gold: bool) -> Columns:
        """`source` (B, T) and, with its end, `target` (B, U): words by number."""
        source, target = [], []
        for example in examples:
            [words] = example.sentences
            copied = self.vocabulary.copied(words)
            source.append(np.array(self.vocabulary.encode(words, copied), np.int64))
            target.append(self._encode_target(example, copied))
        return {"source": source, "target": target} if with_gold else {"source": source}

    def _encode_target(self, example: Translated, copied: Mapping[str, int]) -> Integers:
        can_copy = self.config.decoder.copies
        numbers = self.vocabulary.encode(_target(example), copied if can_copy else {})
        return np.array([*numbers, END][: self.config.decoder.max_length], np.int64)

    def network(self, dims: InputDims) -> AttentionDecoder:
        """Layers that read, and what writes."""
        config = self.config
        return AttentionDecoder(config.context, config.decoder, dims, self.vocabulary.words)

    def predicted(self, example: Translated, found: Sequence[int]) -> PredictedText:
        """Both texts, their words joined."""
        [source] = example.sentences
        written = self.vocabulary.decode(found, source)
        return PredictedText(self._joined(source), self._joined(written))

    def score(
        self, examples: Sequence[Translated], predicted: Sequence[PredictedText]
    ) -> TextScores:
        """BLEU and chrF, of Chinese by characters."""
        gold = [self._joined(_target(example)) for example in examples]
        found = [each.text for each in predicted]
        return score_texts(gold, found, "zh" if self.by_character else "none")

    def of_texts(self, texts: tuple[str, ...], reader: TextReader) -> Iterator[Translated]:
        """Every sentence of a text, or the text as a whole."""
        if not self.config.by_sentence:
            words = reader.words(texts[0], LONGEST_SOURCE)
            yield Translated(self._units(words), (), self.by_character)
            return
        is_empty = True
        for words in reader.sentences(texts[0]):
            is_empty = False
            yield Translated(self._units(words), (), self.by_character)
        if is_empty:
            raise InputError(f"There is no word in {texts[0][:60]!r}.")

    def _units(self, words: WordTuple) -> WordTuple:
        return tuple("".join(words)) if self.by_character else words

    def _joined(self, words: WordTuple) -> str:
        return "".join(words) if self.by_character else " ".join(words)


def _target(example: Translated) -> WordTuple:
    assert isinstance(example.target, tuple)
    return example.target

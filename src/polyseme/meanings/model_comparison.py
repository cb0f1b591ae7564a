"""A corpus and some presets in; the same minutes of training for each, and what came of it, out.

    perplexity   of held-out text, where the preset predicts words from one side or behind a mask;
                 of a 3-gram model of the same text and words, too, where one predicts the next word
    senses       uses of two words whose word is hidden: how many find a use of their own word as
                 the nearest; 50 % is chance
    tags         parts of speech read off one layer by logistic regression, on a tagged text
    nearest      the uses most alike to one use of a word

Equal time, not equal steps: what a model costs is part of what it is worth. The hidden words come
from the corpus itself, so that nothing has to be labelled.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from polyseme.data.ngrams import NgramConfig, held_out_perplexity, scratch_for_counting
from polyseme.display import html_table, summary
from polyseme.embedding.embedder import Embedder
from polyseme.errors import InputError
from polyseme.limits import read_lines
from polyseme.meanings.concordance.uses import Uses, find_uses
from polyseme.meanings.features.use_encoder import ModelUseEncoder
from polyseme.meanings.features.use_features import Floats, Labels
from polyseme.meanings.groups.grouping import unit_length
from polyseme.meanings.index.build import choose_words
from polyseme.meanings.nearest import most_alike
from polyseme.meanings.report import page
from polyseme.meanings.settings import UseIndexConfig
from polyseme.model import Model, count_parameters
from polyseme.presets import PRESETS
from polyseme.pretraining import PretrainConfig
from polyseme.pretraining.run import pretrain
from polyseme.progress import SILENT, Progress
from polyseme.text.corpus import Corpus
from polyseme.text.formats.marked import parse_line

_UPOS = 3  # the column of CoNLL-U
Words = tuple[str, ...]
HIDDEN = "□"
"""What stands in the place of a hidden word. No model has learned it."""
_PAIRS, _USES, _FEWEST = 20, 60, 20  # pairs of words, uses of each, and at least so many
_SENTENCES = 1_500  # tagged ones that are read
_LINES = 5


@dataclass(frozen=True)
class ComparedModel:
    """One preset after its minutes."""

    preset: str
    parameters: int | None
    """None of an n-gram model, which has counts."""
    words_read: int
    minutes: float
    perplexity: Mapping[str, float]  # of each part of its objective
    senses: float | None
    """The share of hidden words told apart; None if the corpus has too few frequent words."""
    tags: tuple[float, ...]
    """The share of parts of speech that are right, by layer; empty without a tagged text."""
    nearest: tuple[str, ...]  # sentences whose use is most alike to the one asked for

    @property
    def best_tags(self) -> tuple[int, float] | None:
        """The layer that knows parts of speech best, and its share."""
        if not self.tags:
            return None
        layer = int(np.argmax(self.tags))
        return layer, self.tags[layer]


@dataclass(frozen=True)
class ModelComparison:
    """All of them."""

    models: tuple[ComparedModel, ...]
    unigram: Mapping[str, float]  # perplexity of a model that knows only how frequent words are
    query: str  # the sentence whose use was looked for; empty if no word was asked for
    notes: tuple[str, ...]

    header = ("model", "parameters", "words read", "minutes", "perplexity", "senses", "tags")

    def rows(self) -> list[tuple[object, ...]]:
        """A row for each model, as `header` names them."""
        return [
            (
                each.preset,
                "" if each.parameters is None else each.parameters,
                each.words_read,
                round(each.minutes, 1),
                "; ".join(f"{part} {value:,.1f}" for part, value in each.perplexity.items()),
                "" if each.senses is None else f"{each.senses:.0%}",
                "" if each.best_tags is None
                else f"{each.best_tags[1]:.1%} (layer {each.best_tags[0]})",
            )
            for each in self.models
        ]  # fmt: skip

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        found = {"unigram": dict(self.unigram), "query": self.query, "notes": list(self.notes)}
        return {"models": [asdict(each) for each in self.models], **found}

    def __repr__(self) -> str:
        return summary("ModelComparison", *(each.preset for each in self.models))

    def _repr_html_(self) -> str:
        tables = [html_table("Models after equal time", self.rows(), self.header)]
        if self.query:
            lines = [(each.preset, line) for each in self.models for line in each.nearest]
            tables.append(html_table(f"Uses most like: {self.query}", lines, ("model", "use")))
        tables.append(html_table("How to read this", [(note,) for note in self.notes]))
        return "".join(tables)

    def to_html(self) -> str:
        """A page of its own."""
        return page("Models compared", self._repr_html_(), language="en")


def compare_models(
    corpus: Corpus,
    presets: Sequence[str],
    out: Path,
    *,
    minutes: float,
    word: str | None = None,
    tagged: Path | None = None,
    progress: Progress = SILENT,
) -> ModelComparison:
    """Train each preset for so long, or take it as it was trained before, and measure all."""
    if unknown := [name for name in presets if name not in PRESETS]:
        raise InputError(f"There is no preset {unknown[0]!r}. There are: {', '.join(PRESETS)}.")
    pairs = hidden_pairs(corpus)
    asked = find_uses(corpus, word) if word is not None else None
    treebank = list(tagged_sentences(tagged, _SENTENCES)) if tagged is not None else []
    found: list[ComparedModel] = []
    unigram: Mapping[str, float] = {}
    is_counted = False
    for preset in presets:
        progress.log(f"{preset}: {PRESETS[preset].about}")
        given = {"corpus": corpus.folder, "out": out / preset, "preset": preset}
        done = pretrain(PretrainConfig(**given, hours=minutes / 60), progress)
        assert done is not None  # one process
        unigram = unigram or done.model.metadata.get("unigram_perplexity", {})
        if not is_counted and "forward" in done.model.metadata["perplexity"]:
            found.insert(0, _count(corpus, done.model, progress))
            is_counted = True
        found.append(_measure(preset, done.model, pairs, asked, treebank))
    query = asked[0].text if asked else ""
    notes = _notes(minutes, pairs, tagged)
    return ModelComparison(tuple(found), unigram, query, notes)


def _count(corpus: Corpus, model: Model, progress: Progress) -> ComparedModel:
    """What counting gives: n-grams of the same text, with the words of a model."""
    began, config = time.monotonic(), NgramConfig()
    with scratch_for_counting(corpus) as scratch:
        counted = held_out_perplexity(
            corpus,
            model.vocabulary.words,
            config,
            scratch=Path(scratch),
            threads=torch.get_num_threads(),
            progress=progress,
        )
    minutes, perplexity = (time.monotonic() - began) / 60, {"forward": counted.perplexity}
    name, words = f"{config.order}-gram", corpus.read_stats["words"]
    return ComparedModel(name, None, words, minutes, perplexity, None, (), ())


def _measure(
    preset: str,
    model: Model,
    pairs: Sequence[tuple[Uses, Uses]],
    asked: Uses | None,
    treebank: Sequence[tuple[Words, Words]],
) -> ComparedModel:
    embedder = Embedder(model)
    encoder = ModelUseEncoder(embedder)
    told = model.metadata
    apart = [told_apart(encoder, first, second) for first, second in pairs]
    return ComparedModel(
        preset,
        count_parameters(model.network),
        told["words"],
        60 * told["hours"],
        told["perplexity"],
        float(np.mean(apart)) if apart else None,
        probe_layers(embedder, treebank) if treebank else (),
        nearest_lines(encoder, asked) if asked else (),
    )


def hidden_pairs(corpus: Corpus) -> list[tuple[Uses, Uses]]:
    """Uses of two frequent content words each; the same for every model, and every time."""
    random = np.random.default_rng(1)
    try:
        words = choose_words(corpus, UseIndexConfig(min_uses=_FEWEST))
    except InputError:
        return []
    frequent = sorted(words, key=lambda word: (-words[word], word))[: 20 * _PAIRS]
    drawn = random.permutation(frequent)[: 2 * _PAIRS].tolist()
    uses = []
    for word in drawn:
        every = find_uses(corpus, word)
        uses.append(every.select(np.sort(random.permutation(len(every))[:_USES])))
    return list(zip(uses[0::2], uses[1::2], strict=False))


def told_apart(encoder: ModelUseEncoder, first: Uses, second: Uses) -> float:
    """The share of uses whose nearest other use is of the same word, the word being hidden."""
    sentences, spans, labels = [], [], []
    for label, uses in enumerate((first, second)):
        for words, (begin, end) in zip(uses.sentences(), uses.spans.tolist(), strict=True):
            sentences.append([*words[:begin], HIDDEN, *words[end:]])
            spans.append((begin, begin + 1))
            labels.append(label)
    features = encoder(sentences, np.array(spans))
    return nearest_is_own(unit_length(features.context), np.array(labels))


def nearest_is_own(vectors: Floats, labels: Labels) -> float:
    """The share of rows whose nearest other row has the same label, both labels counting alike."""
    cosines = vectors @ vectors.T
    np.fill_diagonal(cosines, -np.inf)
    is_own = labels[cosines.argmax(axis=1)] == labels
    return float(np.mean([is_own[labels == label].mean() for label in np.unique(labels)]))


def probe_layers(embedder: Embedder, treebank: Sequence[tuple[Words, Words]]) -> tuple[float, ...]:
    """For each layer, the share of parts of speech that logistic regression reads off it.

    Four fifths of the sentences are learned from, the others measured on.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    layers = list(embedder.stream([words for words, _ in treebank]))
    cut = len(treebank) * 4 // 5
    sides = [treebank[:cut], treebank[cut:]]
    gold = [[tag for _, tags in side for tag in tags] for side in sides]
    found = []
    for number in range(embedder.num_layers):
        train, test = (
            np.concatenate([each[number] for each in some]) for some in (layers[:cut], layers[cut:])
        )
        scaler = StandardScaler().fit(train)
        probe = LogisticRegression(max_iter=200).fit(scaler.transform(train), gold[0])
        found.append(float(probe.score(scaler.transform(test), gold[1])))
    return tuple(found)


def tagged_sentences(path: Path, number: int) -> Iterator[tuple[Words, Words]]:
    """The first so many sentences of a treebank: words, and their parts of speech."""
    return islice(((words, tags) for words, tags in _conllu_sentences(path) if words), number)


def _conllu_sentences(path: Path) -> Iterator[tuple[Words, Words]]:
    """Words and tags as a corpus has them: a contraction is one word, its tags joined by +."""
    words: list[str] = []
    tags: list[str] = []
    covered_to = 0
    try:
        for line in read_lines(path):
            text = line.decode("utf-8", "replace").rstrip("\r\n")
            if not text.strip():
                yield tuple(words), tuple(tags)
                words, tags, covered_to = [], [], 0
            elif (found := None if text.startswith("#") else parse_line(text)) is None:
                continue
            elif found.last is None and found.first <= covered_to:
                tags[-1] += f"{'+' * bool(tags[-1])}{found.columns[_UPOS]}"
            elif not found.is_empty_node:
                covered_to = found.last or covered_to
                words.append(found.form)
                tags.append("" if found.last else found.columns[_UPOS])
        yield tuple(words), tuple(tags)
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {error}.") from error


def nearest_lines(encoder: ModelUseEncoder, uses: Uses) -> tuple[str, ...]:
    """The sentences of the uses most alike to the first."""
    features = encoder.encode(uses)
    order, _ = most_alike(features.select(np.array([0])), features, _LINES + 1)
    return tuple(uses[row].text for row in order if row)[:_LINES]


def _notes(
    minutes: float, pairs: Sequence[tuple[Uses, Uses]], tagged: Path | None
) -> tuple[str, ...]:
    perplexity = (
        "Perplexities of forward and backward compare with each other. That of masked words does "
        "not: the model sees both sides. That of word2vec predicts neighbours, not the next word."
    )
    notes = [f"Each model was trained for about {minutes:g} minutes on this machine.", perplexity]
    if pairs:
        notes.append(
            f"Senses: in uses of {len(pairs)} pairs of words the word was hidden; the share whose "
            "nearest use is of the same word. 50% is chance. A model with one vector per word "
            "cannot do better."
        )
    else:
        notes.append(f"Senses: too few words with at least {_FEWEST} uses to evaluate.")
    if tagged is None:
        notes.append("Parts of speech: not evaluated. Give a tagged text with --tagged.")
    return tuple(notes)

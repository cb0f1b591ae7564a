"""Whether names tell groups apart: a reader who sees only names places lines of the other half.

    python -m benchmarks.names MODEL DATA --corpus CORPUS --out OUT
    python -m benchmarks.names MODEL DATA --corpus CORPUS --out OUT --only mixed,sememe

Each group of a word is named by half of its uses, or by 60 of them; the other half are placed by
two readers, who know nothing of the model. *match* takes the group of whose name the line has most
words, forms of one stem being one; *vectors* the group whose name is nearest to the line, by word
vectors learned from CORPUS (latent semantic analysis). A line that *match* cannot place counts as
one divided by the number of groups. Right answers are averaged over groups, then over words.

    coarsewsd    senses of CoarseWSD-20, in Wikipedia
    dwug         human clusters of DWUG EN with at least 20 uses
    sememe       senses of Chinese words
    mixed        pairs of frequent nouns of CORPUS, each as if it were one word

Beside the names: names drawn at random from the corpus's words, which is what they must beat, and
all lines of the group, of which a name can only be a part.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import polyseme
from benchmarks.change import read_dwug
from benchmarks.gains import unpacked
from benchmarks.senses import model_and_data, nouns_of
from benchmarks.senses_data import read_coarsewsd, read_sememe
from polyseme.embedding.embedder import Embedder
from polyseme.meanings.concordance.background import Background
from polyseme.meanings.concordance.uses import find_uses
from polyseme.meanings.features.topics import Topics
from polyseme.meanings.features.use_encoder import ModelUseEncoder
from polyseme.meanings.groups.calibration import topics_of
from polyseme.meanings.groups.grouping import unit_length
from polyseme.meanings.groups.names import SLOT, GroupName, NameSource, stem
from polyseme.storage.files import write_text
from polyseme.text.corpus import Corpus

Floats = npt.NDArray[np.float32]
_FEWEST = 20  # uses of a group that is named
_MOST = 1_000  # uses of a word
_FEW = 60  # uses that a group is named by


@dataclass(frozen=True)
class Word:
    """Lines with a word in each, and the group of each, as people or the corpus tell it."""

    sentences: list[list[str]]
    spans: list[tuple[int, int]]
    groups: list[str]
    documents: list[str] | None = None


def main() -> None:
    parser = model_and_data(__doc__)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--only", default="coarsewsd,dwug,mixed")
    arguments = parser.parse_args()
    embedder = polyseme.load(arguments.model, threads=arguments.threads)
    assert isinstance(embedder, Embedder)
    corpus = Corpus.open(arguments.corpus)
    reader = topics_of(corpus)
    assert reader
    told: dict[str, dict[str, float]] = {}
    for name in arguments.only.split(","):
        rows: dict[str, list[float]] = defaultdict(list)
        for word in _words(name, arguments, corpus):
            for row, value in _measure(word, ModelUseEncoder(embedder), corpus, reader):
                rows[row].append(value)
        told[name] = {row: float(np.mean(values)) for row, values in rows.items()}
        for row, value in told[name].items():
            error = np.std(rows[row], ddof=1) / np.sqrt(len(rows[row]))
            print(f"{name:10} {row:34} {value:.3f} ± {error:.3f}", flush=True)
    path = arguments.out / f"{Path(arguments.model).name}-names.json"
    write_text(path, json.dumps(told, indent=1))


def _words(name: str, arguments: Any, corpus: Corpus) -> Iterator[Word]:
    scratch = arguments.out / "data"
    match name:
        case "coarsewsd":
            labelled = read_coarsewsd(unpacked(arguments.data, "coarsewsd20", scratch))
        case "sememe":
            labelled = read_sememe(unpacked(arguments.data, "sememe-wsd-zh", scratch))
        case "dwug":
            for judged in read_dwug(unpacked(arguments.data, "dwug-en", scratch)):
                sentences, spans = ([*each] for each in zip(*judged.uses, strict=True))
                clusters = [str(cluster) if cluster >= 0 else "" for cluster in judged.clusters]
                yield Word(sentences, spans, clusters)
            return
        case "mixed":
            yield from _mixed(corpus)
            return
        case _:
            raise SystemExit(f"{name} is no data set of this benchmark.")
    by_word: dict[str, list[Any]] = defaultdict(list)
    for use in labelled:
        by_word[use.word].append(use)
    for uses in by_word.values():
        yield Word([u.words for u in uses], [u.span for u in uses], [u.sense for u in uses])


def _mixed(corpus: Corpus) -> Iterator[Word]:
    """Pairs of nouns that most corpora have, each pair once."""
    nouns = nouns_of(corpus)
    for first, second in zip(nouns[0::2], nouns[1::2], strict=False):
        both = [find_uses(corpus, word) for word in (first, second)]
        yield Word(
            [words for uses in both for words in uses.sentences()],
            [(int(b), int(e)) for uses in both for b, e in uses.spans],
            [word for word, uses in zip((first, second), both, strict=True) for _ in uses],
            [str(each) for uses in both for each in uses.metadata("document")],
        )


def _of_rows(source: NameSource, rows: npt.NDArray[np.int64]) -> NameSource:
    """The same of some uses."""
    documents = source.documents
    return replace(
        source,
        sentences=[source.sentences[row] for row in rows.tolist()],
        spans=source.spans[rows],
        substitutes=None if source.substitutes is None else source.substitutes[rows],
        documents=None if documents is None else [documents[row] for row in rows],
    )


def _measure(
    word: Word, encoder: ModelUseEncoder, corpus: Corpus, reader: Topics
) -> Iterator[tuple[str, float]]:
    """How often lines are placed rightly, by each kind of name and reader."""
    random = np.random.default_rng(1)
    order = random.permutation(len(word.groups))
    by_group = defaultdict(list)
    for number in order.tolist():
        by_group[word.groups[number]].append(number)
    groups = [rows for name, rows in sorted(by_group.items()) if name and len(rows) >= _FEWEST]
    if len(groups) < 2:
        return
    share = min(1.0, _MOST / sum(map(len, groups)))
    groups = [rows[: max(_FEWEST, int(share * len(rows)))] for rows in groups]
    chosen = [row for rows in groups for row in rows]
    sentences, spans = [word.sentences[row] for row in chosen], [word.spans[row] for row in chosen]
    labels = np.repeat(np.arange(len(groups)), [len(rows) for rows in groups])
    documents = None if word.documents is None else [word.documents[row] for row in chosen]
    features = encoder(sentences, np.array(spans))
    source = NameSource(
        sentences,
        np.array(spans),
        Background.of(corpus),
        features.substitutes,
        encoder.words,
        documents,
    )
    place = np.concatenate([np.arange(len(rows)) for rows in groups])
    is_named = place % 2 == 0
    lines = [
        [w.lower() for w in [*words[:begin], *words[end:]]]
        for words, (begin, end) in zip(sentences, spans, strict=True)
    ]
    is_few = is_named & (place < 2 * _FEW)
    for amount, rows in (("half", is_named), (f"{_FEW} uses a group", is_few)):
        names = _of_rows(source, np.flatnonzero(rows)).names(labels[rows])
        told = [_content(name) for name in names]
        read = [(lines[row], int(labels[row])) for row in np.flatnonzero(~is_named)]
        yield f"names by {amount}, vectors", _by_vectors(told, read, reader)
        yield f"names by {amount}, match", _by_match(told, read)
    by_chance = [random.choice(reader.words[200:5000], 10).tolist() for _ in groups]
    yield "random names, vectors", _by_vectors(by_chance, read, reader)
    every = [
        [w for row in np.flatnonzero(is_named & (labels == group)) for w in lines[row]]
        for group in range(len(groups))
    ]
    yield "all lines, vectors", _by_vectors(every, read, reader)


def _content(name: GroupName) -> list[str]:
    """The words of a name, those of its frames too."""
    frames = [word for frame in name.frames for word in frame.replace(SLOT, " ").split()]
    return [word.lower() for word in (*name.substitutes, *name.collocates, *frames)]


def _by_vectors(
    names: Sequence[Sequence[str]], lines: Sequence[tuple[list[str], int]], reader: Topics
) -> float:
    means = _means(names, reader)
    similar = _means([words for words, _ in lines], reader) @ means.T
    return _over_groups(
        ((group, float(found == group)) for (_, group), found in
         zip(lines, similar.argmax(axis=1).tolist(), strict=True)), len(names)
    )  # fmt: skip


def _means(texts: Sequence[Sequence[str]], reader: Topics) -> Floats:
    numbers = {word: number for number, word in enumerate(reader.words)}
    rows = [
        reader.vectors[[numbers[word] for word in words if word in numbers]].sum(
            axis=0, dtype=float
        )
        for words in texts
    ]
    return unit_length(np.stack(rows))


def _by_match(names: Sequence[Sequence[str]], lines: Sequence[tuple[list[str], int]]) -> float:
    stems = [{stem(word) for word in words} for words in names]

    def right(words: Iterable[str], group: int) -> float:
        there = {stem(word) for word in words}
        shared = [len(each & there) for each in stems]
        best = [number for number, count in enumerate(shared) if count == max(shared)]
        return 1 / len(best) if group in best else 0.0

    return _over_groups(((group, right(words, group)) for words, group in lines), len(names))


def _over_groups(answers: Iterable[tuple[int, float]], number: int) -> float:
    right: dict[int, list[float]] = defaultdict(list)
    for group, value in answers:
        right[group].append(value)
    return float(np.mean([np.mean(right[group]) for group in range(number)]))


if __name__ == "__main__":
    main()

"""How far to believe groups of uses: measured on a corpus's own words, for a model.

    in   a corpus, and what describes its uses
    out  `Calibration`: how well mixed words are told apart, and how separate groups must be

Some sixty frequent words of the corpus are taken. The uses of two of like kind are mixed, as if
they were one word with two meanings, and grouped again: how well the groups are the two words
(adjusted Rand index; 0 is chance, 1 is perfect) tells what this model can do *in these texts*. And
each word is grouped by itself: most words have one meaning, so the separation that its two halves
have is none that tells meanings apart.

Both are measured once and kept beside the corpus, in `NAME.calibration/`, with the corpus's topics
and the model's syntax. What was measured is JSON with the key of what it was made from
(`Kept`): another corpus, model or question has another key. What cannot be written is found again
the next time.
"""

import contextlib
import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import TypeAdapter

from polyseme.errors import CorpusError
from polyseme.limits import read_json
from polyseme.meanings.concordance.background import Background
from polyseme.meanings.concordance.uses import Uses, find_words, numbers_by_word
from polyseme.meanings.features.topics import Topics, learn_aside
from polyseme.meanings.features.use_features import (
    Floats,
    Labels,
    UseEncoder,
    UseFeatures,
    calibration_folder,
)
from polyseme.meanings.groups.grouping import Limits, group_uses, how_separate, unit_length
from polyseme.meanings.index.use_index import IndexedUses
from polyseme.progress import SILENT, Progress
from polyseme.storage.files import write_text
from polyseme.text.corpus import Corpus, state_of

VERSION = 7
LOW, HIGH = 0.25, 0.45
"""Below the first, groups are a first sorting and substitutes no names; from the second, fair."""
_WORDS, _USES = 64, 50  # words, and uses of each
_LINES = 4  # of each word, by which the texts are compared with the model's own
_UNLIKE = 0.75  # of the bits that it gains in texts like its own: then it has not read such texts
_FEWEST_WORDS = 12  # with fewer, nothing is measured
_MOST_READ = 4_000_000  # words of the corpus that are searched, row groups taken evenly
_MERGE_QUANTILE, _SPLIT_QUANTILE = 0.4, 0.5
_HOW_WELL = {
    "low": ("poorly", " Read the groups as a first sorting, and lines before names."),
    "fair": ("moderately", " Check the groups by their lines."),
    "good": ("well", ""),
}


@dataclass(frozen=True)
class Calibration:
    """What is known of a model in a corpus."""

    ari: float  # mean over pairs of mixed words
    error: float  # its standard error
    num_pairs: int
    limits: Limits
    gain: float | None = None
    """How many times better than their frequencies alone the model predicts words of these texts:
    the perplexity of a unigram model as a multiple of its own."""
    own_gain: float | None = None
    """The same in texts like those it was trained on."""

    @property
    def level(self) -> Literal["low", "fair", "good"]:
        """In a word."""
        return "low" if self.ari < LOW else "fair" if self.ari < HIGH else "good"

    @property
    def note(self) -> str:
        """What a reader should know before believing groups."""
        unlike, help_ = "", ""
        if self.is_unlike:
            unlike = (
                " It has not read texts like these: it predicts their words "
                f"{self.gain:.1f} times better than frequencies alone, those of its own texts "
                f"{self.own_gain:.1f} times."
            )
        if self.level == "low" and (self.is_unlike or self.own_gain is None):
            help_ = (
                " An hour of reading such texts helps: polyseme pretrain CORPUS --from MODEL "
                "--hours 1 --out NEW"
            )
        return (
            f"In these texts this model tells mixed words apart {_HOW_WELL[self.level][0]} "
            f"({self.ari:.2f} ± {self.error:.2f}; 0 is chance, 1 perfect)."
            f"{unlike}{_HOW_WELL[self.level][1]}{help_}"
        )

    @property
    def is_unlike(self) -> bool:
        """Whether the model has read no such texts, as far as its predictions tell."""
        if self.gain is None or self.own_gain is None:
            return False
        return math.log(self.gain) < _UNLIKE * math.log(self.own_gain)


_CALIBRATION: TypeAdapter[Calibration | None] = TypeAdapter(Calibration | None)


def encode_uses(
    uses: Uses, encoder: UseEncoder, on_use: Callable[[int], None] = lambda _: None
) -> UseFeatures:
    """All that groups are made from: what the model tells, without syntax, and topics."""
    features = encoder.without_syntax(encoder.encode(uses, on_use))
    topics = topics_of(uses.corpus) if uses.corpus and encoder.layer is None else None
    return topics.added_to(features, uses, encoder.words) if topics else features


def calibrate(
    corpus: Corpus,
    encoder: UseEncoder,
    topics: Topics | None,
    progress: Progress = SILENT,
) -> Calibration | None:
    """Measure it; None if the corpus has too few frequent words. The same twice."""
    uses = _frequent_uses(corpus)
    if len(uses) < _FEWEST_WORDS:
        return None
    progress.start("Calibrating on frequent words", sum(map(len, uses)))
    done, raw = 0, []
    for each in uses:
        raw.append(encoder.encode(each))
        done += len(each)
        progress.update(done)
    features = [encoder.without_syntax(each) for each in raw]
    if topics:
        features = [
            topics.added_to(one, each, encoder.words)
            for one, each in zip(features, uses, strict=True)
        ]
    alone = [how_separate(each) for each in features]
    limits = Limits(
        round(float(np.quantile([each.merge for each in alone], _MERGE_QUANTILE)), 4),
        round(float(np.quantile([each.split for each in alone], _SPLIT_QUANTILE)), 4),
    )
    kinds = [
        (one.context - two.context).mean(axis=0) for one, two in zip(raw, features, strict=True)
    ]
    pairs = list(_like_pairs(unit_length(np.stack(kinds))))
    apart = [_told_apart(features[one], features[two]) for one, two in pairs]
    error = float(np.std(apart, ddof=1) / np.sqrt(len(apart)))
    # Spread over the corpus: the first uses are all of its first texts.
    spread = [np.linspace(0, len(each) - 1, _LINES).astype(np.int64) for each in uses]
    lines = [
        words
        for each, chosen in zip(uses, spread, strict=True)
        for words in each.select(chosen).sentences()
    ]
    gains = encoder.gains(lines, corpus) or (None, None)
    return Calibration(float(np.mean(apart)), error, len(pairs), limits, *gains)


def _frequent_uses(corpus: Corpus) -> list[Uses]:
    """Uses of words that are frequent enough, of each as many."""
    share = min(1.0, _MOST_READ / max(1, int(corpus.read_stats["words"])))
    words = Background.of(corpus).content_words(int(1.5 * _USES / share), 10 * _WORDS)
    if not words:
        return []
    drawn = np.linspace(0, len(words) - 1, min(_WORDS, len(words))).astype(int)
    words = [words[at] for at in drawn.tolist()]
    every = find_words(corpus, words, step=max(1, round(1 / share)))
    by_word = numbers_by_word(every)
    random = np.random.default_rng(1)
    return [
        every.select(np.sort(random.permutation(by_word[word])[:_USES]))
        for word in words
        if len(by_word.get(word, [])) >= _USES
    ]


def _like_pairs(kinds: Floats) -> Iterator[tuple[int, int]]:
    """Each word with the one most of its kind, as far as there is one left: nouns with nouns."""
    similar = kinds @ kinds.T
    similar[np.tril_indices(len(kinds))] = -np.inf
    for _ in range(len(kinds) // 2):
        one, two = map(int, np.unravel_index(int(similar.argmax()), similar.shape))
        yield one, two
        for each in (one, two):
            similar[each] = similar[:, each] = -np.inf


def _told_apart(one: UseFeatures, two: UseFeatures) -> float:
    """Adjusted Rand index of two groups of mixed uses with the words they are of."""
    words = np.repeat([0, 1], [len(one), len(two)])
    return adjusted_rand_index(words, group_uses(one.joined(two), num_groups=2).labels)


def adjusted_rand_index(gold: Labels, found: Labels) -> float:
    """As scikit-learn's `adjusted_rand_score`, of which a server need not hold 100 MB for this."""
    table = np.zeros((int(gold.max()) + 1, int(found.max()) + 1), np.int64)
    np.add.at(table, (gold, found), 1)
    every, both = len(gold), int((table**2).sum())  # pairs, in order and with oneself
    one, two = (int((table.sum(axis=axis) ** 2).sum()) for axis in (0, 1))
    same, only_one, only_two = both - every, one - both, two - both
    none = every**2 - one - two + both
    if not (only_one or only_two):
        return 1.0
    agreed, missed = same * none - only_one * only_two, (same + only_one) * (only_one + none)
    return 2.0 * agreed / (missed + (same + only_two) * (only_two + none))


def topics_of(corpus: Corpus) -> Topics | None:
    """The topics of a corpus, learned once and kept beside it if that can be written to."""
    return _topics(corpus.folder.resolve(), state_of(corpus))


@lru_cache(maxsize=1)
def _topics(folder: Path, state: str) -> Topics | None:
    path = calibration_folder(folder) / f"topics-{state[:16]}.parquet"
    with contextlib.suppress(OSError, CorpusError):
        return Topics.load(path)
    found = learn_aside(folder)
    if found is not None:
        with contextlib.suppress(OSError):
            path.parent.mkdir(exist_ok=True)
            for older in path.parent.glob("topics-*.parquet"):
                older.unlink()
            found.save(path)
    return found


def calibration_of(
    corpus: Corpus, encoder: UseEncoder, progress: Progress = SILENT
) -> Calibration | None:
    """What was measured before for this state of the corpus and this model; else it is measured.

    An index has the features of some uses only, so with one it is only read.
    """
    if encoder.layer is not None:
        return None
    model = encoder.fingerprint
    key = hashlib.sha256(f"{VERSION} {state_of(corpus)} {model}".encode()).hexdigest()
    kept = Kept(calibration_folder(corpus.folder) / f"{model[:16]}.json", key)
    found: tuple[Calibration | None] | None
    found = kept.read(lambda told: (_CALIBRATION.validate_python(told["calibration"]),))
    if found is not None:
        return found[0]
    if isinstance(encoder, IndexedUses):
        return None
    measured = calibrate(corpus, encoder, topics_of(corpus), progress)
    kept.write({"calibration": None if measured is None else asdict(measured)})
    return measured


@dataclass(frozen=True)
class Kept:
    """One file."""

    path: Path
    key: str

    @classmethod
    def of(cls, corpus: Corpus, kind: str, version: int, *asked: object) -> "Kept":
        """What a question has as its answer in this state of the corpus."""
        state = state_of(corpus)
        key = json.dumps([version, state, *asked])
        name = f"{kind}-{state[:8]}-{hashlib.sha256(key.encode()).hexdigest()[:16]}.json"
        return cls(calibration_folder(corpus.folder) / name, key)

    def read(self, parse: Callable[[dict[str, Any]], Any]) -> Any:
        """What `parse` makes of it; None if it is not there, or made from something else."""
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            found = read_json(self.path)
            if found["key"] == self.key:
                return parse(found)
        return None

    def write(self, values: Mapping[str, object]) -> None:
        """Keep it, and remove what was kept of earlier states of the corpus."""
        text = json.dumps({"key": self.key, **values}, indent=1)
        kind, _, state = self.path.name.partition("-")
        with contextlib.suppress(OSError):
            self.path.parent.mkdir(exist_ok=True)
            for older in self.path.parent.glob(f"{kind}-*.json"):
                if not older.name.startswith(f"{kind}-{state[:8]}"):
                    older.unlink()
            write_text(self.path, text + "\n")

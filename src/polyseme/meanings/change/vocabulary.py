"""Which words of a whole vocabulary changed between two sides of a corpus?

    in   a corpus, two sides, and what describes uses
    out  `VocabularyChange`: each word with its change, its p-value adjusted for the number of
         words, and the controls that a reviewer asks for

Each word is measured as `change.py` does it, on a sample of its uses, by itself: so a run can stop
after any word and go on. Two controls: words of the same frequency, since sides that differ in
topic move all words; and whole documents dealt to the sides at random, where no word has changed,
so that what is still found shows how often such a finding is false.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property

import numpy as np

from polyseme.errors import InputError
from polyseme.meanings.change.measure import MIN_DOCUMENTS, Side, Unit, measure_change
from polyseme.meanings.change.side_counts import SideWords, count_sides
from polyseme.meanings.change.word_changes import ChangedWord, VocabularyChange
from polyseme.meanings.concordance.conditions import EVERYTHING, Condition
from polyseme.meanings.concordance.search import search
from polyseme.meanings.concordance.sentence_table import DOCUMENT
from polyseme.meanings.concordance.uses import Uses
from polyseme.meanings.features.use_describer import UseDescriber
from polyseme.meanings.groups.grouping import join_views
from polyseme.progress import NullProgress, Progress
from polyseme.text.corpus import Corpus

NUM_SHUFFLES = 5
"""How often documents are dealt to the sides at random, for the control."""
_PERMUTATIONS_OF_CONTROL = 199
_MAX_SHARE = 1e-3
"""Words that make up more of the text are not asked about: they are grammar, not meaning."""
_FOUND_AT_ONCE = 100_000  # uses that are looked for in one reading of the corpus: some 50 MB

TOO_FEW = "fewer than {} documents on a side"


@dataclass(frozen=True)
class VocabularyQuestion:
    """What is asked of every word."""

    before: Condition
    after: Condition
    where: Condition = EVERYTHING
    min_uses: int = 50
    """Uses that a word needs on each side."""
    max_uses: int = 200
    """Uses of each side that are described: a sample, where there are more."""
    permutations: int = 9_999
    unit: Unit = "documents"
    """What is shuffled. Words in fewer than five documents of a side are then left out."""
    seed: int = 1

    def to_json(self) -> dict[str, object]:
        """Plain values, by which an unfinished run is known again."""
        sides = {name: str(getattr(self, name)) for name in ("before", "after", "where")}
        return asdict(self) | sides


def compare_vocabulary(
    corpus: Corpus,
    describer: UseDescriber,
    question: VocabularyQuestion,
    *,
    words: Sequence[str] | None = None,
    known: Mapping[str, ChangedWord | None] | None = None,
    on_word: Callable[[str, ChangedWord | None], None] = lambda *_: None,
    progress: Progress | None = None,
) -> VocabularyChange:
    """Measure every word that has enough uses on both sides, or of `words` those that do.

    `known`: what an earlier run found; `on_word` is told of each word as soon as it is measured.
    None stands for a word that is in too few documents.
    """
    progress, known = progress or NullProgress(), known or {}
    sides = count_sides(corpus, (question.before, question.after), question.where)
    chosen = _chosen_words(sides, question, words)
    work = _Work(corpus, describer, question, sides)
    found = {word: known[word] for word in chosen if word in known}
    progress.start("Comparing words", len(chosen))
    progress.update(len(found))
    for word, change in work.measure([word for word in chosen if word not in found]):
        found[word] = change
        on_word(word, change)
        progress.update(len(found), word)
    asked = {word.casefold() for word in words or ()}
    passed_over = Counter({"fewer uses on a side": len(asked - set(chosen))})
    few = TOO_FEW.format(MIN_DOCUMENTS)
    passed_over[few] = sum(change is None for change in found.values())
    return VocabularyChange.of([c for c in found.values() if c], dict(+passed_over))


def _chosen_words(
    sides: SideWords, question: VocabularyQuestion, words: Sequence[str] | None
) -> list[str]:
    overlap = sides.documents[0] & sides.documents[1]
    if overlap and question.unit == "documents":
        raise InputError(
            f"{len(overlap):,} documents are on both sides, as {sorted(overlap)[0]!r}. Choose "
            "sides that exclude each other, or shuffle uses."
        )
    if question.unit == "documents" and min(map(len, sides.documents)) < MIN_DOCUMENTS:
        numbers = " and ".join(f"{len(side):,}" for side in sides.documents)
        raise InputError(
            f"The sides have {numbers} documents; to shuffle documents, each needs "
            f"{MIN_DOCUMENTS}. Choose wider sides, or shuffle uses (--shuffle uses), where a "
            "difference between two authors may look like change."
        )
    max_share = _MAX_SHARE if words is None else 1.0
    candidates = sides.candidates(question.min_uses, max_share)
    if words is not None:
        asked = {word.casefold() for word in words}
        candidates = [word for word in candidates if word in asked]
    if not candidates:
        raise InputError(
            f"No word has {question.min_uses} uses on each side. Choose wider sides, or ask for "
            "fewer uses (--min-uses); below 50 per side, only large changes are found."
        )
    return candidates


@dataclass(frozen=True)
class _Work:
    """Words in, their changes out, one after the other."""

    corpus: Corpus
    describer: UseDescriber
    question: VocabularyQuestion
    sides: SideWords

    def measure(self, words: Sequence[str]) -> Iterator[tuple[str, ChangedWord | None]]:
        """Each word with its change; None for one in too few documents."""
        for batch in self._batches(words):
            spellings = frozenset().union(*(self.sides.spellings[word] for word in batch))
            table, rows, spans = search(self.corpus, [(spellings,)], self.question.where, threads=2)
            uses = Uses(table, rows, spans)
            forms = [
                sentence[begin].casefold()
                for sentence, (begin, _) in zip(uses.sentences(), spans.tolist(), strict=True)
            ]
            numbers: dict[str, list[int]] = {word: [] for word in batch}
            for number, form in enumerate(forms):
                numbers[form].append(number)
            for word in batch:
                yield word, self._change(word, uses.select(numbers[word]))

    def _batches(self, words: Sequence[str]) -> Iterator[list[str]]:
        batch: list[str] = []
        size = 0
        for word in words:
            count = sum(counts[word] for counts in self.sides.counts)
            if batch and size + count > _FOUND_AT_ONCE:
                yield batch
                batch, size = [], 0
            batch.append(word)
            size += count
        if batch:
            yield batch

    def _change(self, word: str, uses: Uses) -> ChangedWord | None:
        asked = self.question
        random = np.random.default_rng([asked.seed, *word.encode()])
        drawn = [
            np.sort(random.permutation(uses.matching(side))[: asked.max_uses])
            for side in (asked.before, asked.after)
        ]
        chosen, edge = uses.select(np.concatenate(drawn)), len(drawn[0])
        documents = chosen.metadata(DOCUMENT)
        if asked.unit == "documents" and (
            min(len(set(documents[:edge])), len(set(documents[edge:]))) < MIN_DOCUMENTS
        ):
            return None
        features = self.describer(chosen.sentences(), chosen.spans)
        vectors = join_views(features, seed=asked.seed)
        change = measure_change(
            Side(vectors[:edge], documents[:edge]),
            Side(vectors[edge:], documents[edge:]),
            unit=asked.unit,
            permutations=asked.permutations,
            seed=asked.seed,
        )
        counts = [counts[word] for counts in self.sides.counts]
        by_chance = tuple(self._by_chance(vectors, documents))
        return ChangedWord.of(word, (counts[0], counts[1]), change, by_chance)

    def _by_chance(
        self,
        vectors: "np.ndarray[tuple[int, ...], np.dtype[np.float32]]",
        documents: Sequence[str | None],
    ) -> Iterator[float]:
        """P-values after whole documents were dealt to the sides at random."""
        asked = self.question
        for number, first in enumerate(self._dealt):
            is_first = np.array([document in first for document in documents])
            groups = [
                [document for document, own in zip(documents, is_first, strict=True) if own == side]
                for side in (True, False)
            ]
            if min(len(set(group)) for group in groups) < MIN_DOCUMENTS:
                continue
            yield measure_change(
                Side(vectors[is_first], groups[0]),
                Side(vectors[~is_first], groups[1]),
                unit=asked.unit,
                permutations=_PERMUTATIONS_OF_CONTROL,
                seed=number,
            ).p_value

    @cached_property
    def _dealt(self) -> list[set[str]]:
        """The documents of the side before, in each random dealing; as many as there are."""
        before, after = self.sides.documents
        every = sorted(before | after)
        random = np.random.default_rng(self.question.seed)
        return [
            {every[n] for n in random.permutation(len(every))[: len(before)]}
            for _ in range(NUM_SHUFFLES)
        ]

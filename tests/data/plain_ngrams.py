"""Modified Kneser-Ney once more, slowly, with plain dictionaries: what the tests compare with."""

import math
import random
from collections import Counter, defaultdict
from dataclasses import dataclass

Sentence = list[str]
START, END, UNKNOWN = "<start>", "<end>", "<unknown>"


@dataclass
class PlainModel:
    """Modified Kneser-Ney as the paper writes it. An n-gram is a tuple, its last word predicted."""

    training: list[Sentence]
    vocabulary: list[str]
    order: int

    def __post_init__(self) -> None:
        self.classes = [*self.vocabulary, UNKNOWN, END]
        whole = Counter(gram for words in self.training for gram in self.grams_of(words))
        self.counts: dict[int, Counter[tuple[str, ...]]] = {self.order: whole}
        for size in range(self.order - 1, 0, -1):
            left = defaultdict(set)
            for gram in whole:
                left[gram[-size:]].add(gram[-size - 1])
            # Distinct words to the left, whatever stands further left of those.
            self.counts[size] = Counter({gram: len(words) for gram, words in left.items()})
        self.discounts = {size: self.estimate(size) for size in self.counts}

    def grams_of(self, words: Sentence) -> list[tuple[str, ...]]:
        known = [word if word in self.vocabulary else UNKNOWN for word in words]
        line = [START] * (self.order - 1) + known + [END]
        return [
            tuple(line[place : place + self.order]) for place in range(len(line) - self.order + 1)
        ]

    def estimate(self, size: int) -> tuple[float, float, float]:
        n = Counter(self.counts[size].values())
        if not (n[1] and n[2] and n[3]):
            return (0.5, 1.0, 1.5)
        y = n[1] / (n[1] + 2 * n[2])
        one, two, more = (k - (k + 1) * y * n[k + 1] / n[k] for k in (1, 2, 3))
        return (one, two, more) if min(one, two, more) > 0 else (0.5, 1.0, 1.5)

    def probability(self, gram: tuple[str, ...]) -> float:
        size = len(gram)
        if size == 0:
            return 1 / len(self.classes)
        below = self.probability(gram[1:])
        followers = {g: c for g, c in self.counts[size].items() if g[:-1] == gram[:-1]}
        total = sum(followers.values())
        if total == 0:
            return below
        taken = {g: self.discounts[size][min(c, 3) - 1] for g, c in followers.items()}
        own = followers.get(gram, 0) - taken.get(gram, 0)
        return own / total + sum(taken.values()) / total * below

    def log_probability(self, held_out: list[Sentence]) -> float:
        grams = [gram for words in held_out for gram in self.grams_of(words)]
        return sum(math.log(self.probability(gram)) for gram in grams)


def make_sentences(number: int, seed: int) -> list[Sentence]:
    """Sentences whose words are of very different frequency, and depend on the word before."""
    draw = random.Random(seed)
    sentences = []
    for _ in range(number):
        words = [int(draw.paretovariate(0.8)) % 400]
        while draw.random() > 0.15:
            words.append((words[-1] * 7 + int(draw.paretovariate(0.7))) % 400)
        sentences.append([f"w{word}" for word in words])
    return sentences

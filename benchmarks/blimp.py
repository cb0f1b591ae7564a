"""Which of two sentences is grammatical: BLiMP (English) and ZhoBLiMP (Chinese), minimal pairs.

    python -m benchmarks.blimp blimp.jsonl.xz --model models/en-base --model MODEL --out OUT
    python -m benchmarks.blimp blimp.jsonl.xz --model models/en-base --ngram corpus/en --out OUT

A line of the file is a pair: `paradigm, phenomenon, good, bad`. Right is the pair whose good
sentence is likelier, by the sum of both directions, the sentence's end counted; of equals, half a
pair is right. Words outside the vocabulary are one unknown word, so a pair that differs in these
only is such a pair. Accuracy is the mean over paradigms, as published; its standard error is over
pairs. With --ngram, n-grams of a corpus, with the words of the model, in the model's place.
"""

import argparse
import json
import lzma
import math
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from polyseme.data.ngrams import NgramConfig, sentence_log_probabilities
from polyseme.model import Model
from polyseme.pretraining.evaluation import score_sentences
from polyseme.storage.files import write_text
from polyseme.text.corpus import Corpus
from polyseme.text.preprocessing import TextPreprocessor

Values = np.ndarray[Any, np.dtype[np.float64]]
Words = tuple[str, ...]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("pairs", type=Path)
    parser.add_argument("--model", type=Path, action="append", required=True)
    parser.add_argument("--ngram", type=Path, help="a corpus to count n-grams in")
    parser.add_argument("--order", type=int, default=3)
    parser.add_argument("--each", type=int, help="pairs of a paradigm, from its first on")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    pairs = read_pairs(arguments.pairs, arguments.each)
    arguments.out.mkdir(parents=True, exist_ok=True)
    for folder in arguments.model:
        model = Model.load(folder)
        preprocess = TextPreprocessor.of_model(model.preparation)
        texts = {text: _words(preprocess, text) for each in pairs for text in texts_of(each)}
        name, began = folder.name, time.monotonic()
        if arguments.ngram:
            name = f"{arguments.order}-gram"
            found = by_ngrams(arguments.ngram, model, list(texts.values()), arguments.order)
            scores = {"forward": found}
        else:
            scores = by_model(model, list(texts.values()))
        _tell(name, pairs, texts, scores, arguments.out)
        print(f"  {time.monotonic() - began:.0f} s", flush=True)


def read_pairs(path: Path, each: int | None) -> list[dict[str, str]]:
    """All pairs, or the first `each` of every paradigm."""
    seen: defaultdict[str, int] = defaultdict(int)
    pairs = []
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        for pair in map(json.loads, lines):
            seen[pair["paradigm"]] += 1
            if each is None or seen[pair["paradigm"]] <= each:
                pairs.append(pair)
    return pairs


def texts_of(pair: Mapping[str, str]) -> tuple[str, str]:
    """The grammatical sentence, and the other."""
    return pair["good"], pair["bad"]


def _words(preprocess: TextPreprocessor, text: str) -> tuple[Words, ...]:
    """The words of its sentences: mostly one."""
    return tuple(tuple(sentence.words) for sentence in preprocess(text).stored())


def by_model(model: Model, texts: Sequence[tuple[Words, ...]]) -> dict[str, dict[Words, float]]:
    """The log-probability of each distinct sentence, in each direction."""
    # Of one length together: less padding, and the same sums for both of a pair.
    distinct = sorted({words for text in texts for words in text}, key=len)
    found: dict[str, dict[Words, float]] = defaultdict(dict)
    for words, score in zip(distinct, score_sentences(model, distinct), strict=True):
        for direction, part in score.parts.items():
            found[direction][words] = part.total
    return found


def by_ngrams(
    corpus: Path, model: Model, texts: Sequence[tuple[Words, ...]], order: int
) -> dict[Words, float]:
    """The log-probability of each distinct sentence."""
    opened = Corpus.open(corpus)
    opened.check_same_words(model.preparation)
    distinct = list(dict.fromkeys(words for text in texts for words in text))
    with tempfile.TemporaryDirectory() as scratch:
        values = sentence_log_probabilities(
            opened, model.vocabulary.words, distinct, NgramConfig(order=order),
            scratch=Path(scratch), threads=1,
        )  # fmt: skip
    return {words: math.fsum(each) for words, each in zip(distinct, values, strict=True)}


def _tell(
    name: str,
    pairs: Sequence[Mapping[str, str]],
    texts: Mapping[str, tuple[Words, ...]],
    scores: Mapping[str, Mapping[Words, float]],
    out: Path,
) -> None:
    """Print the accuracies and keep them, by phenomenon and by paradigm."""
    totals = {
        direction: np.array(
            [[sum(of[words] for words in texts[text]) for text in texts_of(pair)] for pair in pairs]
        )
        for direction, of in scores.items()
    }
    if len(totals) > 1:
        totals = {"both": sum(totals.values(), np.zeros((len(pairs), 2))), **totals}
    told: dict[str, Any] = {"model": name, "pairs": len(pairs)}
    for direction, values in totals.items():
        # A sum of many logarithms: what differs by less than its rounding is equal.
        gap = values[:, 0] - values[:, 1]
        right = np.where(np.abs(gap) < 1e-4, 0.5, gap > 0)
        accuracy = mean_of_paradigms(right, pairs)
        told[direction] = {**accuracy, "ties": float(np.mean(right == 0.5))}
        text = f"{100 * accuracy['accuracy']:.1f} ± {100 * accuracy['standard_error']:.1f}"
        print(f"{name:12} {direction:9} {text}  ties {100 * told[direction]['ties']:.1f} %")
    write_text(out / f"{name}.json", json.dumps(told, indent=1, ensure_ascii=False) + "\n")


def mean_of_paradigms(right: Values, pairs: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """The accuracy of each paradigm and phenomenon, their mean, and its standard error."""
    paradigms: defaultdict[str, list[float]] = defaultdict(list)
    phenomenon = {pair["paradigm"]: pair["phenomenon"] for pair in pairs}
    for value, pair in zip(right, pairs, strict=True):
        paradigms[pair["paradigm"]].append(float(value))
    each = {name: float(np.mean(values)) for name, values in paradigms.items()}
    variance = sum(np.var(values) / len(values) for values in paradigms.values())
    grouped: defaultdict[str, list[float]] = defaultdict(list)
    for name, value in each.items():
        grouped[phenomenon[name]].append(value)
    return {
        "accuracy": float(np.mean(list(each.values()))),
        "standard_error": math.sqrt(variance) / len(each),
        "phenomena": {name: float(np.mean(values)) for name, values in grouped.items()},
        "paradigms": each,
    }


if __name__ == "__main__":
    main()

"""How often a model prefers a sentence as it was written to the same with two neighbours swapped.

    python -m benchmarks.word_order models/en-mini corpus/en --sentences 1000

Sentences are held-out ones of the corpus, spread evenly over it, of three words or more. Which two
neighbouring words are swapped is drawn with a fixed seed; two of the same are never swapped, since
nothing would change.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from polyseme.model import Model
from polyseme.pretraining.scores import Score, score_sentences
from polyseme.text.corpus import Corpus


def main() -> None:
    arguments = _parser().parse_args()
    model, corpus = Model.load(arguments.model), Corpus.open(arguments.corpus)
    sentences = _sample(list(_held_out(corpus)), arguments.sentences)
    random = np.random.default_rng(1)
    swapped = [_swap(sentence, random) for sentence in sentences]
    natural = list(score_sentences(model, sentences))
    turned = list(score_sentences(model, swapped))
    print(f"{len(sentences):,} held-out sentences of {arguments.corpus}, {arguments.model}")
    print("share preferred as written:")
    for part in natural[0].parts:
        won = [
            a.parts[part].total > b.parts[part].total for a, b in zip(natural, turned, strict=True)
        ]
        print(f"  {part:9} {np.mean(won):.1%}")
    both = [a.total > b.total for a, b in zip(natural, turned, strict=True)]
    print(f"  {'together':9} {np.mean(both):.1%}")
    _show_lost(natural, turned, both)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("model", type=Path)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--sentences", type=int, default=1000)
    return parser


def _held_out(corpus: Corpus) -> Iterator[list[str]]:
    for shard in corpus.shards:
        table = pq.read_table(shard, columns=["words", "held_out"])
        for words in table.filter(table["held_out"])["words"].to_pylist():
            if len(words) >= 3 and len(set(words)) > 1:
                yield words


def _sample(sentences: list[list[str]], number: int) -> list[list[str]]:
    places = np.linspace(0, len(sentences) - 1, min(number, len(sentences))).astype(int)
    return [sentences[place] for place in places]


def _swap(sentence: list[str], random: np.random.Generator) -> list[str]:
    places = [i for i in range(len(sentence) - 1) if sentence[i] != sentence[i + 1]]
    place = places[random.integers(len(places))]
    turned = list(sentence)
    turned[place], turned[place + 1] = turned[place + 1], turned[place]
    return turned


def _show_lost(natural: list[Score], turned: list[Score], won: list[bool]) -> None:
    """Some of those it got wrong: often both orders are good."""
    lost = [
        pair
        for pair, is_won in zip(zip(natural, turned, strict=True), won, strict=True)
        if not is_won
    ]
    for one, other in lost[:5]:
        place = next(i for i, word in enumerate(one.words) if word != other.words[i])
        before, after = one.words[max(0, place - 3) : place + 5], other.words[place : place + 2]
        print(f"  lost: {' '.join(before)}  ->  {' '.join(after)}")


if __name__ == "__main__":
    main()

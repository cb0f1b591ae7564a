"""Static vectors of a corpus by gensim: the baseline that gains are measured against.

    python -m benchmarks.static_vectors corpus/en --out en-static.bin

Needs gensim (`pip install gensim`). Trains its word2vec on the training part of the corpus and
writes the binary format of word2vec, which `embeddings.words.vectors` reads. Why gensim and not
our own preset `word2vec`: docs/decisions/0011.
"""

import argparse
import tempfile
import time
from pathlib import Path

from gensim.models import Word2Vec

from benchmarks.side_by_side import sentences_of
from polyseme.text.corpus import Corpus


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--width", type=int, default=300)
    parser.add_argument("--passes", type=int, default=5)
    parser.add_argument("--least", type=int, default=5, help="how often a word must occur")
    parser.add_argument("--skip-gram", action="store_true")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(dir=arguments.out.parent) as scratch:
        sentences = Path(scratch) / "sentences.txt"
        with sentences.open("w", encoding="utf-8") as lines:  # gensim's C code reads it by itself
            trained = sentences_of(Corpus.open(arguments.corpus), is_held_out=False)
            lines.writelines(f"{' '.join(words)}\n" for words in trained)
        model = Word2Vec(
            corpus_file=str(sentences), vector_size=arguments.width, epochs=arguments.passes,
            min_count=arguments.least, sg=int(arguments.skip_gram), workers=arguments.threads,
            seed=1,
        )  # fmt: skip
    model.wv.save_word2vec_format(str(arguments.out), binary=True)
    minutes = (time.monotonic() - began) / 60
    print(f"{arguments.out}: {len(model.wv):,} words x {arguments.width}, {minutes:.1f} min")


if __name__ == "__main__":
    main()

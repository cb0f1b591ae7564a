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

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from gensim.models import Word2Vec

from polyseme.text.corpus import Corpus


def write_sentences(corpus: Corpus, path: Path) -> None:
    """A line for each sentence that is not held out: gensim's C code reads it by itself."""
    with path.open("w", encoding="utf-8") as lines:
        for shard in corpus.shards:
            file = pq.ParquetFile(shard)
            for group in range(file.num_row_groups):
                table = file.read_row_group(group, columns=["held_out", "words"])
                kept = table.filter(pc.invert(table["held_out"]))["words"].combine_chunks()
                words = pa.ListArray.from_arrays(kept.offsets, kept.values.cast(pa.string()))
                lines.writelines(f"{line}\n" for line in pc.binary_join(words, " ").to_pylist())


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
        write_sentences(Corpus.open(arguments.corpus), sentences)
        model = _train(sentences, arguments)
    model.wv.save_word2vec_format(str(arguments.out), binary=True)
    minutes = (time.monotonic() - began) / 60
    print(f"{arguments.out}: {len(model.wv):,} words x {arguments.width}, {minutes:.1f} min")


def _train(sentences: Path, arguments: argparse.Namespace) -> Word2Vec:
    return Word2Vec(
        corpus_file=str(sentences),
        vector_size=arguments.width,
        epochs=arguments.passes,
        min_count=arguments.least,
        sg=int(arguments.skip_gram),
        workers=arguments.threads,
        seed=1,
    )


if __name__ == "__main__":
    main()

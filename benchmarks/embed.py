"""Words per second and core that are embedded, against ELMo's reference implementation.

    python -m benchmarks.embed corpus/en

Weights are random, of the published shapes; sentences are those of the corpus, in its order. Each
repeat starts with no word known, so the cache of word vectors fills as it would. Time is processor
time of one thread, so that what else the machine does weighs less.
"""

import argparse
import shlex
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from unittest import mock

import numpy as np
import pyarrow as pa
import torch

from benchmarks.embed_bare import bare_seconds
from benchmarks.embed_reference import Reference
from benchmarks.side_by_side import print_facts, print_table, sentences_of, take_turns
from polyseme.data.vocabulary import Vocabulary
from polyseme.embedding.embedder import Embedder
from polyseme.encoders.kernels import loader
from polyseme.model import Model
from polyseme.objectives.encoder_only import EncoderOnlyConfig
from polyseme.presets import PRESETS
from polyseme.text.corpus import Corpus

Sentences = list[list[str]]
Precision = str
_SHAPES = {"small": "elmo-small", "original": "elmo-original"}
_BARS = {
    ("small", "float32"): 20.0,
    ("small", "bfloat16"): 40.0,
    ("original", "float32"): 3.8,
    ("original", "bfloat16"): 11.0,
}
_BATCH = 32  # the reference's
_WINDOW = 1024
_CLOSE, _ALIKE, _SHARE = 1e-5, 0.9999, 0.70


@dataclass
class Speed:
    """Words and seconds of one repeat."""

    words: int
    seconds: float
    cold: float = 0.0
    """Words per second of the first window, of which nothing was known."""
    warm: float = 0.0
    """Of the last sentences once more, of which all was known."""

    @property
    def rate(self) -> float:
        return self.words / self.seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--shapes", default="small,original")
    parser.add_argument("--small", type=int, default=6144, help="sentences for the small shape")
    parser.add_argument("--original", type=int, default=224, help="and for the original one")
    parser.add_argument(
        "--reference",
        type=int,
        default=64,
        help="for the reference; half as many for the original shape",
    )
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    torch.set_num_threads(1)
    print_facts()
    print("that is: python -m benchmarks.embed " + shlex.join(sys.argv[1:]) + "\n")
    for shape in args.shapes.split(","):
        _measure(
            shape, list(islice(sentences_of(Corpus.open(args.corpus)), getattr(args, shape))), args
        )


def _model(shape: str) -> Model:
    torch.manual_seed(0)
    config = PRESETS[_SHAPES[shape]].model.model_copy(update={"objective": EncoderOnlyConfig()})
    vocabulary = Vocabulary(config.vocabulary, pa.array(["the"]), np.ones(1, np.int64))
    model = Model.new(config, vocabulary, None)
    model.network.eval()
    return model


def _measure(shape: str, sentences: Sentences, args: argparse.Namespace) -> None:
    model = _model(shape)
    reference = Reference(model.network.encoder, model.vocabulary)
    few = sentences[: args.reference if shape == "small" else args.reference // 2]
    fewer = sentences[: max(_BATCH, len(sentences) // 16)]
    contestants: dict[str, Callable[[], Speed]] = {
        "reference": lambda: _read(reference, few),
        "float32": lambda: _embed(model, sentences, "float32"),
        "bfloat16": lambda: _embed(model, sentences, "bfloat16"),
        "float32, by torch": lambda: _embed(model, fewer, "float32", has_kernel=False),
        "bfloat16, by torch": lambda: _embed(model, fewer, "bfloat16", has_kernel=False),
    }
    reference(sentences[:2])
    for precision in ("float32", "bfloat16"):
        _embed(model, sentences[:8], precision)
    found = take_turns(contestants, args.repeats)
    distinct = len({word for sentence in sentences for word in sentence})
    print(
        f"{_SHAPES[shape]}: words per second of one core, medians of {args.repeats}; times = over "
        f"the reference;\n{len(sentences):,} sentences, {distinct:,} distinct words\n"
    )
    base = statistics.median(speed.rate for speed in found["reference"])
    rows = [_row(name, speeds, base) for name, speeds in found.items()]
    head = ("", "words", "words/s", "times", "turns", "cold", "warm")
    print_table(head, rows)
    _judge(shape, model, found, sentences)


def _row(name: str, speeds: list[Speed], base: float) -> tuple[str, ...]:
    param_groups = [speed.rate for speed in speeds]
    middle = statistics.median(param_groups)
    cold, warm = (
        statistics.median(getattr(s, which) for s in speeds) for which in ("cold", "warm")
    )
    told = [f"{rate:,.0f}" if rate > 0 else "-" for rate in (cold, warm)]
    turns = f"{min(param_groups) / base:.1f} to {max(param_groups) / base:.1f}"
    return (name, f"{speeds[0].words:,}", f"{middle:,.0f}", f"{middle / base:.1f}", turns, *told)


def _read(reference: Reference, sentences: Sentences) -> Speed:
    began = time.process_time()
    for begin in range(0, len(sentences), _BATCH):
        reference(sentences[begin : begin + _BATCH])
    return Speed(_count(sentences), time.process_time() - began)


def _embed(
    model: Model, sentences: Sentences, precision: Precision, *, has_kernel: bool = True
) -> Speed:
    """A new embedder, so that nothing is known; then the last window again."""
    library = loader.load() if has_kernel else None
    with mock.patch.object(loader, "load", return_value=library):
        embedder = Embedder(model, device="cpu", precision=precision, threads=1)  # type: ignore[arg-type]
        first, rest = sentences[:_WINDOW], sentences[_WINDOW:]
        cold = _stream(embedder, first)
        after = _stream(embedder, rest)
        last = sentences[-min(_WINDOW, len(sentences) // 2) :]
        warm = _count(last) / _stream(embedder, last) if has_kernel else 0.0
    return Speed(_count(sentences), cold + after, _count(first) / cold, warm)


def _stream(embedder: Embedder, sentences: Sentences) -> float:
    began = time.process_time()
    for _ in embedder.stream(sentences):
        pass
    return time.process_time() - began


def _count(sentences: Sentences) -> int:
    return sum(map(len, sentences))


def _judge(shape: str, model: Model, found: dict[str, list[Speed]], sentences: Sentences) -> None:
    """Whether ratios, outputs and the share of bare multiplications are what they should be."""
    base = statistics.median(speed.rate for speed in found["reference"])
    distinct = len({word for sentence in sentences for word in sentence}) / _count(sentences)
    places = sum(len(sentence) + 2 for sentence in sentences) / _count(sentences)
    print()
    for precision in ("float32", "bfloat16"):
        rate = statistics.median(speed.rate for speed in found[precision])
        bar = _BARS[shape, precision]
        far, alike = _compare(model, precision, sentences[:_BATCH])
        bare = bare_seconds(model.config.encoder, precision, positions=places, distinct=distinct)
        outputs = {
            "float32": (f"within {far:.1e}", far <= _CLOSE),
            "bfloat16": (f"cosine {alike:.5f} or more", alike >= _ALIKE),
        }
        share = bare * rate
        claims = [
            (f"{rate / base:.1f} times (bar {bar:g})", rate / base >= bar),
            outputs[precision],
        ]
        told = f"{100 * share:.0f} % of bare multiplications' speed"
        claims += [(told + f" (bar {100 * _SHARE:.0f} %)", share >= _SHARE)]
        marks = [f"{what}: {'reached' if is_so else 'MISSED'}" for what, is_so in claims]
        print(f"{shape} {precision}: " + "; ".join(marks))
    print(flush=True)


def _compare(model: Model, precision: Precision, sentences: Sentences) -> tuple[float, float]:
    """Largest difference to the reference from a state of zeros, and smallest cosine."""
    expected = Reference(model.network.encoder, model.vocabulary)(sentences, carry=False).double()
    embedder = Embedder(model, device="cpu", precision=precision, threads=1)  # type: ignore[arg-type]
    far, alike = 0.0, 1.0
    for row, vectors in enumerate(embedder.stream(sentences)):
        mine = torch.from_numpy(vectors).double()
        theirs = expected[:, row, 1 : 1 + mine.shape[1]]
        far = max(far, float((mine - theirs).abs().max()))
        alike = min(alike, float(torch.cosine_similarity(mine, theirs, dim=-1).min()))
    return far, alike


if __name__ == "__main__":
    main()

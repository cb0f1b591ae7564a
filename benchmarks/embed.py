"""Words per second of one core that are embedded, against ELMo's reference implementation.

    python -m benchmarks.embed corpus/en

Weights are random, of the published shapes; sentences are those of the corpus, in its order. Each
repeat starts with no word known, so the cache of word vectors fills as it would. Time is processor
time of one thread, so that what else the machine does weighs less.

The reference is written anew after AllenNLP 0.9 (Apache-2.0): every occurrence of a word goes
through its characters' filters at full width, each direction and layer is a loop over time with two
small multiplications a step, and sentences come in the order of the corpus. Its state begins with
zeros in each batch, where AllenNLP carries it on; that takes no time.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from unittest import mock

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.side_by_side import print_facts, print_table, sentences_of, take_turns, verdict
from polyseme.data.vocabulary import Vocabulary
from polyseme.embedding.embedder import Embedder
from polyseme.encoders.cell import LayerWeights
from polyseme.encoders.encoder import Encoder
from polyseme.encoders.inputs import CharacterEncoder
from polyseme.encoders.kernels import loader
from polyseme.encoders.lstm import Lstm
from polyseme.model import Model
from polyseme.objectives.prediction import EncoderOnlyConfig
from polyseme.presets import PRESETS
from polyseme.text.corpus import Corpus

Sentences = list[list[str]]
_BARS = {
    ("small", "float32"): 20.0,
    ("small", "bfloat16"): 40.0,
    ("original", "float32"): 3.8,
    ("original", "bfloat16"): 11.0,
}
_BATCH = 32  # the reference's


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--shapes", default="small,original")
    parser.add_argument("--small", type=int, default=6144, help="sentences for the small shape")
    parser.add_argument("--original", type=int, default=224, help="and for the original one")
    parser.add_argument("--reference", type=int, default=64, help="for the reference")
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    torch.set_num_threads(1)
    print_facts()
    for shape in args.shapes.split(","):
        words = sentences_of(Corpus.open(args.corpus))
        _measure(shape, list(islice(words, getattr(args, shape))), args)


def _measure(shape: str, sentences: Sentences, args: argparse.Namespace) -> None:
    torch.manual_seed(0)
    settings = PRESETS[f"elmo-{shape}"].model
    config = settings.model_copy(update={"objective": EncoderOnlyConfig()})
    vocabulary = Vocabulary(config.vocabulary, pa.array(["the"]), np.ones(1, np.int64))
    model = Model.new(config, vocabulary, None)
    model.network.eval()
    reference = Reference(model.network.encoder, model.vocabulary)
    few = sentences[: args.reference if shape == "small" else args.reference // 2]
    fewer = sentences[: max(_BATCH, len(sentences) // 16)]
    contestants: dict[str, Callable[[], float]] = {"reference": partial(_read, reference, few)}
    for precision in ("float32", "bfloat16"):
        contestants[precision] = partial(_embed, model, sentences, precision)
        contestants[f"{precision}, by torch"] = partial(
            _embed, model, fewer, precision, has_kernel=False
        )
    for contestant in contestants.values():  # first touch
        contestant() if contestant.args[1] is fewer else None  # type: ignore[attr-defined]
    found = take_turns(contestants, args.repeats)
    base = statistics.median(found["reference"])
    rows = []
    for name, speeds in found.items():
        middle = statistics.median(speeds)
        turns = f"{min(speeds) / base:.1f} to {max(speeds) / base:.1f}"
        rows.append((name, f"{middle:,.0f}", f"{middle / base:.1f}", turns))
    print_table((f"elmo-{shape}", "words/s", "times", "turns"), rows)
    for precision in ("float32", "bfloat16"):
        told = verdict(statistics.median(found[precision]) / base, _BARS[shape, precision])
        print(f"{precision}: {told}; {_compare(model, precision, sentences[:_BATCH])}")


def _read(reference: "Reference", sentences: Sentences) -> float:
    began = time.process_time()
    for begin in range(0, len(sentences), _BATCH):
        reference(sentences[begin : begin + _BATCH])
    return sum(map(len, sentences)) / (time.process_time() - began)


def _embed(model: Model, sentences: Sentences, precision: str, *, has_kernel: bool = True) -> float:
    """A new embedder, so that nothing is known."""
    library = loader.load() if has_kernel else None
    with mock.patch.object(loader, "load", return_value=library):
        embedder = Embedder(model, device="cpu", precision=precision, threads=1)  # type: ignore[arg-type]
        began = time.process_time()
        for _ in embedder.stream(sentences):
            pass
    return sum(map(len, sentences)) / (time.process_time() - began)


def _compare(model: Model, precision: str, sentences: Sentences) -> str:
    """Largest difference to the reference from a state of zeros, and smallest cosine."""
    expected = Reference(model.network.encoder, model.vocabulary)(sentences).double()
    embedder = Embedder(model, device="cpu", precision=precision, threads=1)  # type: ignore[arg-type]
    far, alike = 0.0, 1.0
    for row, vectors in enumerate(embedder.stream(sentences)):
        mine = torch.from_numpy(vectors).double()
        theirs = expected[:, row, 1 : 1 + mine.shape[1]]
        far = max(far, float((mine - theirs).abs().max()))
        alike = min(alike, float(torch.cosine_similarity(mine, theirs, dim=-1).min()))
    return f"outputs within {far:.1e}, cosine {alike:.5f} or more"


class Reference:
    """Sentences in, every layer out; the weights are those of one of our encoders."""

    def __init__(self, encoder: Encoder, vocabulary: Vocabulary) -> None:
        assert encoder.inputs.characters is not None
        assert isinstance(encoder.contextualizer, Lstm)
        self.vocabulary = vocabulary
        self.characters: CharacterEncoder = encoder.inputs.characters
        weights = [layer.weights() for layer in encoder.contextualizer.all_layers()]
        self.stacks = [[_Layer(each, stack) for each in weights] for stack in range(2)]

    @torch.no_grad()
    def __call__(self, sentences: Sequence[Sequence[str]]) -> Tensor:
        """(L, B, T, 2 * D), BOS and EOS with it; what lies after a sentence is zero."""
        order = sorted(range(len(sentences)), key=lambda row: -len(sentences[row]))
        lengths = [len(sentences[row]) + 2 for row in order]
        char_ids = self._char_ids([sentences[row] for row in order], lengths[0])
        rows, steps, characters = char_ids.shape
        words = self._encode(char_ids.view(-1, characters)).view(rows, steps, -1)
        words[torch.arange(steps) >= torch.tensor(lengths)[:, None]] = 0
        halves = []
        for stack, layers in enumerate(self.stacks):
            below, given = words, [words]
            for number, layer in enumerate(layers):
                above = layer.run(below, lengths, is_forward=stack == 0)
                below = above + below if number else above
                given.append(below)
            halves.append(torch.stack(given))
        back = torch.empty(rows, dtype=torch.long)
        back[torch.tensor(order)] = torch.arange(rows)
        return torch.cat(halves, dim=-1)[:, back]

    def _char_ids(self, sentences: Sequence[Sequence[str]], longest: int) -> Tensor:
        """(B, T, C) the character ids of every occurrence."""
        tokens = self.vocabulary.special_token_chars
        table = np.zeros((len(sentences), longest, tokens.shape[1]), np.int64)
        for row, sentence in enumerate(sentences):
            end = len(sentence) + 1
            table[row, 0], table[row, end] = tokens[1], tokens[2]
            table[row, 1:end] = self.vocabulary.char_ids_of(pa.array(sentence, pa.string()))
        return torch.from_numpy(table)

    def _encode(self, char_ids: Tensor) -> Tensor:
        """(N, C) -> (N, D), every word for itself."""
        table = functional.pad(self.characters.char_embedding.weight, (0, 0, 1, 0))
        letters = functional.embedding(char_ids, table).transpose(1, 2)
        peaks = [filters(letters).max(dim=-1)[0] for filters in self.characters.filters]
        features = torch.cat([self.characters.activation(peak) for peak in peaks], dim=-1)
        for highway in self.characters.highways:
            linear: nn.Module = highway.get_submodule("linear")
            changed, gate = linear(features).chunk(2, dim=-1)
            gate = torch.sigmoid(gate)
            features = gate * features + (1 - gate) * functional.relu(changed)
        projection = self.characters.projection
        return features if projection is None else projection(features)


class _Layer:
    """One layer and direction: a loop over time."""

    def __init__(self, weights: LayerWeights, stack: int) -> None:
        assert weights.weight_hr is not None
        self.clips = weights.clips
        self.input = _linear(weights.weight_ih[stack], None)
        self.state = _linear(weights.weight_hh[stack], weights.bias[stack])
        self.projection = _linear(weights.weight_hr[stack], None)

    def run(self, inputs: Tensor, lengths: list[int], *, is_forward: bool) -> Tensor:
        """(B, T, D) -> (B, T, D), the longest sentence first."""
        rows, steps, _ = inputs.shape
        hidden_size, proj_size = self.projection.in_features, self.projection.out_features
        hidden_of_all, cell_of_all = (inputs.new_zeros(rows, n) for n in (proj_size, hidden_size))
        outputs = inputs.new_zeros(rows, steps, proj_size)
        for position in range(steps) if is_forward else reversed(range(steps)):
            number = sum(length > position for length in lengths)
            hidden, cell = hidden_of_all[:number].clone(), cell_of_all[:number].clone()
            read, kept = self.input(inputs[:number, position]), self.state(hidden)
            input_gate, forget_gate, output_gate, candidate = (
                a + b for a, b in zip(read.chunk(4, -1), kept.chunk(4, -1), strict=True)
            )
            cell = (
                torch.sigmoid(input_gate) * torch.tanh(candidate)
                + torch.sigmoid(forget_gate) * cell
            )
            cell = _clip(cell, self.clips.cell)
            hidden = self.projection(torch.sigmoid(output_gate) * torch.tanh(cell))
            hidden = _clip(hidden, self.clips.output)
            hidden_of_all, cell_of_all = hidden_of_all.clone(), cell_of_all.clone()
            hidden_of_all[:number], cell_of_all[:number] = hidden, cell
            outputs[:number, position] = hidden
        return outputs


def _clip(values: Tensor, bound: float | None) -> Tensor:
    return values if bound is None else values.clamp(-bound, bound)


def _linear(weight: Tensor, bias: Tensor | None) -> nn.Linear:
    linear = nn.Linear(weight.shape[0], weight.shape[1], bias=bias is not None)
    with torch.no_grad():
        linear.weight.copy_(weight.t())
        if bias is not None:
            linear.bias.copy_(bias)
    return linear


if __name__ == "__main__":
    main()

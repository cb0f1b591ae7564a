"""A model's encoder as an ONNX graph, for servers and languages without PyTorch.

    in   a model
    out  a folder as Triton has it: `1/model.onnx`, `config.pbtxt`, and `vocabulary.json`

The graph reads sentences of words as numbers, `ids` (B, T), `char_ids` (B, T, C) if the model reads
characters, `lengths` (B,), and gives `layers` (B, L, T, D): the batch leads everywhere, so that a
server can put requests together. Numbers are made of words by `vocabulary.json`. ONNX's own LSTM
has no projection and clips gates, not cells: here a Scan runs over the words.
"""

import json
import logging
import warnings
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from polyseme.data.batch import BOS, EOS, FIRST_WORD, PAD, UNK, Batch
from polyseme.data.vocabulary import Vocabulary
from polyseme.encoders.cell import LayerWeights, State
from polyseme.encoders.encoded import Encoded
from polyseme.encoders.encoder import Encoder
from polyseme.encoders.lstm import Lstm
from polyseme.errors import extra_needed_for
from polyseme.model import Model
from polyseme.storage.files import scratch_for, write_text

GRAPH, TRITON, VOCABULARY = "1/model.onnx", "config.pbtxt", "vocabulary.json"


def export_onnx(model: Model, folder: Path) -> None:
    """Write the graph and what goes with it; the graph last."""
    with extra_needed_for("Exporting to ONNX"):
        import onnxscript  # noqa: F401  # what torch's exporter is made with
    (folder / GRAPH).parent.mkdir(parents=True, exist_ok=True)
    inputs = _sample(model)
    write_text(folder / VOCABULARY, json.dumps(_spelling(model.vocabulary), ensure_ascii=False))
    write_text(folder / TRITON, _triton_config(model, list(inputs)))
    program = _export(_Graph(model.network.encoder), inputs, model)
    with scratch_for(folder / GRAPH) as scratch:
        program.save(scratch)


class _Graph(nn.Module):
    """The encoder, with every word of a batch looked up by itself."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        if isinstance(encoder.contextualizer, Lstm):
            layers = encoder.contextualizer.layers
            encoder.contextualizer.layers = nn.ModuleList(map(_ScannedLayer, layers))
        # In training an encoder is plain torch, without kernels and without looking at values.
        self.encoder = encoder.train().requires_grad_(False)
        for each in encoder.modules():
            if isinstance(each, nn.Dropout):
                each.eval()

    def forward(self, ids: Tensor, lengths: Tensor, char_ids: Tensor | None = None) -> Tensor:
        """(B, L, T, D)"""
        words = torch.arange(ids.numel(), device=ids.device).view(ids.shape)
        flat = ids.new_zeros(ids.numel(), 0) if char_ids is None else char_ids.flatten(0, 1)
        encoded: Encoded = self.encoder(Batch(words, lengths, ids.flatten(), flat))
        return encoded.layers.transpose(0, 1)


class _ScannedLayer(nn.Module):
    """A layer of an LSTM as one Scan over its steps, without what makes it fast here."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, inputs: Tensor, state: State | None) -> tuple[Tensor, State]:
        """(S, T, B, D) -> (S, T, B, P), as `encoders.lstm` has it, from a state of zeros."""
        from torch._higher_order_ops.scan import scan

        assert state is None
        weights: LayerWeights = self.layer.weights()  # type: ignore[operator]
        stacks, _, rows, _ = inputs.shape
        gate_inputs = torch.einsum("stbd,sdg->tsbg", inputs, weights.weight_ih)
        gate_inputs = gate_inputs + weights.bias[:, None]

        def step(state: tuple[Tensor, Tensor], gates: Tensor) -> Any:
            hidden, cell = state
            gates = gates + torch.bmm(hidden, weights.weight_hh)
            input_gate, forget_gate, output_gate, candidate = gates.chunk(4, dim=-1)
            cell = forget_gate.sigmoid() * cell + input_gate.sigmoid() * candidate.tanh()
            cell = _clipped(cell, weights.clips.cell)
            hidden = output_gate.sigmoid() * cell.tanh()
            if weights.weight_hr is not None:
                hidden = torch.bmm(hidden, weights.weight_hr)
            hidden = _clipped(hidden, weights.clips.output)
            return (hidden, cell), hidden.clone()

        zeros = inputs.new_zeros
        size, num_gates = weights.weight_hh.shape[1:]
        first = zeros(stacks, rows, size), zeros(stacks, rows, num_gates // 4)
        last, outputs = scan(step, first, gate_inputs)
        return outputs.transpose(0, 1), State(*last)


def _clipped(values: Tensor, bound: float | None) -> Tensor:
    return values if bound is None else values.clamp(-bound, bound)


def _sample(model: Model) -> dict[str, Tensor]:
    """A batch to trace the graph with."""
    batch = model.vocabulary.batch([["a", "b", "c"], ["a"]])
    inputs = {"ids": batch.ids[batch.words], "lengths": batch.lengths}
    if model.config.encoder.widest_filter:
        # All columns, as many as the widest filter needs and more.
        chars = model.vocabulary.chars
        wide = batch.char_ids.new_full((len(batch.ids), chars.max_characters), 1)
        wide[:, : batch.char_ids.shape[1]] = batch.char_ids
        inputs["char_ids"] = wide[batch.words]
    return inputs


def _export(graph: _Graph, inputs: dict[str, Tensor], model: Model) -> Any:
    encoder = model.config.encoder
    dim = torch.export.Dim
    rows = dim("rows", min=1, max=1 << 16)
    words = dim("words", min=2, max=encoder.contextualizer.max_length or 1 << 16)
    columns = dim("columns", min=max(2, encoder.widest_filter), max=1 << 12)
    axes = {"ids": (rows, words), "lengths": (rows,), "char_ids": (rows, words, columns)}
    log = logging.getLogger("torch.onnx")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return torch.onnx.export(
                graph,
                kwargs=inputs,
                dynamo=True,
                dynamic_shapes={name: dict(enumerate(axes[name])) for name in inputs},
                input_names=list(inputs),
                output_names=["layers"],
                verbose=False,
            )
    finally:
        log.setLevel(level)


def _spelling(vocabulary: Vocabulary) -> dict[str, Any]:
    """How words become numbers, for programs that have no Polyseme."""
    words = enumerate(vocabulary.words.to_pylist(), FIRST_WORD)
    told: dict[str, Any] = {
        "special": {"padding": PAD, "begin": BOS, "end": EOS, "unknown": UNK},
        "words": {word: id_ for id_, word in words},
    }
    if vocabulary.num_characters:
        chars, is_bytes = vocabulary.chars, vocabulary.config.characters == "bytes"
        known = map(chr, range(256)) if is_bytes else chars.characters
        frame = {name: getattr(chars.layout, name) for name in ("padding", "begin", "end")}
        inside = chars.layout.special_tokens
        told["characters"] = {
            "special": {**frame, "unknown": inside[UNK]},
            "sentence": {"begin": inside[BOS], "end": inside[EOS]},
            "most": chars.max_characters,
            "are_bytes": is_bytes,
            "ids": {each: id_ for id_, each in enumerate(known, chars.layout.first)},
        }
    return told


def _triton_config(model: Model, inputs: list[str]) -> str:
    encoder = model.config.encoder
    dims = {"ids": "[ -1 ]", "char_ids": "[ -1, -1 ]", "lengths": "[ 1 ] reshape: { shape: [ ] }"}
    listed = ",\n".join(
        f'  {{ name: "{name}" data_type: TYPE_INT64 dims: {dims[name]} }}' for name in inputs
    )
    layers = f"[ {encoder.num_layers}, -1, {encoder.output_dim} ]"
    return f"""backend: "onnxruntime"
max_batch_size: 64
input [
{listed}
]
output [
  {{ name: "layers" data_type: TYPE_FP32 dims: {layers} }}
]
dynamic_batching {{ }}
"""

"""Which layer knows what: parts of speech by a linear probe, senses by the nearest neighbour.

    python -m benchmarks.probes models/en-mini DATA --out probes --gains gains

DATA holds `ud-english-ewt` and `coarsewsd20`, packed or not. A probe is one linear layer on one
layer of the model, trained on the training part and measured on the test part. A sense is that of
the use in the training part whose vector is nearest (cosine), among uses of the same word; the
split is the official one. Beside them: the most frequent label of each word (parts of speech), and
the most frequent sense. With `--gains`, the folder of benchmarks.gains: also how much of each layer
every task took, the mean over seeds.
"""

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.nn import functional

import polyseme
from benchmarks.gains import unpacked
from polyseme.drawing import load_matplotlib
from polyseme.embedding.word_embedder import WordEmbedder
from polyseme.storage.files import write_text
from polyseme.tasks.families.classification import Classified
from polyseme.tasks.families.family import Example
from polyseme.tasks.families.tagging import Tagged
from polyseme.tasks.measures import count_labels
from polyseme.tasks.readers import load_examples
from polyseme.tasks.readers.conllu import ConlluConfig
from polyseme.tasks.readers.senses import SenseLabelsConfig

Floats = npt.NDArray[np.float32]
_EPOCHS, _BATCH, _RATE = 6, 512, 2e-3


def main() -> None:
    arguments = _parser().parse_args()
    embedder = polyseme.load(arguments.model)
    ewt = unpacked(arguments.data, "ud-english-ewt", arguments.out / "data")
    wsd = unpacked(arguments.data, "coarsewsd20", arguments.out / "data")
    told = {"parts of speech": probe_pos(embedder, ewt), "senses": probe_senses(embedder, wsd)}
    for what, values in told.items():
        for name, value in values.items():
            print(f"{what:16} {name:24} {value:.2%}")
    mixes = read_mixes(arguments.gains) if arguments.gains else {}
    for name, shares in mixes.items():
        print(f"{name:16} " + "  ".join(f"layer {k} {share:.2f}" for k, share in enumerate(shares)))
    write_text(arguments.out / "probes.json", json.dumps(told | {"mixes": mixes}, indent=1))
    _draw(told, mixes, arguments.out / "probes.png")


def probe_pos(embedder: WordEmbedder, folder: Path) -> dict[str, float]:
    """Accuracy on the test part, for each layer and for a table of words."""
    parts = {}
    for part in ("train", "test"):
        [path] = folder.rglob(f"en_ewt-ud-{part}.conllu")
        parts[part] = load_examples(path, ConlluConfig()).examples
    labels = {part: _labels(examples) for part, examples in parts.items()}
    names = sorted(set(labels["train"]))
    number = {name: k for k, name in enumerate(names)}
    found = {"most frequent": _by_word(parts["train"], parts["test"])}
    vectors = {part: _all_layers(embedder, examples) for part, examples in parts.items()}
    wanted = np.array([number[label] for label in labels["train"]])
    for layer in range(embedder.num_layers):
        guessed = _probe(vectors["train"][layer], wanted, vectors["test"][layer], len(names))
        right = [names[k] == label for k, label in zip(guessed, labels["test"], strict=True)]
        found[f"layer {layer}"] = float(np.mean(right))
    return found


def probe_senses(embedder: WordEmbedder, folder: Path) -> dict[str, float]:
    """F1 over all uses (micro), and the mean over words of F1 over senses (macro)."""
    micro: dict[str, list[tuple[str, str]]] = defaultdict(list)
    macro: dict[str, list[float]] = defaultdict(list)
    for path in sorted(folder.rglob("train.data.txt")):
        if "balanced" in path.as_posix():
            continue
        train = load_examples(path, SenseLabelsConfig()).examples
        test = load_examples(path.parent / "test.data.txt", SenseLabelsConfig()).examples
        gold = [example.label for example in test if isinstance(example, Classified)]
        known = [example.label for example in train if isinstance(example, Classified)]
        common = Counter(known).most_common(1)[0][0]
        answers = {"most frequent": [common] * len(gold)}
        uses, asked = _marked_layers(embedder, train), _marked_layers(embedder, test)
        for layer in range(embedder.num_layers):
            nearest = (_unit(asked[layer]) @ _unit(uses[layer]).T).argmax(axis=1)
            answers[f"layer {layer}"] = [known[place] for place in nearest]
        for name, given in answers.items():
            micro[name] += list(zip(gold, given, strict=True))
            macro[name].append(count_labels(gold, given).value("macro-f1"))
    found = {name: float(np.mean([a == b for a, b in pairs])) for name, pairs in micro.items()}
    return found | {f"{name}, macro": float(np.mean(each)) for name, each in macro.items()}


def read_mixes(gains: Path) -> dict[str, list[float]]:
    """The share of each layer at the input, for each task whose gain was measured."""
    found = {}
    for path in sorted(gains.glob("*-dev.json")):
        told = json.loads(path.read_text(encoding="utf-8"))
        shares = [mixes["input"]["weights"] for mixes in told["mixes"]]
        found[str(told["task"])] = np.mean(shares, axis=0).tolist()
    return found


def _labels(examples: Sequence[Example]) -> list[str]:
    return [label for each in examples if isinstance(each, Tagged) for label in each.labels]


def _by_word(train: Sequence[Example], test: Sequence[Example]) -> float:
    """Each word's most frequent label in the training part; for new words that of all."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for example in train:
        assert isinstance(example, Tagged)
        for word, label in zip(example.words, example.labels, strict=True):
            counts[word][label] += 1
    usual = Counter(_labels(train)).most_common(1)[0][0]
    right = []
    for example in test:
        assert isinstance(example, Tagged)
        for word, label in zip(example.words, example.labels, strict=True):
            best = counts[word].most_common(1)[0][0] if word in counts else usual
            right.append(best == label)
    return float(np.mean(right))


def _all_layers(embedder: WordEmbedder, examples: Sequence[Example]) -> list[Floats]:
    """(words, D) for each layer."""
    sentences = [list(each.words) for each in examples if isinstance(each, Tagged)]
    found = [vectors.astype(np.float16) for vectors in embedder.stream(sentences)]
    return [np.concatenate([each[layer] for each in found]) for layer in range(embedder.num_layers)]


def _marked_layers(embedder: WordEmbedder, examples: Sequence[Example]) -> list[Floats]:
    """(uses, D) for each layer: the vectors of the marked word."""
    chosen = [each for each in examples if isinstance(each, Classified)]
    sentences = [list(each.text) for each in chosen]
    rows = [
        vectors[:, each.target_index]
        for each, vectors in zip(chosen, embedder.stream(sentences), strict=True)
    ]
    return list(np.stack(rows, axis=1))


def _probe(train: Floats, wanted: npt.NDArray[Any], test: Floats, labels: int) -> list[int]:
    """One linear layer, trained by Adam; the vectors brought to mean 0 and deviation 1 first."""
    torch.manual_seed(0)
    mean, scale = train.mean(axis=0, dtype=np.float32), train.std(axis=0, dtype=np.float32) + 1e-6
    x = torch.from_numpy((train.astype(np.float32) - mean) / scale)
    y = torch.from_numpy(wanted)
    layer = torch.nn.Linear(x.shape[1], labels)
    optimizer = torch.optim.Adam(layer.parameters(), lr=_RATE)
    steps = _EPOCHS * -(-len(x) // _BATCH)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, steps)
    for _ in range(_EPOCHS):
        for rows in torch.split(torch.randperm(len(x)), _BATCH):
            optimizer.zero_grad()
            loss = functional.cross_entropy(layer(x[rows]), y[rows])
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
    with torch.no_grad():
        scores = layer(torch.from_numpy((test.astype(np.float32) - mean) / scale))
    guessed: list[int] = scores.argmax(dim=1).tolist()
    return guessed


def _unit(vectors: Floats) -> Floats:
    unit: Floats = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit


def _draw(told: dict[str, dict[str, float]], mixes: dict[str, list[float]], path: Path) -> None:
    figure_class, _, _ = load_matplotlib()
    panels = len(told) + bool(mixes)
    figure = figure_class(figsize=(4.5 * panels, 3.6), layout="constrained")
    all_axes = figure.subplots(1, panels)
    for axes, (what, values) in zip(all_axes, told.items(), strict=False):
        shown = {name: value for name, value in values.items() if "macro" not in name}
        bars = axes.barh(list(shown), [100 * value for value in shown.values()], color="#2f6690")
        axes.bar_label(bars, fmt="{:.1f}", padding=3)
        axes.invert_yaxis()
        axes.set(title=what, xlabel="% right", xlim=(0, 108))
    if mixes:
        _draw_mixes(all_axes[-1], mixes)
    figure.savefig(path, dpi=130)


def _draw_mixes(axes: Any, mixes: dict[str, list[float]]) -> None:
    shares = 100 * np.array(list(mixes.values()))  # (tasks, layers)
    left = np.zeros(len(shares))
    for layer, column in enumerate(shares.T):
        colour = ("#d5e1e9", "#9dbfd6", "#6598bf")[layer % 3]
        bars = axes.barh(list(mixes), column, left=left, color=colour, label=f"layer {layer}")
        axes.bar_label(bars, fmt="{:.0f}", label_type="center", fontsize=8)
        left += column
    axes.invert_yaxis()
    axes.set(title="what each task took", xlabel="% of the mix", xlim=(0, 100))
    axes.legend(ncols=3, loc="lower center", bbox_to_anchor=(0.5, -0.32), frameon=False)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("model", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, default=Path("probes"))
    parser.add_argument("--gains", type=Path)
    return parser


if __name__ == "__main__":
    main()

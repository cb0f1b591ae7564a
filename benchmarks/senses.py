"""How well uses of a word are told apart by meaning, on labelled data.

    python -m benchmarks.senses models/en-mini DATA --out senses
    python -m benchmarks.senses models/zh-mini DATA --out senses --only mcl-zh,sememe

DATA holds the archives of labelled data, as NAME.tar.xz or unpacked. Per data set, beside the
features of `polyseme senses` and those without syntax, as `polyseme same` has them: a word's own
vector in every layer (layer 0 is static), the same of random weights, and a bag of words.

    wic, mcl-en, mcl-zh   same sense or not: accuracy, the threshold tuned on training pairs
    coarsewsd, senseval   sense of a use: macro-F1 by the nearest labelled use and by the nearest
                          mean of a sense; and groups found without labels: ARI, B-cubed, number
    sememe                the same for Chinese
    pseudo                uses of two words mixed, to be told apart again, and of one word, to be
                          left whole; needs --corpus

Groups are told for all words and for two halves of them: settings may be chosen on one half.
"""

import argparse
import json
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from sklearn.metrics import adjusted_rand_score, f1_score

import polyseme
from benchmarks.gains import unpacked
from benchmarks.senses_data import (
    LabelledUse,
    Pair,
    read_coarsewsd,
    read_mcl,
    read_sememe,
    read_senseval,
    read_wic,
)
from polyseme.embedding.embedder import Embedder
from polyseme.embedding.word_embedder import WordEmbedder
from polyseme.meanings.concordance.uses import find_uses
from polyseme.meanings.features.use_describer import UseDescriber
from polyseme.meanings.features.use_features import Floats, UseFeatures
from polyseme.meanings.groups.grouping import centred, group_uses, join_views, unit_length
from polyseme.model import Model
from polyseme.storage.files import write_text
from polyseme.text.corpus import Corpus

Labels = npt.NDArray[np.int64]
_GRAPH = 500  # uses of a word that are grouped, as in the trial this is compared with
_WORDS = 60  # pseudo-words, and single words


@dataclass(frozen=True, eq=False)
class Described:
    """Uses with everything that is compared."""

    features: UseFeatures
    without_syntax: UseFeatures
    layers: Floats  # (L, N, D) the word's own vectors

    def select(self, chosen: Labels) -> "Described":
        features, without = self.features.select(chosen), self.without_syntax.select(chosen)
        return Described(features, without, self.layers[:, chosen])


def main() -> None:
    arguments = _parser().parse_args()
    embedder = polyseme.load(arguments.model, threads=arguments.threads)
    assert isinstance(embedder, Embedder)
    random = _random_weights(embedder.model, arguments.threads)
    chosen = arguments.only.split(",") if arguments.only else _data_of(embedder)
    told: dict[str, Any] = {}
    for name in chosen:
        told[name] = _run(name, embedder, random, arguments)
        for measure, values in told[name].items():
            for row, value in values.items():
                print(f"{name:10} {measure:22} {row:26} {value:.3f}", flush=True)
    path = arguments.out / f"{Path(arguments.model).name}.json"
    write_text(path, json.dumps(told, indent=1))


def _data_of(embedder: Embedder) -> list[str]:
    assert embedder.preparation
    if embedder.preparation.settings.language == "zh":
        return ["mcl-zh", "sememe"]
    return ["wic", "mcl-en", "coarsewsd", "senseval"]


def _run(name: str, embedder: Embedder, random: Embedder, arguments: Any) -> dict[str, Any]:
    scratch = arguments.out / "data"
    match name:
        case "wic":
            return same_or_not(embedder, random, *read_wic(arguments.data, scratch, embedder))
        case "mcl-en" | "mcl-zh":
            language = name.removeprefix("mcl-")
            pairs = read_mcl(arguments.data, scratch, embedder, language)
            return same_or_not(embedder, random, *pairs)
        case "coarsewsd":
            uses = list(read_coarsewsd(unpacked(arguments.data, "coarsewsd20", scratch)))
        case "senseval":
            uses = list(read_senseval(unpacked(arguments.data, "senseval2", scratch)))
        case "sememe":
            uses = list(read_sememe(unpacked(arguments.data, "sememe-wsd-zh", scratch)))
        case "pseudo":
            return pseudo_words(embedder, Corpus.open(arguments.corpus))
        case _:
            raise SystemExit(f"{name} is not a data set of this benchmark.")
    return senses_of(embedder, random, uses)


def _random_weights(model: Model, threads: int) -> Embedder:
    torch.manual_seed(1)
    new = Model.new(model.config, model.vocabulary, model.preparation)
    return Embedder(new, threads=threads)


def describe(
    embedder: WordEmbedder, uses: Sequence[tuple[Sequence[str], tuple[int, int]]]
) -> Described:
    """Features, and the mean of the word's own vectors in each layer."""
    describer = UseDescriber(embedder)
    contexts, bags, layers = [], [], []
    sentences = [words for words, _ in uses]
    for vectors, (_, (begin, end)), words in zip(
        embedder.stream(sentences), uses, sentences, strict=True
    ):
        context, bag = describer.one(vectors, words, [(begin, end)])
        contexts.append(context)
        bags.append(bag)
        layers.append(vectors[:, begin:end].mean(axis=1))
    features = describer.features(np.concatenate(contexts), np.concatenate(bags))
    return Described(features, describer.without_syntax(features), np.stack(layers, axis=1))


def variants(described: Described, random: Described) -> dict[str, Floats]:
    """What is compared: vectors (N, D) of length one, near being alike."""
    found = {f"layer {n}": unit_length(layer) for n, layer in enumerate(described.layers)}
    found["random weights, top layer"] = unit_length(random.layers[-1])
    found["bag"] = centred(described.features.bag)
    found["context"] = unit_length(described.features.context)
    found["context, centred"] = centred(described.features.context)
    if described.features.substitutes is not None:
        found["all three"] = join_views(described.features)
        found["… without syntax"] = join_views(described.without_syntax)
    return found


def same_or_not(
    embedder: Embedder, random: Embedder, pairs: list[Pair], split: dict[str, list[int]]
) -> dict[str, Any]:
    """Accuracy on each part but the training part, whose threshold is used."""
    uses = [use for first, second, _ in pairs for use in (first, second)]
    gold = np.array([is_same for *_, is_same in pairs])
    every = variants(describe(embedder, uses), describe(random, uses))
    told: dict[str, Any] = {part: {} for part in split if part != "train"}
    for name, vectors in every.items():
        cosines = (vectors[0::2] * vectors[1::2]).sum(axis=1)
        tuned = _best_threshold(cosines[split["train"]], gold[split["train"]])
        for part, rows in told.items():
            right = (cosines[split[part]] > tuned) == gold[split[part]]
            rows[name] = float(right.mean())
    return told


def _best_threshold(cosines: Floats, gold: npt.NDArray[np.bool_]) -> float:
    order = np.argsort(cosines)
    sorted_gold = gold[order]
    below = np.concatenate([[0], np.cumsum(~sorted_gold)])  # right if called different
    above = np.concatenate([[0], np.cumsum(sorted_gold[::-1])])[::-1]
    best = int((below + above).argmax())
    edges = np.concatenate([[-2.0], cosines[order], [2.0]])
    return float((edges[best] + edges[best + 1]) / 2)


def senses_of(embedder: Embedder, random: Embedder, uses: list[LabelledUse]) -> dict[str, Any]:
    """Nearest use, nearest mean, and groups; each the mean over words."""
    given = [(use.words, use.span) for use in uses]
    described, randomly = describe(embedder, given), describe(random, given)
    by_word: dict[str, list[int]] = defaultdict(list)
    for number, use in enumerate(uses):
        by_word[use.word].append(number)
    rows: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for place, (word, numbers) in enumerate(sorted(by_word.items())):
        chosen = np.array(numbers)
        senses = np.unique([uses[n].sense for n in numbers], return_inverse=True)[1]
        train = np.array([uses[n].is_train for n in numbers])
        every = variants(described.select(chosen), randomly.select(chosen))
        for name, vectors in every.items():
            nearest, mean = _supervised(vectors, senses, train)
            rows["1-NN macro-F1"][name].append(nearest)
            rows["centroid macro-F1"][name].append(mean)
        for measure, value in _grouped(described.select(chosen).features, senses).items():
            rows[measure]["all words"].append(value)
            rows[measure]["held-out words" if place % 2 else "words tuned on"].append(value)
            rows[measure][word].append(value)
    return {
        measure: {k: float(np.mean(v)) for k, v in row.items()} for measure, row in rows.items()
    }


def _supervised(
    vectors: Floats, senses: Labels, train: npt.NDArray[np.bool_]
) -> tuple[float, float]:
    similar = vectors[~train] @ vectors[train].T
    nearest = senses[train][similar.argmax(axis=1)]
    known = np.unique(senses[train])
    means = unit_length(
        np.stack([vectors[train & (senses == sense)].mean(axis=0) for sense in known])
    )
    closest = known[(vectors[~train] @ means.T).argmax(axis=1)]
    gold = senses[~train]
    score: Callable[..., float] = f1_score
    return score(gold, nearest, average="macro"), score(gold, closest, average="macro")


def _grouped(features: UseFeatures, senses: Labels) -> dict[str, float]:
    chosen = np.random.default_rng(0).permutation(len(senses))[:_GRAPH]
    gold = senses[chosen]
    grouping = group_uses(features.select(chosen))
    return {
        "groups ARI": float(adjusted_rand_score(gold, grouping.labels)),
        "groups B-cubed": b_cubed(gold, grouping.labels),
        "groups B-cubed, one": b_cubed(gold, np.zeros_like(gold)),
        "groups found": float(grouping.num_groups),
        "senses there are": float(len(np.unique(gold))),
    }


def b_cubed(gold: Labels, found: Labels) -> float:
    """F1 of B-cubed precision and recall (Bagga and Baldwin, 1998)."""
    together = np.zeros((gold.max() + 1, found.max() + 1))
    np.add.at(together, (gold, found), 1)
    precision = (together**2 / np.maximum(together.sum(axis=0), 1)).sum() / together.sum()
    recall = (
        together**2 / np.maximum(together.sum(axis=1, keepdims=True), 1)
    ).sum() / together.sum()
    return float(2 * precision * recall / (precision + recall))


def pseudo_words(embedder: Embedder, corpus: Corpus) -> dict[str, Any]:
    """Two words' uses mixed must come apart, one word's must stay together."""
    import pyarrow.parquet as pq

    random = np.random.default_rng(1)
    table = pq.read_table(corpus.vocabulary).to_pandas()
    frequent = table[(table["count"] >= 300) & (table["count"] <= 4000)]["word"]
    plain = sorted(w for w in frequent if re.fullmatch(r"[a-z]{4,}|[\u4e00-\u9fff]{2,}", w))
    words = [str(word) for word in random.choice(plain, 2 * _WORDS, replace=False)]
    described = {}
    for word in words:
        uses = find_uses(corpus, word)
        uses = uses.select(random.permutation(len(uses))[:250])
        spans = [(int(begin), int(end)) for begin, end in uses.spans]
        described[word] = describe(
            embedder, list(zip(uses.sentences(), spans, strict=True))
        ).features
    rows: dict[str, list[float]] = defaultdict(list)
    for first, second in zip(words[0::2], words[1::2], strict=True):
        for minority in (1.0, 0.25):
            two = described[second].select(np.arange(int(250 * minority)))
            both = _joined(described[first], two)
            gold = np.repeat([0, 1], [len(described[first]), len(two)])
            name = "ARI, half and half" if minority == 1 else "ARI, four to one"
            rows[name].append(float(adjusted_rand_score(gold, group_uses(both).labels)))
    rows["single words left whole"] = [
        float(group_uses(described[word]).num_groups == 1) for word in words[:_WORDS]
    ]
    return {"pseudo": {name: float(np.mean(values)) for name, values in rows.items()}}


def _joined(one: UseFeatures, two: UseFeatures) -> UseFeatures:
    assert one.substitutes is not None
    assert two.substitutes is not None
    return UseFeatures(
        np.concatenate([one.context, two.context]),
        np.concatenate([one.bag, two.bag]),
        np.concatenate([one.substitutes, two.substitutes]),
    )


def _parser() -> argparse.ArgumentParser:
    parser = model_and_data(__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--corpus", type=Path)
    return parser


def model_and_data(about: str) -> argparse.ArgumentParser:
    """What every benchmark of a model on labelled uses is told; `about` is its docstring."""
    parser = argparse.ArgumentParser(description=about.split("\n", maxsplit=1)[0])
    parser.add_argument("model")
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--threads", type=int, default=1)
    return parser


if __name__ == "__main__":
    main()

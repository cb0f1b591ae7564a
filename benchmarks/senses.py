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
    mixed                 uses of two nouns of --corpus mixed, to be told apart again, and of one
                          noun, to be left whole

With --corpus, groups are made as `polyseme senses` makes them in that corpus: with its topics, and
by its own limits for one meaning.

Groups are told for all words and for two halves of them: settings may be chosen on one half.
"""

import argparse
import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq
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
from polyseme.meanings.concordance.uses import Uses, find_uses
from polyseme.meanings.features.use_encoder import ModelUseEncoder
from polyseme.meanings.features.use_features import Floats, UseFeatures
from polyseme.meanings.groups.calibration import calibration_of, encode_uses, topics_of
from polyseme.meanings.groups.grouping import (
    MIN_USES,
    Limits,
    centred,
    group_uses,
    join_views,
    unit_length,
)
from polyseme.model import Model
from polyseme.storage.files import write_text
from polyseme.text.corpus import Corpus

Labels = npt.NDArray[np.int64]
_GRAPH = 500  # uses of a word that are grouped, as in the trial this is compared with
_EACH, _PAIRS = 200, 100  # uses of a noun, and pairs of nouns that are mixed
_RARE = 0.03, 0.2  # the share of a rare sense
_NOUNS = """
daughter castle doctor wine bread horse winter poem teacher singer desert forest temple priest
lawyer piano bridge hospital emperor poet violin village river garden kitchen brother uncle
servant tree flower sheep dog ship money dinner breakfast soldier sword lake song church
mountain bishop prayer harbour island
"""


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
        case "mixed":
            return mixed_words(embedder, Corpus.open(arguments.corpus))
        case _:
            raise SystemExit(f"{name} is not a data set of this benchmark.")
    corpus = Corpus.open(arguments.corpus) if arguments.corpus else None
    return senses_of(embedder, random, uses, corpus)


def _random_weights(model: Model, threads: int) -> Embedder:
    torch.manual_seed(1)
    new = Model.new(model.config, model.vocabulary, model.preparation)
    return Embedder(new, threads=threads)


def describe(
    embedder: WordEmbedder, uses: Sequence[tuple[Sequence[str], tuple[int, int]]]
) -> Described:
    """Features, and the mean of the word's own vectors in each layer."""
    encoder = ModelUseEncoder(embedder)
    contexts, bags, layers = [], [], []
    sentences = [words for words, _ in uses]
    for vectors, (_, (begin, end)), words in zip(
        embedder.stream(sentences), uses, sentences, strict=True
    ):
        context, bag = encoder.one(vectors, words, [(begin, end)])
        contexts.append(context)
        bags.append(bag)
        layers.append(vectors[:, begin:end].mean(axis=1))
    features = encoder.features(np.concatenate(contexts), np.concatenate(bags))
    return Described(features, encoder.without_syntax(features), np.stack(layers, axis=1))


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


def senses_of(
    embedder: Embedder, random: Embedder, uses: list[LabelledUse], corpus: Corpus | None
) -> dict[str, Any]:
    """Nearest use, nearest mean, and groups; each the mean over words."""
    topics = topics_of(corpus) if corpus else None
    calibration = calibration_of(corpus, ModelUseEncoder(embedder)) if corpus else None
    limits = calibration.limits if calibration else None
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
        own, lines = described.select(chosen), [given[number] for number in numbers]
        grouped = own.without_syntax
        if topics:
            around = Uses.of([words for words, _ in lines], [span for _, span in lines])
            grouped = topics.added_to(grouped, around, ModelUseEncoder(embedder).words)
        every = variants(own, randomly.select(chosen)) | {"as grouped": join_views(grouped)}
        for name, vectors in every.items():
            nearest, mean = _supervised(vectors, senses, train)
            rows["1-NN macro-F1"][name].append(nearest)
            rows["centroid macro-F1"][name].append(mean)
        for measure, value in _grouped(grouped, senses, limits).items():
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


def _grouped(features: UseFeatures, senses: Labels, limits: Limits | None) -> dict[str, float]:
    chosen = np.random.default_rng(0).permutation(len(senses))[:_GRAPH]
    gold = senses[chosen]
    grouping = group_uses(features.select(chosen), limits=limits)
    finer = group_uses(features.select(chosen), limits=limits, finer=1)
    found = {
        "groups ARI": float(adjusted_rand_score(gold, grouping.labels)),
        "groups B-cubed": b_cubed(gold, grouping.labels),
        "groups B-cubed, one": b_cubed(gold, np.zeros_like(gold)),
        "groups found": float(grouping.num_groups),
        "senses there are": float(len(np.unique(gold))),
    }
    for name, labels in (("rare senses F1", grouping.labels), ("… a step finer", finer.labels)):
        if rare := best_f1(gold, labels):
            found[name] = float(np.mean(rare))
    return found


def best_f1(gold: Labels, found: Labels) -> list[float]:
    """F1 of each rare sense with the group that has most of it."""
    together = np.zeros((gold.max() + 1, found.max() + 1))
    np.add.at(together, (gold, found), 1)
    f1 = 2 * together / (together.sum(axis=1, keepdims=True) + together.sum(axis=0))
    shares = together.sum(axis=1) / len(gold)
    return f1.max(axis=1)[(shares >= _RARE[0]) & (shares <= _RARE[1])].tolist()  # type: ignore[no-any-return]


def b_cubed(gold: Labels, found: Labels) -> float:
    """F1 of B-cubed precision and recall (Bagga and Baldwin, 1998)."""
    together = np.zeros((gold.max() + 1, found.max() + 1))
    np.add.at(together, (gold, found), 1)
    precision = (together**2 / np.maximum(together.sum(axis=0), 1)).sum() / together.sum()
    recall = (
        together**2 / np.maximum(together.sum(axis=1, keepdims=True), 1)
    ).sum() / together.sum()
    return float(2 * precision * recall / (precision + recall))


def mixed_words(embedder: Embedder, corpus: Corpus) -> dict[str, Any]:
    """Two words' uses mixed must come apart, one word's must stay together: by the corpus's own
    limits, which are of other words."""
    encoder, random = ModelUseEncoder(embedder), np.random.default_rng(1)
    calibration = calibration_of(corpus, encoder)
    limits = calibration.limits if calibration else None
    features = {}
    for word in nouns_of(corpus):
        uses = find_uses(corpus, word)
        chosen = uses.select(np.sort(random.permutation(len(uses))[:_EACH]))
        features[word] = encode_uses(chosen, encoder)
    words = list(features)
    rows: dict[str, list[float]] = defaultdict(list)
    rows["words left whole"] = [
        float(group_uses(features[word], limits=limits).num_groups == 1) for word in words
    ]
    for first, second in random.permutation(list(combinations(words, 2)))[:_PAIRS].tolist():
        for name, minority in (("1:1", _EACH), ("4:1", _EACH // 4)):
            one, two = features[first], features[second]
            both = one.joined(two.select(np.arange(min(minority, len(two)))))
            gold = (np.arange(len(both)) >= len(one)).astype(np.int64)
            found = group_uses(both, limits=limits)
            rows[f"mixed {name}, split"].append(float(found.num_groups > 1))
            rows[f"mixed {name}, ARI"].append(float(adjusted_rand_score(gold, found.labels)))
            two_groups = group_uses(both, num_groups=2).labels
            rows[f"mixed {name}, ARI of two"].append(float(adjusted_rand_score(gold, two_groups)))
    told = {name: float(np.mean(values)) for name, values in rows.items()}
    return {"mixed": told | ({"trust of the corpus": calibration.ari} if calibration else {})}


def nouns_of(corpus: Corpus) -> list[str]:
    """Nouns taken to have one meaning, as far as the corpus has enough uses of them."""
    table = pq.read_table(corpus.vocabulary).to_pydict()
    counts = dict(zip(table["word"], table["count"], strict=True))
    return [word for word in _NOUNS.split() if counts.get(word, 0) >= 2 * MIN_USES]


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

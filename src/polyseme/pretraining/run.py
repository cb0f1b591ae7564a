"""A whole pretraining run: from a corpus and a preset to a finished model folder.

in    a `PretrainConfig`
out   the model, its card, learning curve and run log; what was stopped goes on

The card says what the model is, what it was made from, how good it is and what it is not for.
"""

import contextlib
import hashlib
import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from polyseme.config import Settings, build, merged, read_toml, to_toml
from polyseme.data.stream import BatchConfig
from polyseme.data.vocabulary import Vocabulary
from polyseme.devices import resolve_precision
from polyseme.display import html_table, summary
from polyseme.errors import ConfigError, MissingExtraError, ModelError
from polyseme.model import LanguageModel, Model, ModelConfig, build_network, count_parameters
from polyseme.objectives.bidirectional import BidirectionalConfig
from polyseme.presets import PRESETS, Preset
from polyseme.pretraining import PretrainConfig, RunConfig
from polyseme.pretraining.evaluation import Evaluation, evaluate, unigram_perplexities
from polyseme.pretraining.language_modeling import (
    Pretraining,
    measure_throughput,
    time_evaluation,
    without_denormals,
)
from polyseme.processes import keep_freed_memory
from polyseme.progress import SILENT, Progress
from polyseme.storage.files import (
    canonical_json,
    disk_faults_explained,
    hold_folder,
    make_output,
    sha256_of,
    write_text,
)
from polyseme.storage.folders import CONFIG, MANIFEST
from polyseme.storage.installed import model_folder
from polyseme.text.corpus import Corpus
from polyseme.training import TrainingConfig, fingerprint_of
from polyseme.training.checkpoint import CHECKPOINTS, Checkpoints, Outcome
from polyseme.training.loop import train
from polyseme.training.processes import is_main_process, num_processes, own_shards
from polyseme.training.runlog import NAME as RUN_LOG
from polyseme.training.runlog import draw_curve

_CURVE = "curve.png"
_MORE_AT_THE_END = 4  # times as many held-out words: a minute or two, and within 1 % of all
_PLAN = "plan.toml"
_OTHER_SETTINGS = "{} holds a finished model of other settings. Choose another --out."


class Plan(Settings):
    """Everything a run is made of, resolved; `plan.toml` in its folder."""

    model: ModelConfig
    """Words, encoder, objective."""
    batches: BatchConfig
    """How much text a step sees."""
    training: TrainingConfig
    """How the model is trained."""


@dataclass(frozen=True)
class PretrainResult:
    """The finished model and how the run went."""

    folder: Path
    model: Model
    outcome: Outcome
    notes: list[str]
    is_continued: bool
    """Whether it began with the weights of another model."""

    def to_json(self) -> dict[str, Any]:
        """Plain values: measures on held-out text, how the run went."""
        names = ("perplexity", "unigram_perplexity", "accuracy")
        measured = {name: self.model.metadata.get(name, {}) for name in names}
        return {"folder": str(self.folder), **measured, **asdict(self.outcome), "notes": self.notes}

    def __repr__(self) -> str:
        perplexity = self.model.metadata["perplexity"]
        told = ", ".join(f"{part} {value:,.1f}" for part, value in perplexity.items())
        return summary(
            f"PretrainResult {self.folder}",
            f"held-out perplexity {told}" if told else "nothing held out",
            f"{self.outcome.steps:,} steps",
            f"{self.outcome.words:,} words",
            f"{self.outcome.seconds / 3600:.2f} hours",
        )

    def _repr_html_(self) -> str:
        metadata = self.model.metadata
        unigram = metadata.get("unigram_perplexity", {})
        rows = [
            (part, value, unigram.get(part, "")) for part, value in metadata["perplexity"].items()
        ]
        title = f"{self.folder}: {self.outcome.steps:,} steps"
        return html_table(title, rows, ("part", "held-out perplexity", "unigram"))


def pretrain(config: PretrainConfig, progress: Progress = SILENT) -> PretrainResult | None:
    """Train, or go on with what was begun. Only the first of several processes returns a model."""
    progress = progress if is_main_process() else SILENT
    with disk_faults_explained(config.out), without_denormals():
        return _pretrain(config, progress)


def _pretrain(config: PretrainConfig, progress: Progress) -> PretrainResult | None:
    corpus = Corpus.open(config.corpus)
    keep_freed_memory()
    preset = preset_named(config.preset)
    model = _begin_model(config, preset, corpus)
    if (config.out / MANIFEST).exists() and not Checkpoints(config.out, keep=1).steps():
        return _finished_before(config, model, progress)
    batches = resolve_batches(preset, config.batches)
    precision = resolve_precision(config.training.precision, config.training.device)
    train_module = Pretraining(
        model,
        corpus,
        batches,
        seed=config.training.seed,
        held_out_words=config.held_out_words,
        precision=precision,
        only=config.only,
    )
    train_module.own_shards = own_shards(config.training.gradient_accumulation_steps)
    if not corpus.read_stats["held_out_sentences"]:
        progress.log(f"{corpus.folder} has no held-out sentences to evaluate on.")
    plan = _plan(config, preset, train_module, progress)
    with contextlib.ExitStack() as stack:
        if is_main_process():
            make_output(config.out)
            stack.enter_context(hold_folder(config.out))
            _record(config.out, plan)
        outcome = train(train_module, plan.training, config.out, progress=progress)
        if not is_main_process():
            return None
        return _finish(config, train_module, plan, outcome, progress)


def _finished_before(config: PretrainConfig, wanted: Model, progress: Progress) -> PretrainResult:
    """A model that is finished and whose checkpoints are gone: nothing is left to do."""
    model = Model.load(config.out)
    metadata = model.metadata
    steps = config.training.steps
    if model.config != wanted.config:
        raise ModelError(_OTHER_SETTINGS.format(config.out))
    if (steps or metadata["steps"]) != metadata["steps"]:
        raise ModelError(
            f"{config.out} holds a finished model of {metadata['steps']:,} steps, and its "
            "checkpoints are gone. To train it further: polyseme pretrain CORPUS --from "
            f"{shlex.quote(str(config.out))} --out NEW"
        )
    progress.log(f"{config.out} is finished.")
    outcome = Outcome(
        steps=metadata["steps"],
        seconds=3600 * metadata["hours"],
        words=metadata["words"],
        measures={},
        stopped_early=False,
        best_step=0,
        skipped=0,
        refused=0,
    )
    return PretrainResult(config.out, model, outcome, [], config.from_model is not None)


def _begin_model(config: PretrainConfig, preset: Preset, corpus: Corpus) -> Model:
    """An untrained model of the preset, or a trained one to go on with."""
    torch.manual_seed(config.training.seed)
    if config.from_model is None:
        if config.only is not None:
            raise ConfigError(f"Name the model that gets the {config.only} head: --from MODEL.")
        if config.interpolate < 1:
            raise ConfigError("Name the model to interpolate with: --from MODEL.")
        if config.vocabulary == "corpus":
            raise ConfigError("--vocabulary is for --from MODEL; without it, it is the corpus's.")
        wanted = resolve_model(preset, config.model)
        return Model.new(wanted, Vocabulary.of(corpus, wanted.vocabulary), corpus.preparation)
    if config.model:
        raise ConfigError("With --from, the model's settings cannot be changed; remove model.*.")
    if config.only is not None and config.interpolate < 1:
        raise ConfigError(f"With --only {config.only} there is nothing to interpolate with.")
    if config.vocabulary == "corpus" and (config.only is not None or config.interpolate < 1):
        raise ConfigError("--only and --interpolate keep the model's words: --vocabulary model.")
    model = Model.load(config.from_model)
    if config.vocabulary == "corpus":
        return model.with_words_of(corpus)
    other_way = ". Or give the model the corpus's words: --vocabulary corpus"
    corpus.check_same_words(model.preparation, other_way)
    return model if config.only is None else _with_cloze_head(model)


def _with_cloze_head(model: Model) -> Model:
    """The model with a cloze head: its own, or a new one."""
    objective = model.config.objective
    if not isinstance(objective, BidirectionalConfig):
        raise ModelError(
            f"A model trained as {objective.kind!r} can have no cloze head: it needs a forward and "
            "a backward language model. Begin with one trained as 'bidirectional', such as ELMo."
        )
    if objective.cloze:
        return model
    wanted = objective.model_copy(update={"cloze": True})
    config = model.config.model_copy(update={"objective": wanted})
    network = build_network(config, model.vocabulary)
    network.load_state_dict(network.state_dict() | model.network.state_dict())
    return replace(model, config=config, network=network)


def _plan(
    config: PretrainConfig, preset: Preset, train_module: Pretraining, progress: Progress
) -> Plan:
    """All settings resolved; how many steps is decided when a run begins, and then stays."""
    model, batches = train_module.model.config, train_module.batch_config
    before = config.out / _PLAN
    steps = config.training.steps
    if steps is None and before.is_file():
        steps = build(Plan, read_toml(before)).training.steps
        progress.log(f"Resuming with the {steps:,} steps planned when the run began.")
    if steps is None and config.hours is not None:
        steps = _steps_in(config, preset, train_module, progress)
    if steps is None:
        words = (config.epochs or 1.0) * train_module.stream.words_per_epoch
        steps = max(1, round(words / batches.words))
    return Plan(
        model=model, batches=batches, training=resolve_training(config.training, preset, steps)
    )


def _steps_in(
    config: PretrainConfig, preset: Preset, train_module: Pretraining, progress: Progress
) -> int:
    """How many steps fit in the hours asked for."""
    assert config.hours is not None
    if num_processes() > 1:
        raise ConfigError("With several processes give --steps or --epochs: `polyseme plan` helps.")
    progress.log("Timing a few steps ...")
    training = resolve_training(config.training, preset, 1000)
    # Of a run of a minute or two, timing must not be the larger part.
    throughput = measure_throughput(train_module, training, max_seconds=360 * config.hours)
    measuring = time_evaluation(train_module)
    left = config.hours * 3600 - _MORE_AT_THE_END * measuring
    fitting = int(left / (throughput.seconds + measuring / training.evaluate_every))
    # A short run on a slow machine could be nothing but measuring: half of the time is for steps.
    fewest = max(1, int(config.hours * 1800 / throughput.seconds))
    steps = max(fewest, fitting)
    speed, hours = f"{throughput.words_per_second:,.0f} words/s", f"{config.hours:.3g} hours"
    progress.log(f"{speed}: {steps:,} steps in {hours}, evaluation included.")
    if fitting < fewest:
        progress.log(
            "Evaluation alone takes more than half of this time, so the run takes longer than "
            "asked for. Allow more time, or use fewer --held-out-words."
        )
    return steps


def _record(out: Path, plan: Plan) -> None:
    """Write what the run is made of, unless it was begun before: then only its length may change.

    Whether the rest is the same, the training loop will say; it knows what may differ.
    """
    if (out / MANIFEST).exists():
        before = build(ModelConfig, read_toml(out / CONFIG).get("model", {}))
        if before != plan.model:
            raise ModelError(_OTHER_SETTINGS.format(out))
    if not (out / CHECKPOINTS).exists() or _is_of_other_length(out / _PLAN, plan):
        write_text(out / _PLAN, to_toml(**dict(plan)))


def _is_of_other_length(path: Path, plan: Plan) -> bool:
    """Whether a plan differs from the one on disk by its steps alone."""
    if not path.is_file():
        return False
    before = build(Plan, read_toml(path))
    steps = {"steps": plan.training.steps}
    is_same_model = (before.model, before.batches) == (plan.model, plan.batches)
    is_same_training = fingerprint_of(before.training) | steps == fingerprint_of(plan.training)
    return before.training.steps != plan.training.steps and is_same_model and is_same_training


def _interpolate(network: LanguageModel, began_with: Path, share: float) -> None:
    """Give a network this share of its own weights, and for the rest those it began with.

    As in M. Wortsman et al. (2022), Robust fine-tuning of zero-shot models, CVPR: weights trained
    from the same start lie in one basin, and between them is what both know.
    """
    before = Model.load(began_with).network.state_dict()
    after = network.state_dict()
    network.load_state_dict(
        {name: torch.lerp(before[name].to(weight), weight, share) for name, weight in after.items()}
    )


def _finish(
    config: PretrainConfig,
    train_module: Pretraining,
    plan: Plan,
    outcome: Outcome,
    progress: Progress,
) -> PretrainResult:
    """Measure once more, on more words than on the way, and write the model's folder."""
    limit = _MORE_AT_THE_END * config.held_out_words
    if config.from_model is not None and config.interpolate < 1:
        _interpolate(train_module.model.network, config.from_model, config.interpolate)
    found = evaluate(train_module.model, train_module.corpus, limit_words=limit, progress=progress)
    told: dict[str, Any] = {
        "about": preset_named(config.preset).about,
        "licence": config.licence,
        "settings": plan.model_dump(mode="json", include={"batches", "training"}),
    }
    if config.from_model is not None:
        began = began_with(
            config.from_model, train_module.model.metadata, share=1 - config.interpolate
        )
        told |= {"about": f"`{began['name']}`, trained further.", "began_with": began}
    unigram = unigram_perplexities(found, train_module.model.vocabulary, train_module.corpus)
    metadata = (
        told | run_metadata(train_module.corpus, outcome, found) | {"unigram_perplexity": unigram}
    )
    model = replace(train_module.model, metadata=metadata)
    model.save(
        config.out, card=write_card(model, config.out.name), dtype=getattr(torch, config.weights)
    )
    notes = []
    try:
        draw_curve(config.out / RUN_LOG, config.out / _CURVE, str(config.out))
        notes.append(f"Learning curve: {config.out / _CURVE}")
    except MissingExtraError as error:
        notes.append(f"No learning curve: {error}")
    if not config.keep_training_state:
        Checkpoints(config.out, keep=1).remove_all()
    return PretrainResult(config.out, model, outcome, notes, config.from_model is not None)


# What a run is made of: a preset, and what differs from it


def preset_named(name: str) -> Preset:
    """A preset by its name."""
    if name not in PRESETS:
        raise ConfigError(f"There is no preset {name!r}. There are: {', '.join(PRESETS)}.")
    return PRESETS[name]


def resolve_model(preset: Preset, changes: Mapping[str, Any]) -> ModelConfig:
    """The preset's model with some settings changed."""
    return build(ModelConfig, merged(preset.model.model_dump(), changes))


def resolve_batches(preset: Preset, changes: Mapping[str, Any]) -> BatchConfig:
    """The preset's batches with some settings changed."""
    return build(BatchConfig, merged(preset.batches.model_dump(), changes))


def resolve_training(run: RunConfig, preset: Preset, steps: int) -> TrainingConfig:
    """The run's settings with nothing left open."""
    values = run.model_dump(exclude_none=True)
    values["steps"] = steps
    values.setdefault("learning_rate", preset.learning_rate)
    values["precision"] = resolve_precision(run.precision, run.device)
    return build(TrainingConfig, values)


_LIMITS = """## Limitations

- Text must be split into the same words as its corpus: use the segmenter named above.
- Other languages, periods and domains than its corpus: continue pretraining on your own text with
  `polyseme pretrain CORPUS --from THIS --out NEW`.
- Facts and long texts: it reads one sentence at a time and reproduces what its corpus said, with
  the biases of its authors.
- Where a large pretrained Transformer exists for your language and domain, it is stronger on most
  tasks.
"""


def run_metadata(corpus: Corpus, outcome: Outcome, found: Evaluation) -> dict[str, Any]:
    """What the manifest and the card tell of a finished run."""
    counts = corpus.read_stats
    digest = hashlib.sha256(canonical_json(corpus.hashes).encode()).hexdigest()
    return {
        "corpus": {
            "words": counts["words"],
            "sentences": counts["sentences"],
            "documents": counts["documents"],
            "language": corpus.config.language,
            "sha256": digest,
        },
        "steps": outcome.steps,
        "words": outcome.words,
        "hours": outcome.seconds / 3600,
        "perplexity": found.values("perplexity"),
        "accuracy": found.values("accuracy"),
        "held_out_predictions": sum(part.count for part in found.parts.values()),
    }


def began_with(folder: Path, metadata: Mapping[str, Any], *, share: float = 0) -> dict[str, Any]:
    """Which model a run began with, what that had read, and its share in the finished weights."""
    found = model_folder(folder)
    told = {name: metadata[name] for name in ("steps", "words") if name in metadata}
    mixed = {"share": share} if share else {}
    return {"name": found.name, "sha256": sha256_of(found / MANIFEST), **told, **mixed}


def write_card(model: Model, name: str) -> str:
    """The card as Markdown, from what the model itself knows."""
    told = model.metadata
    corpus, preparation = told["corpus"], model.preparation
    lines = [
        f"# {name}",
        "",
        f"{told['about']} Trained with Polyseme.",
        "",
        "## Data",
        "",
        (
            f"- {corpus['words']:,} words in {corpus['sentences']:,} sentences of "
            f"{corpus['documents']:,} documents; language `{corpus['language']}`."
        ),
        f"- Segmenter (tokenizer): {_in_words(preparation.segmenter if preparation else {})}.",
        f"- Licence of the text: {told['licence'] or 'not stated; ask whoever trained it'}.",
        f"- SHA-256 of the corpus's list of files: `{corpus['sha256']}`.",
        "",
        "## Training",
        "",
        (
            f"- {count_parameters(model.network):,} parameters; {model.vocabulary.size:,} words "
            f"can be predicted, {model.vocabulary.num_characters:,} character ids read."
        ),
        f"- {told['steps']:,} steps, {told['words']:,} words read, {told['hours']:.2f} hours.",
        *_began(told.get("began_with")),
        "- Settings of the model: `config.toml`. Of the run, and all hashes: `manifest.json`.",
        "",
        "## Held-out perplexity",
        "",
        (
            f"On {told['held_out_predictions']:,} predictions in held-out documents, over the "
            "whole vocabulary, including the unknown word and the end of the sentence."
        ),
        "",
        *_measures(told),
        _LIMITS,
    ]
    return "\n".join(lines)


def _in_words(described: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in described.items() if name != "dictionary")


def _began(told: Mapping[str, Any] | None) -> list[str]:
    if told is None:
        return []
    read = f" ({told['steps']:,} steps, {told['words']:,} words read)" if "words" in told else ""
    lines = [f"- Initialized from `{told['name']}`{read}, manifest `{told['sha256']}`."]
    if "share" in told:
        lines.append(
            f"- Interpolated: {1 - told['share']:.0%} of the trained weights, {told['share']:.0%} "
            f"of those of `{told['name']}`."
        )
    return lines


def _measures(told: Mapping[str, Any]) -> list[str]:
    unigram = told.get("unigram_perplexity", {})
    rows = [
        f"| {part} | {value:,.2f} | {f'{unigram[part]:,.2f}' if part in unigram else ''} |"
        for part, value in told["perplexity"].items()
    ]
    accuracies = told.get("accuracy", {}).items()
    others = [f"\nAccuracy of {part}: {value:.2%}." for part, value in accuracies]
    return ["| part | perplexity | of a unigram model |", "|---|---:|---:|", *rows, *others, ""]

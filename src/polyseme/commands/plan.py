"""Estimate the time, memory and disk space that training takes on this machine.

Times a few real training steps on the corpus. Without a corpus, lists the presets.

Examples:

  polyseme plan

  polyseme plan corpus/en --preset elmo-mini --hours 2

  polyseme plan corpus/en --preset elmo-small --set model.vocabulary.size=100000
"""

from collections.abc import Iterator
from dataclasses import dataclass
from shlex import quote
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field
from rich.console import Group, RenderableType
from rich.filesize import decimal
from rich.table import Table

from polyseme.config import OptionalFolder, Settings
from polyseme.display import numbers, titled
from polyseme.pretraining import RunConfig
from polyseme.progress import SILENT, Progress, duration
from polyseme.text.corpus import Corpus
from polyseme.training import TrainingConfig

if TYPE_CHECKING:
    from polyseme.model import Model
    from polyseme.pretraining.language_modeling import Throughput


class PlanConfig(Settings):
    """The run to estimate."""

    arguments: ClassVar[tuple[str, ...]] = ("corpus",)

    corpus: OptionalFolder = None
    """The corpus folder; without it, the presets are listed."""
    preset: str = "elmo-mini"
    """Which preset."""
    hours: float = Field(default=2.0, gt=0, le=1_000_000)
    """Training time to plan for."""
    training: RunConfig = RunConfig()
    """How the model is trained."""
    model: dict[str, Any] = Field(default_factory=dict)
    """Override settings of the preset: `--set model.encoder.contextualizer.num_layers=3`."""
    batches: dict[str, Any] = Field(default_factory=dict)
    """Override settings of the preset, such as `--set batches.words=8192`."""


@dataclass(frozen=True)
class PlanResult:
    """What training would take."""

    config: PlanConfig
    model: "Model"
    training: TrainingConfig
    throughput: "Throughput"
    words_per_epoch: int

    @property
    def steps(self) -> int:
        """Steps that fit into the hours."""
        return max(1, int(self.config.hours * 3600 / self.throughput.seconds))

    @property
    def epochs(self) -> float:
        """Passes over the corpus that fit into the hours."""
        return self.steps * self.throughput.words / self.words_per_epoch

    def to_json(self) -> dict[str, Any]:
        """Plain values, in bytes and seconds."""
        from polyseme.model import count_parameters

        throughput = self.throughput
        return {
            "preset": self.config.preset,
            "corpus": str(self.config.corpus),
            "num_parameters": count_parameters(self.model.network),
            "num_encoder_parameters": count_parameters(self.model.network.encoder),
            "memory_bytes": throughput.memory,
            "precision": self.training.precision,
            "words_per_step": throughput.words,
            "seconds_per_step": throughput.seconds,
            "words_per_second": throughput.words_per_second,
            "words_per_epoch": self.words_per_epoch,
            "hours": self.config.hours,
            "steps": self.steps,
            "epochs": self.epochs,
        }


@dataclass(frozen=True)
class PresetList:
    """Without a corpus: the presets are listed."""

    def json_lines(self) -> Iterator[dict[str, Any]]:
        """A line for each preset."""
        from polyseme.presets import PRESETS

        return ({"preset": name, "about": each.about} for name, each in PRESETS.items())


def run(config: PlanConfig, progress: Progress = SILENT) -> PlanResult | PresetList:
    """Time a few steps; nothing is written."""
    if config.corpus is None:
        return PresetList()
    from polyseme.data.vocabulary import Vocabulary
    from polyseme.model import Model
    from polyseme.pretraining.language_modeling import (
        Pretraining,
        measure_throughput,
        without_denormals,
    )
    from polyseme.pretraining.run import (
        preset_named,
        resolve_batches,
        resolve_model,
        resolve_training,
    )

    corpus, preset = Corpus.open(config.corpus), preset_named(config.preset)
    progress.start("Timing a few steps", 1)
    wanted = resolve_model(preset, config.model)
    model = Model.new(wanted, Vocabulary.of(corpus, wanted.vocabulary), corpus.preparation)
    batches = resolve_batches(preset, config.batches)
    train_module = Pretraining(model, corpus, batches, seed=config.training.seed, held_out_words=1)
    training = resolve_training(config.training, preset, steps=config.training.steps or 1)
    with without_denormals():
        throughput = measure_throughput(train_module, training)
    progress.update(1)
    return PlanResult(config, model, training, throughput, train_module.stream.words_per_epoch)


def show(result: PlanResult | PresetList) -> RenderableType:
    """The plan as a table; or the presets."""
    return _presets() if isinstance(result, PresetList) else _table(result)


def _presets() -> RenderableType:
    from polyseme.presets import PRESETS

    table = Table()
    table.add_column("preset", no_wrap=True)
    table.add_column("what it is")
    for name, preset in PRESETS.items():
        table.add_row(name, preset.about)
    return Group(table, "Next: polyseme plan CORPUS --preset NAME")


def _table(result: PlanResult) -> RenderableType:
    import torch

    from polyseme.model import count_parameters

    throughput, config = result.throughput, result.config
    memory, speed = throughput.memory, throughput.words_per_second
    network = result.model.network
    parameters, in_encoder = count_parameters(network), count_parameters(network.encoder)
    table = Table("", *numbers(""))
    rows = [
        ("parameters", f"{parameters:,}"),
        ("  of these in the encoder", f"{in_encoder:,}"),
        ("model on disk, float32", decimal(4 * parameters)),
        ("  with --weights float16", decimal(2 * parameters)),
        ("checkpoint on disk", decimal(12 * parameters)),
        ("memory while training", decimal(memory) if memory else "unknown here"),
        ("precision, threads", f"{result.training.precision}, {torch.get_num_threads()}"),
        ("words per step", f"{throughput.words:,.0f}"),
        ("time per step", f"{throughput.seconds:.2f} s"),
        ("words per second", f"{speed:,.0f}"),
        ("words per epoch", f"{result.words_per_epoch:,}"),
        ("time per epoch", duration(result.words_per_epoch / speed)),
        (f"steps in {config.hours:g} h", f"{result.steps:,}"),
        (f"epochs in {config.hours:g} h", f"{result.epochs:.2f}"),
    ]
    for row in rows:
        table.add_row(*row)
    options = f"--preset {config.preset} --hours {config.hours:g}"
    shown = titled(f"{config.preset} on {config.corpus}", table)
    corpus = quote(str(config.corpus))
    return Group(shown, f"Next: polyseme pretrain {corpus} {options} --out MODEL")

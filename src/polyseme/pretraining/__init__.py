"""A language model and a corpus as something the training loop can train, measure and plan.

Here is how a run, or a text, is asked for. Importing this loads no torch: the command line shows
these settings as options.
"""

from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from polyseme.config import Folder, Option, Settings
from polyseme.training import TrainingConfig


class RunConfig(TrainingConfig):
    """How the model is trained, and which checkpoints are kept."""

    steps: int | None = Field(default=None, ge=1)  # type: ignore[assignment]
    """Number of optimizer steps; by default computed from --hours or --epochs."""
    learning_rate: float | None = Field(default=None, gt=0)  # type: ignore[assignment]
    """The peak learning rate, reached at the end of the warm-up; by default the preset's."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"  # type: ignore[assignment]
    """Precision of the computation; parameters are always float32. `auto` uses bfloat16 where the
    hardware supports it."""


class PretrainConfig(Settings):
    """What to train, on what, for how long."""

    arguments: ClassVar[tuple[str, ...]] = ("corpus",)

    corpus: Folder
    """The corpus folder."""
    out: Path
    """Folder to write the model to; an interrupted run is resumed there."""
    preset: str = "elmo-mini"
    """Which preset to train; `polyseme plan` lists them."""
    from_model: Annotated[Path | None, Option("--from", "MODEL")] = None
    """Continue pretraining from this model's weights and vocabulary, instead of a preset."""
    vocabulary: Literal["model", "corpus"] = "model"
    """With --from: which words can be predicted. `corpus` takes those of the corpus, which may then
    be tokenized differently; words and characters that the model knows keep their weights."""
    only: Literal["cloze"] | None = None
    """With --from: train only this part and freeze all other weights. `cloze` is a head that
    predicts a word from both sides at once; it is added to a model that has none."""
    interpolate: float = Field(default=1.0, gt=0, le=1)
    """With --from: the finished weights are this much of the trained ones, and for the rest those
    of the model that was continued. At 0.5 a short run often predicts better than at 1."""
    hours: float | None = Field(default=None, gt=0, le=1_000_000)
    """Train for about this long, evaluation included; a few steps are timed to see how many fit."""
    epochs: float | None = Field(default=None, gt=0, le=1_000_000)
    """Train for this many passes over the corpus; 1 if neither hours nor steps are given."""
    held_out_words: int = Field(default=50_000, ge=1)
    """Held-out words used in each evaluation during training; the final one uses four times as
    many, `polyseme evaluate` all."""
    keep_training_state: bool = False
    """Keep the checkpoints when the model is finished. Each takes some twelve bytes per parameter;
    they are needed only to train further in the same folder, with more --steps."""
    weights: Literal["float32", "bfloat16", "float16"] = "float32"
    """How the finished model's weights are stored."""
    licence: str = ""
    """Licence of the text, for the model card."""
    training: RunConfig = RunConfig()
    """How the model is trained."""
    model: dict[str, Any] = Field(default_factory=dict)
    """Override settings of the preset: `--set model.encoder.contextualizer.num_layers=3`."""
    batches: dict[str, Any] = Field(default_factory=dict)
    """Override settings of the preset, such as `--set batches.words=8192`."""


class GenerationConfig(Settings):
    """How the next word is sampled."""

    samples: int = Field(1, ge=1, le=10_000)
    """How many continuations of each prompt."""
    max_words: int = Field(50, ge=1, le=2_000)
    """Maximum number of words to generate; fewer if the sentence ends."""
    temperature: float = Field(1.0, ge=0, le=100)
    """Sampling temperature: below 1, likely words become likelier; 0 is greedy decoding."""
    top_k: int | None = Field(None, ge=1)
    """Sample only from this many of the likeliest words."""
    top_p: float | None = Field(None, gt=0, le=1)
    """Sample from the likeliest words that together have this probability (nucleus sampling)."""
    seed: int = Field(1, ge=0)
    """The same seed gives the same text."""
    unknown: bool = False
    """Also allow <UNK>, the token of all words outside the vocabulary."""

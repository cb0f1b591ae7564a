"""The only training loop: batches in, a better module out. Knows no language.

`loop.train` takes an `optimizer.TrainModule`, a `TrainingConfig` and a folder; the same call again
goes on where the last one stopped, bit for bit. Importing this loads no torch, so that a command
can show its settings at once.
"""

from typing import Any, Literal

from pydantic import Field

from polyseme.config import Settings


class TrainingConfig(Settings):
    """How the model is trained, and which checkpoints are kept."""

    steps: int = Field(ge=1)
    """Number of optimizer steps."""
    learning_rate: float = Field(default=2e-3, gt=0)
    """The peak learning rate, reached at the end of the warm-up."""
    warmup_ratio: float = Field(default=0.02, ge=0, le=1)
    """Fraction of the steps used to warm up the learning rate from near zero."""
    decay: Literal["cosine", "linear", "none"] = "cosine"
    """How the learning rate decays to zero after the warm-up; `none` keeps it constant."""
    weight_decay: float = Field(default=0.01, ge=0)
    """Weight decay of matrices; vectors, such as biases, are never decayed."""
    max_grad_norm: float = Field(default=1.0, gt=0)
    """Gradient clipping: the largest Euclidean norm of the gradient over all parameters."""
    gradient_accumulation_steps: int = Field(default=1, ge=1, le=1_024)
    """Micro-batches each process works through in a step: less memory, same result."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """Precision of the computation; parameters are always float32."""
    seed: int = Field(default=1, ge=0)
    """Random seed of training: initial weights, dropout, order."""
    save_minutes: float = Field(default=10.0, gt=0)
    """Minutes between checkpoints: the most work a crash can lose."""
    save_steps: int | None = Field(default=None, ge=1)
    """Also save whenever the number of steps is a multiple of this."""
    keep_checkpoints: int = Field(default=2, ge=1)
    """How many of the newest checkpoints are kept while training: the second is a spare, should the
    newest be damaged."""
    evaluate_every: int = Field(default=1000, ge=1)
    """Steps between evaluations on held-out data; the last step is always evaluated."""
    patience: int | None = Field(default=None, ge=1)
    """Early stopping: evaluations without improvement before the run ends with the best weights.
    It ends at once when nothing is left to improve."""
    on_nonfinite: Literal["raise", "skip"] = "raise"
    """If the loss or gradient is not finite, or the loss spikes: raise an error, or skip it."""
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    """Where the work is done; `auto` takes a GPU if there is one."""
    adaptive_threads: bool = False
    """Adapt the number of CPU threads to the load of the machine, by timing steps. Results may then
    differ in the last bits."""
    timeout_minutes: float = Field(default=30.0, gt=0, le=1_000_000)
    """With several processes: how long one may keep the others waiting before the run fails."""
    tensorboard: bool = False
    """Write TensorBoard events beside the run log (`pip install tensorboard`)."""


_CHANGE_WEIGHTS = (
    *("steps", "learning_rate", "warmup_ratio", "decay", "weight_decay", "max_grad_norm"),
    *("precision", "seed"),
)


def fingerprint_of(config: TrainingConfig) -> dict[str, Any]:
    """The settings that change what is learnt: a run can only be continued with the same, but for
    the number of steps."""
    return config.model_dump(mode="json", include=set(_CHANGE_WEIGHTS))

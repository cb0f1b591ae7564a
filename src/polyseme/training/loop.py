"""The training loop: one step after the other until the end, through stops, crashes and NaNs.

    in    a `TrainModule`, settings, a folder
    out   its module, trained; `run.jsonl` and `checkpoints/` in the folder

Called again with the same arguments it goes on from the newest sound checkpoint, and on one
processor with the same versions and threads the result is the same to the last bit. A signal to
stop is noted at once, and obeyed when the step in hand is finished and saved.
"""

import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from polyseme.devices import num_threads, set_threads
from polyseme.errors import TrainingError, TrainingStoppedError
from polyseme.progress import SILENT, Progress
from polyseme.storage.files import disk_faults_explained, hold_folder
from polyseme.training import TrainingConfig
from polyseme.training.checkpoint import (
    Checkpoint,
    Checkpoints,
    DamagedCheckpointError,
    Outcome,
    Restored,
    describe_run,
    restore,
    restore_weights,
)
from polyseme.training.optimizer import (
    Position,
    TrainBatch,
    TrainModule,
    learning_rate_at,
    optimizer_state_of,
)
from polyseme.training.processes import DistributedContext, ThreadChoice, process_group
from polyseme.training.runlog import RunLog
from polyseme.training.step import LossSpikeGuard, Stepper, StepResult

# The scheduler's, the keyboard's, and the one Slurm sends before the time is up.
_NAMES = ("SIGTERM", "SIGINT", "SIGUSR1")


class StopRequest:
    """Which signal has asked the run to stop, if one has."""

    def __init__(self) -> None:
        self.by: str | None = None

    def note(self, number: int, frame: FrameType | None) -> None:
        """Remember the first signal. A later one, during the save, must change nothing."""
        del frame
        self.by = self.by or signal.Signals(number).name


@contextlib.contextmanager
def stop_signals() -> Iterator[StopRequest]:
    """Listen for signals, and put back what listened before."""
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request  # Python lets only the main thread listen
        return
    before = {}
    for name in _NAMES:
        if hasattr(signal, name):  # Windows has no SIGUSR1
            number = getattr(signal, name)
            before[number] = signal.signal(number, request.note)
    try:
        yield request
    finally:
        for number, listener in before.items():
            signal.signal(number, listener)


def train(
    train_module: TrainModule,
    config: TrainingConfig,
    folder: Path,
    *,
    progress: Progress = SILENT,
) -> Outcome:
    """Train to the end, or go on with what was begun in the folder.

    Raises TrainingStoppedError when a signal stopped it, everything being saved. With `patience`
    the module ends with its best weights, otherwise with its last.
    """
    with contextlib.ExitStack() as stack:
        stack.enter_context(disk_faults_explained(folder))
        stack.enter_context(num_threads(None))  # and as before when it ends
        distributed = stack.enter_context(process_group(config))
        stop = stack.enter_context(stop_signals())
        if distributed.is_main:
            folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(hold_folder(folder))
        listener = progress if distributed.is_main else SILENT
        run = _Run(train_module, config, folder, distributed=distributed, progress=listener)
        stack.callback(run.close)
        return run.go(stop)


class _Run:
    """A run in this process: what `train` has in hand."""

    def __init__(
        self,
        train_module: TrainModule,
        config: TrainingConfig,
        folder: Path,
        *,
        distributed: DistributedContext,
        progress: Progress,
    ) -> None:
        self.train_module, self.config = train_module, config
        self.distributed, self.progress = distributed, progress
        self.module = train_module.module.to(distributed.device)
        # Several processes share the machine already, one thread each.
        is_adaptive = config.adaptive_threads and distributed.world_size == 1
        self.threads = ThreadChoice(torch.get_num_threads(), is_adaptive=is_adaptive)
        self.stepper = Stepper(self.module, config, distributed, train_module.param_groups())
        self.checkpoints = Checkpoints(folder, keep=config.keep_checkpoints)
        self.described = describe_run(train_module, config, distributed)
        found = restore(
            self.module,
            self.stepper.optimizer,
            self.checkpoints,
            described=self.described,
            distributed=distributed,
        )
        self.state = state = found.state
        if distributed.is_main:
            self.checkpoints.tidy(best_step=self._step_to_keep())
        self.stepper.wrap()
        self.guard = LossSpikeGuard(config.on_nonfinite, state.losses, state.consecutive_skips)
        self.saved_step = None if found.is_new else state.step
        self.refused = len(found.refused)
        self.log = (
            RunLog(folder, state, tensorboard=config.tensorboard) if distributed.is_main else None
        )
        self._tell_found(found)
        self.saved_at = self.told_at = time.monotonic()
        self.began = self.saved_at - state.seconds

    def _tell_found(self, found: Restored) -> None:
        """What the user should know of the checkpoints there were."""
        for path, reason in found.refused.items():
            self._tell(f"A damaged checkpoint was moved to {path}: {reason}.", "refused")
        if not found.is_new:
            message = f"Resuming after step {found.state.step:,}. {found.note}".rstrip()
            self._tell(message, "resumed", **({"changed": found.changed} if found.changed else {}))

    def close(self) -> None:
        self.stepper.unwrap()
        if self.log is not None:
            self.log.close()

    def go(self, stop: StopRequest) -> Outcome:
        """All steps that are left."""
        self.module.train()
        self.progress.start("Training", self.config.steps)
        self.progress.update(self.state.step)
        self._evaluate_if_due()  # a stop may have left it undone
        stream = self.train_module.batches(self.state.position)
        while not self._is_over():
            self._step(*next(stream), stop)
            self._evaluate_if_due()
            if self._is_time_to_save():
                self._save()
        self._save()
        self._take_best_weights()
        state = self.state
        return Outcome(
            steps=state.step,
            seconds=state.seconds,
            words=state.words,
            measures=state.measures,
            stopped_early=state.step < self.config.steps,
            best_step=state.best_step,
            skipped=state.skipped,
            refused=self.refused,
        )

    def _is_over(self) -> bool:
        state, patience = self.state, self.config.patience
        # No measure is below 0: what has come to it cannot improve.
        is_hopeless = patience is not None and (state.since_best >= patience or state.best == 0)
        return state.step >= self.config.steps or is_hopeless

    def _step(self, batch: TrainBatch, position: Position, stop: StopRequest) -> None:
        """One batch, from loss to log line; then the end, if a signal asks for it."""
        state, began = self.state, time.monotonic()
        set_threads(self.threads.number)
        result = self.stepper.forward_backward(
            batch, step=state.step, wants_stop=stop.by is not None
        )
        rate = learning_rate_at(state.step, self.config)
        if self._passes_guard(result):
            self.stepper.optimizer_step(result.gradient_norm, rate)
        else:
            state.skipped += 1
        self.threads.note(time.monotonic() - began, batch.num_words)
        state.step += 1
        state.position = dict(position)
        state.words += batch.num_words
        self._log_step(result, rate, batch.num_words)
        if result.wants_stop or (self.distributed.world_size == 1 and stop.by):
            self._save()
            self._tell(f"Stopped by {stop.by or 'a signal'} after step {state.step:,}.", "stopped")
            raise TrainingStoppedError(
                f"{stop.by or 'A signal'} stopped training after step {state.step:,} of "
                f"{self.config.steps:,}; all is saved. The same command resumes from there."
            )

    def _passes_guard(self, result: StepResult) -> bool:
        """Whether the step may be taken. If that ends the run, what is good is saved first."""
        step = self.state.step + 1
        try:
            is_good = self.guard.check(result.loss, result.gradient_norm, step=step)
        except TrainingError:
            self._save()
            raise
        if not is_good:
            self._tell(f"Step {step:,} was skipped: loss {result.loss:.4g}.", "skipped")
        return is_good

    def _log_step(self, result: StepResult, rate: float, words: int) -> None:
        before, now = self.state.seconds, time.monotonic()
        self.state.seconds = now - self.began
        speed = words / max(1e-9, self.state.seconds - before)
        if self.log is not None:
            self.log.step(
                self.state.step,
                loss=result.loss,
                parts=result.parts,
                learning_rate=rate,
                gradient_norm=result.gradient_norm,
                words_per_second=round(speed, 1),
                seconds=round(self.state.seconds, 3),
            )
        if now - self.told_at > 0.2 or self.state.step == self.config.steps:
            self.told_at = now
            note = f"loss {result.loss:.4f}, {speed:,.0f} words/s"
            self.progress.update(self.state.step, note)

    def _evaluate_if_due(self) -> None:
        """Measure on held-out data after each interval and at the end, once."""
        state = self.state
        is_due = state.step % self.config.evaluate_every == 0 or state.step == self.config.steps
        if not is_due or state.measured_at == state.step:
            return
        measures = {}
        if self.distributed.is_main:
            self.module.eval()
            with torch.no_grad():
                measures = self.train_module.evaluate()
            self.module.train()
        is_best = state.record_measures(self.distributed.broadcast_object(measures))
        if self.log is not None:
            self.log.measures(state.step, state.measures)
        if is_best and self.config.patience is not None:
            self._save()

    def _is_time_to_save(self) -> bool:
        every = self.config.save_steps
        is_round = every is not None and self.state.step % every == 0
        return is_round or time.monotonic() - self.saved_at > 60 * self.config.save_minutes

    def _save(self) -> None:
        """Make the present state last. The first process does it; the others go on and wait."""
        state = self.state
        if self.log is None or self.saved_step == state.step:
            return
        state.losses = self.guard.losses
        state.consecutive_skips = self.guard.consecutive_skips
        rest = {"step": state.step, "run": state.as_json(), **self.described}
        optimizer_state = optimizer_state_of(self.stepper.optimizer, self.module)
        self.log.flush()
        saved = Checkpoint(self.module.state_dict(), optimizer_state, rest)
        self.checkpoints.save(saved, best_step=self._step_to_keep())
        self.saved_step, self.saved_at = state.step, time.monotonic()

    def _step_to_keep(self) -> int | None:
        """The step whose weights are taken at the end, if that may be an earlier one."""
        return None if self.config.patience is None else self.state.best_step

    def _take_best_weights(self) -> None:
        """With patience, the last weights are worse than the best by design."""
        best = self._step_to_keep()
        if best is None or best in (0, self.state.step):
            return
        if self.distributed.is_main:
            try:
                restore_weights(self.module, self.checkpoints.load(best).weights)
            except DamagedCheckpointError as error:
                self.refused += 1
                self._tell(f"The best checkpoint is damaged ({error}): last weights.", "refused")
        for tensor in self.module.state_dict().values():
            self.distributed.broadcast(tensor)

    def _tell(self, message: str, event: str, **metadata: Any) -> None:
        """To the user and to the log."""
        self.progress.log(message)
        if self.log is not None:
            self.log.event(self.state.step, event, message=message, **metadata)

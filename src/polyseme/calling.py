"""Keyword values in, a command's result out: what `polyseme.prepare` and its like share."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from polyseme.config import AnySettings, build_flat

Result = TypeVar("Result")


def call(
    run: Callable[..., Result], kind: type[AnySettings], given: Mapping[str, Any], *, progress: bool
) -> Result:
    """Run a command as the command line would, its settings by name; bars only if asked for."""
    config = build_flat(kind, given)
    if not progress:
        return run(config)
    from polyseme.cli.terminal import RichProgress

    with RichProgress() as bars:
        return run(config, bars)

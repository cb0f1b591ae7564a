"""Keyword values in, a command's result out: what `polyseme.prepare` and its like share."""

import contextlib
from collections.abc import Callable, Mapping
from os import PathLike, fspath
from typing import Any, TypeVar

from polyseme.config import AnySettings, build_flat
from polyseme.devices import wait_asleep
from polyseme.errors import extra_needed_for

Result = TypeVar("Result")


def call(
    run: Callable[..., Result],
    kind: type[AnySettings],
    given: Mapping[str, Any],
    *,
    progress: bool,
    purpose: str = "",
) -> Result:
    """Run a command as the command line would, its settings by name; bars only if asked for.

    `purpose`: what needs a package that is not always installed. Paths, and a corpus, become text,
    as typed.
    """
    plain = {n: fspath(v) if isinstance(v, PathLike) else v for n, v in given.items()}
    with extra_needed_for(purpose) if purpose else contextlib.nullcontext():
        config = build_flat(kind, plain)
        wait_asleep()
        if not progress:
            return run(config)
        from polyseme.cli.terminal import NotebookProgress, RichProgress, is_notebook

        with NotebookProgress() if is_notebook() else RichProgress() as bars:
            return run(config, bars)

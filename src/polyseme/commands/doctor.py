"""Check what is installed, what is missing and how to get it, and whether vectors are correct.

Checks Python, the packages of each extra, the compiled kernel and the device; then computes a
vector with each installed model and compares it with the expected one. Changes nothing. The exit
code is 1 if something installed is broken, and 0 if things are merely missing.

Examples:

  polyseme doctor
"""

import platform
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Any, Literal

from rich.console import Group, RenderableType
from rich.table import Table

from polyseme import __version__
from polyseme.config import Settings
from polyseme.display import PrintableText
from polyseme.errors import PolysemeError, pip_command
from polyseme.progress import SILENT, Progress
from polyseme.storage.installed import MODELS, NOT_ON_PYPI, TASKS, list_data
from polyseme.storage.installed import pip_command as pip_command_for_data

State = Literal["ok", "missing", "wrong"]
_STYLES = {"ok": "green", "missing": "yellow", "wrong": "bold red"}
_REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(?:\[(?P<extras>[^]]*)\])?")
_EXTRA = re.compile(r"extra\s*==\s*[\"'](?P<extra>[A-Za-z0-9._-]+)[\"']")
_NO_TORCH = "not checked: PyTorch is missing"
_CPU_TORCH = "pip install --force-reinstall torch --index-url https://download.pytorch.org/whl/cpu"


class DoctorConfig(Settings):
    """Nothing need be said."""


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    what: str
    state: State
    found: str
    remedy: str = ""  # A command, if there is something to do


@dataclass(frozen=True)
class DoctorResult:
    """All that was looked at."""

    findings: list[Finding]

    @property
    def wrong(self) -> list[str]:
        """What is installed, and broken."""
        return [finding.what for finding in self.findings if finding.state == "wrong"]

    def json_lines(self) -> Iterator[dict[str, Any]]:
        """A line for each finding."""
        return map(asdict, self.findings)


def exit_code(result: DoctorResult) -> int:
    """For scripts: 1 if something is broken."""
    return 1 if result.wrong else 0


def run(config: DoctorConfig, progress: Progress = SILENT) -> DoctorResult:
    """Look at everything; what is missing hides nothing else."""
    del config
    progress.start("Checking", 3)
    python = f"{platform.python_implementation()} {platform.python_version()}"
    findings = [Finding("polyseme", "ok", f"{__version__}, {python}, {platform.platform()}")]
    for number, look in enumerate((_packages, _machine, _models), start=1):
        findings += look()
        progress.update(number)
    return DoctorResult(findings)


def show(result: DoctorResult) -> RenderableType:
    """A row each, then the commands."""
    table = Table(show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for finding in result.findings:
        state = PrintableText(finding.state, _STYLES[finding.state])
        table.add_row(finding.what, state, finding.found)
    remedies = [
        PrintableText(f"{finding.what}: {finding.remedy}", no_wrap=True, overflow="ignore")
        for finding in result.findings
        if finding.remedy
    ]
    names = {_what(data.name) for data in list_data()}
    if any(finding.remedy for finding in result.findings if finding.what in names):
        remedies.append(PrintableText(NOT_ON_PYPI))
    last = f"Wrong: {', '.join(result.wrong)}." if result.wrong else "No problems found."
    return Group(table, *(["If you need what is missing:"] if remedies else []), *remedies, last)


def _packages() -> Iterator[Finding]:
    """What Polyseme always needs, then each extra."""
    extras = read_extras(requires("polyseme") or [])
    yield _look_at("packages", extras.pop(""), is_needed=True)
    for extra, names in sorted(extras.items()):
        if extra != "all":
            yield _look_at(f"[{extra}]", names, is_needed=False)


def read_extras(requirements: Iterable[str]) -> dict[str, list[str]]:
    """Extra -> its packages, from requirements as a wheel has them; "" -> those always needed.

    An extra that names others, as in `polyseme[torch]`, has theirs, too.
    """
    direct: dict[str, list[str]] = {"": []}
    others: dict[str, list[str]] = {}
    for line in requirements:
        need, extra = _REQUIREMENT.match(line), _EXTRA.search(line)
        key = extra["extra"] if extra else ""
        direct.setdefault(key, [])
        if need and need["name"] == "polyseme":
            others[key] = [name.strip() for name in (need["extras"] or "").split(",")]
        elif need:
            direct[key].append(need["name"])

    def of(extra: str) -> list[str]:
        brought = [name for other in others.get(extra, ()) for name in of(other)]
        return list(dict.fromkeys([*brought, *direct[extra]]))

    return {extra: of(extra) for extra in direct}


def _look_at(what: str, names: list[str], *, is_needed: bool) -> Finding:
    there, missing = [], []
    for name in names:
        try:
            there.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            missing.append(name)
    if not missing:
        return Finding(what, "ok", ", ".join(there))
    found = f"without {', '.join(missing)}"
    if is_needed:
        return Finding(what, "wrong", found, "pip install --force-reinstall polyseme")
    return Finding(what, "missing", found, pip_command(what.strip("[]")))


def _machine() -> Iterator[Finding]:
    """The device, the threads and the compiled kernel."""
    try:
        import torch
    except ModuleNotFoundError:
        yield Finding("device", "missing", _NO_TORCH)
        return
    from polyseme.devices import choose_device, usable_cpus
    from polyseme.encoders.kernels import build, loader
    from polyseme.encoders.kernels.build import instruction_sets

    device, cores = choose_device(None), usable_cpus()
    threads = torch.get_num_threads()
    found = f"{device}, {threads} of {cores} processor threads"
    if device == "cpu" and torch.version.cuda:
        told = f"{found}; this PyTorch is the one for CUDA, gigabytes larger, and there is no GPU"
        yield Finding("device", "ok", told, _CPU_TORCH)
    else:
        yield Finding("device", "ok", found)
    best = instruction_sets()[0]
    kernel = loader.load()
    if kernel is not None:
        yield Finding("kernel", "ok", f"{kernel.describe('float32')}; the processor has {best}")
        return
    # A library that is there and was refused has been told of by a warning; here it counts.
    refused = any(build.library_path(name).exists() for name in instruction_sets())
    found = "a library is there, but is not trusted" if refused else f"none; could use {best}"
    state: State = "wrong" if refused else "missing"
    yield Finding("kernel", state, found, build.COMMAND)


def _models() -> Iterator[Finding]:
    for data in list_data():
        what = _what(data.name)
        if data.folder is None:
            yield Finding(what, "missing", data.about, pip_command_for_data(data.name))
        elif data.name in MODELS:
            yield _golden(what, data.name)
        else:
            yield Finding(what, "ok", data.about)


def _what(name: str) -> str:
    kinds = {"model": MODELS, "task": TASKS}
    return f"{next((kind for kind, names in kinds.items() if name in names), 'texts')} {name}"


def _golden(what: str, name: str) -> Finding:
    """Compute a vector, and compare it with what it must be."""
    try:
        from polyseme.embedding.loading import TOLERANCE, largest_difference

        difference = largest_difference(name)
    except ModuleNotFoundError:
        return Finding(what, "missing", _NO_TORCH)
    except PolysemeError as error:
        return Finding(what, "wrong", str(error), pip_command_for_data(name))
    found = f"its vectors differ from the golden ones by {difference:.1e} at most"
    if difference <= TOLERANCE:
        return Finding(what, "ok", found)
    remedy = pip_command_for_data(name).replace("install", "install --force-reinstall", 1)
    return Finding(what, "wrong", f"{found}; at most {TOLERANCE} is allowed", remedy)

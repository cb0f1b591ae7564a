"""Reference pages say what the code says."""

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from polyseme import errors
from polyseme.cli import all_verbs
from polyseme.encoders.inputs import WordInputConfig
from polyseme.encoders.lstm import LstmConfig
from polyseme.tasks.families.seq2seq import DecoderConfig
from polyseme.tasks.readers.table import TableConfig
from polyseme.text.settings import CorpusConfig

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "docs" / "make_reference.py"


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_reference", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_settings_page_is_up_to_date(
    reference: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["make_reference.py", "--check"])
    reference.main()


def test_a_stale_settings_page_is_noticed(
    reference: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stale = tmp_path / "settings.md"
    stale.write_text(reference.make().replace("language", "tongue"), encoding="utf-8")
    monkeypatch.setattr(reference, "PAGE", stale)
    monkeypatch.setattr(sys, "argv", ["make_reference.py", "--check"])
    with pytest.raises(SystemExit, match="not up to date"):
        reference.main()


def test_the_page_has_every_command_and_every_part(reference: ModuleType) -> None:
    made = reference.make()
    for verb in (verb for verbs in all_verbs().values() for verb in verbs):
        for name in [f"{verb.name} {part.name}" for part in verb.parts] or [verb.name]:
            assert f"\n### polyseme {name}\n" in made
    for kind in (CorpusConfig, LstmConfig, TableConfig, DecoderConfig, WordInputConfig):
        for name in kind.model_fields:
            assert re.search(rf"\| [*]{{0,2}}`[\w.]*{name}[` ]", made), name


def test_the_chinese_page_lists_every_command() -> None:
    page = (ROOT / "docs/zh/settings.md").read_text(encoding="utf-8")
    tables = "\n".join(line.split("|")[1] for line in page.splitlines() if line.startswith("| "))
    for verb in (verb for verbs in all_verbs().values() for verb in verbs):
        for name in [f"{verb.name} {part.name}" for part in verb.parts] or [verb.name]:
            assert f"`{name}`" in tables, name


def test_every_setting_explains_itself(reference: ModuleType) -> None:
    assert reference.settings_without_text() == []


def test_the_errors_page_has_every_class_with_its_exit_code() -> None:
    page = (ROOT / "docs/reference/errors.md").read_text(encoding="utf-8")
    for name, kind in vars(errors).items():
        if isinstance(kind, type) and issubclass(kind, errors.PolysemeError):
            row = rf"^\| {kind.exit_code} \| `{name}`"
            assert re.search(row, page, re.MULTILINE), name


def test_the_quarantine_page_explains_every_reason() -> None:
    page = (ROOT / "docs/how-to/fix-quarantined-text.md").read_text(encoding="utf-8")
    explained = set(re.findall(r"`([a-z0-9-]+)`", page.partition("## What each reason")[2]))
    call = re.compile(r"(?:Rejected|UnfitTextError)\((?:[^\"()]|\([^)]*\))*?\"([a-z][a-z-]+)\"")
    reasons: set[str] = set()
    for source in (ROOT / "src/polyseme/text").rglob("*.py"):
        reasons.update(call.findall(source.read_text(encoding="utf-8")))
    assert {"no-text", "nul-character", "broken-file"} <= reasons, "the pattern finds no calls"
    assert reasons <= explained

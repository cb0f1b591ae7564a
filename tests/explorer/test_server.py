"""Starting the explorer: what is wrong is told before any work is done.

Files of others that are shipped: as they were published, with their licences.
"""

import hashlib
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from polyseme.commands import demo, explore
from polyseme.config import build
from polyseme.errors import ConfigError, CorpusError, ModelError
from polyseme.explorer import server
from polyseme.processes import HOST
from polyseme.storage import installed

from .making import make_bank_corpus


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that another program listens on."""
    with socket.create_server((HOST, 0)) as other:
        yield other.getsockname()[1]


def test_the_demo_asks_for_its_port_before_it_prepares_anything(taken: int, tmp_path: Path) -> None:
    config = {"cache": tmp_path / "cache", "serve": {"port": taken, "no_browser": True}}
    with pytest.raises(ConfigError, match=f"Cannot listen on port {taken}"):
        demo.run(build(demo.DemoConfig, config))
    assert not (tmp_path / "cache").exists()


def test_explore_asks_for_its_port_before_it_opens_the_corpus(taken: int, tmp_path: Path) -> None:
    config = {"corpus": tmp_path / "none", "model": "none", "serve": {"port": taken}}
    with pytest.raises(ConfigError, match=f"Cannot listen on port {taken}"):
        explore.run(build(explore.ExploreConfig, config))


def test_a_port_is_free_again_after_a_start_that_failed(tmp_path: Path) -> None:
    with socket.create_server((HOST, 0)) as other:
        port = other.getsockname()[1]
    for _ in range(2):
        config = {"corpus": tmp_path, "model": "none", "serve": {"port": port}}
        with pytest.raises(CorpusError):
            explore.run(build(explore.ExploreConfig, config))


def test_without_a_model_the_default_of_the_language_describes_the_uses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = make_bank_corpus(tmp_path).folder
    there = {"en-base", "zh-mini"}
    monkeypatch.setattr(installed, "locate", lambda name: tmp_path if name in there else None)
    models = []
    monkeypatch.setattr(
        "polyseme.explorer.server.serve",
        lambda workspace, *_, **__: models.append(workspace.model),
    )
    config = build(explore.ExploreConfig, {"corpus": corpus, "serve": {"no_browser": True}})
    explore.run(config)
    assert models == ["en-base"]
    there.clear()
    with pytest.raises(ModelError, match="No model for 'en' is installed"):
        explore.run(config)


@pytest.mark.parametrize(("language", "name"), [("en", "45 English novels"), ("zh", "古籍九种")])
def test_the_demo_is_called_by_what_it_is_and_not_by_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, language: str, name: str
) -> None:
    names = []
    monkeypatch.setattr(demo, "_open", lambda *_: (make_bank_corpus(tmp_path), None))
    monkeypatch.setattr(
        "polyseme.explorer.server.serve",
        lambda workspace, *_, **__: names.append(workspace.name),
    )
    demo.run(build(demo.DemoConfig, {"language": language, "cache": tmp_path}))
    assert names[0].startswith(name)


FOLDER = Path(server.__file__).parent / "static" / "vendor"
PUBLISHED = {
    # htmx.org 2.0.11 on npm, dist/htmx.min.js
    "htmx.min.js": "d6fdc75f204e6bdefa99b69bf1e6d4ac69b8a364f77929f45c13476b4000f717",
}


def test_a_vendored_file_is_the_published_one_and_has_its_licence() -> None:
    found = {path.name for path in FOLDER.iterdir()}
    licences = {f"{name.partition('.')[0]}.LICENSE.txt" for name in PUBLISHED}
    assert found == PUBLISHED.keys() | licences
    for name, sha256 in PUBLISHED.items():
        assert hashlib.sha256((FOLDER / name).read_bytes()).hexdigest() == sha256
    for name in licences:
        assert "WARRANT" in (FOLDER / name).read_text(encoding="utf-8").upper()

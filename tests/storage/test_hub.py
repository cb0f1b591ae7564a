"""What is pushed comes back byte for byte, and nothing that is damaged goes up or comes down."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from huggingface_hub import DatasetCard, ModelCard
from pretraining.making import rule_corpus, tiny_model

from polyseme.errors import HubError, StorageError
from polyseme.storage.files import canonical_json, describe_file
from polyseme.storage.hub import Repository, model_card, pull, push
from storage.hub_server import LARGE, Hub, local_hub

NAME = "models/someone/tiny"


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("hub")
    corpus = rule_corpus(folder)
    tiny_model(corpus).save(folder / "model", card="# tiny")
    return folder / "model", corpus.folder


@pytest.fixture
def hub() -> Iterator[Hub]:
    with local_hub() as found:
        yield found


def content(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_a_model_comes_back_byte_for_byte(
    hub: Hub, folders: tuple[Path, Path], tmp_path: Path
) -> None:
    model = folders[0]
    up = push(model, "someone/tiny")
    down = pull("someone/tiny", tmp_path / "back")
    assert content(tmp_path / "back") == content(model)
    assert (up.commit, up.num_bytes) == (down.commit, down.num_bytes)
    assert hub.private == set()
    assert [path.name for path in tmp_path.iterdir()] == ["back"]


def test_a_corpus_becomes_a_dataset_with_a_card(
    hub: Hub, folders: tuple[Path, Path], tmp_path: Path
) -> None:
    corpus = folders[1]
    done = push(corpus, "someone/texts", private=True)
    assert str(done.repository) == "datasets/someone/texts"
    assert hub.private == {"datasets/someone/texts"}
    card = hub.files("datasets/someone/texts")["README.md"].decode()
    assert DatasetCard(card).data.to_dict()["language"] == ["en"]
    pull("datasets/someone/texts", tmp_path / "back")
    listed = json.loads((corpus / "manifest.json").read_text(encoding="utf-8"))["files"]
    assert set(content(tmp_path / "back")) == {*listed, "manifest.json"}
    assert all(
        (tmp_path / "back" / name).read_bytes() == (corpus / name).read_bytes() for name in listed
    )


def test_only_the_files_of_the_manifest_go_up(
    hub: Hub, folders: tuple[Path, Path], tmp_path: Path
) -> None:
    del tmp_path
    stray = folders[0] / "diary.txt"
    stray.write_text("secret", encoding="utf-8")
    try:
        push(folders[0], "someone/tiny")
    finally:
        stray.unlink()
    assert set(hub.files(NAME)) == {*content(folders[0]), "polyseme/README.md"}


def test_the_hub_reads_what_a_model_is_and_its_owner_may_edit_the_card(
    hub: Hub, folders: tuple[Path, Path], tmp_path: Path
) -> None:
    push(folders[0], "someone/tiny")
    files = hub.files(NAME)
    told = ModelCard(files["README.md"].decode()).data.to_dict()
    assert told["library_name"] == "polyseme"
    assert told["pipeline_tag"] == "feature-extraction"
    assert "polyseme" in told["tags"]
    assert files["README.md"].endswith(files["polyseme/README.md"])
    files["README.md"] += b"\nAsk me anything.\n"
    pull("someone/tiny", tmp_path / "back")
    assert content(tmp_path / "back") == content(folders[0])


@pytest.mark.parametrize(
    ("stated", "identifier", "name"),
    [
        ("CC BY-SA 3.0 (English Wikipedia, 2015)", "cc-by-sa-3.0", None),
        ("Apache-2.0", "apache-2.0", None),
        (
            "public domain: ask me\n---\nlicense: mit",
            "other",
            "public domain: ask me\n---\nlicense: mit",
        ),
        ("", None, None),
    ],
)
def test_a_licence_is_told_as_the_hub_names_it(
    stated: str, identifier: str | None, name: str | None
) -> None:
    manifest = {"metadata": {"licence": stated, "corpus": {"language": "zh-TW"}}}
    data = ModelCard(model_card("# A model\n", manifest)).data.to_dict()
    assert data["language"] == ["zh"]
    assert (data.get("license"), data.get("license_name")) == (identifier, name)
    # A card with a head of its own stays as it is.
    assert model_card("---\nlicense: mit\n---\n# A model\n", manifest).count("license") == 1


def test_what_the_hub_has_is_not_sent_again(hub: Hub, folders: tuple[Path, Path]) -> None:
    push(folders[0], "someone/tiny")
    uploads = [each for each in hub.asked if each.startswith("PUT")]
    large = {data for data in content(folders[0]).values() if len(data) > LARGE}
    assert len(uploads) == len(large) > 0
    push(folders[0], "someone/tiny")
    assert [each for each in hub.asked if each.startswith("PUT")] == uploads


def test_a_damaged_folder_does_not_go_up(hub: Hub, folders: tuple[Path, Path]) -> None:
    config = folders[0] / "config.toml"
    sound = config.read_bytes()
    config.write_bytes(sound + b"# changed\n")
    try:
        with pytest.raises(HubError, match=r"config\.toml is missing or not as it was written"):
            push(folders[0], "someone/tiny")
    finally:
        config.write_bytes(sound)
    assert hub.asked == []


@pytest.mark.parametrize("harm", ["flip", "shorten", "leave out"])
def test_a_damaged_repository_does_not_come_down(
    hub: Hub, folders: tuple[Path, Path], tmp_path: Path, harm: str
) -> None:
    push(folders[0], "someone/tiny")
    files = hub.files(NAME)
    sound = files["model.safetensors"]
    if harm == "flip":
        files["model.safetensors"] = sound[:-1] + bytes([sound[-1] ^ 1])
    elif harm == "shorten":
        files["model.safetensors"] = sound[:-1]
    else:
        del files["model.safetensors"]
    with pytest.raises(HubError, match=r"model\.safetensors of someone/tiny"):
        pull("someone/tiny", tmp_path / "back")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["../outside", "/etc/passwd", "a/../../b", "C:\\x"])
def test_a_manifest_that_names_files_elsewhere_is_refused(
    hub: Hub, folders: tuple[Path, Path], tmp_path: Path, name: str
) -> None:
    push(folders[0], "someone/tiny")
    manifest = json.loads(hub.files(NAME)["manifest.json"])
    manifest["files"][name] = describe_file(folders[0] / "config.toml")
    hub.files(NAME)["manifest.json"] = canonical_json(manifest).encode()
    with pytest.raises(HubError, match="cannot be trusted"):
        pull("someone/tiny", tmp_path / "in" / "back")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_repository_of_others_is_refused(hub: Hub, tmp_path: Path) -> None:
    hub.repositories[NAME] = [{"pytorch_model.bin": b"x"}]
    with pytest.raises(HubError, match="holds nothing that `polyseme push` uploaded"):
        pull("someone/tiny", tmp_path / "back")


def test_a_repository_that_is_not_there_is_said_so(hub: Hub, tmp_path: Path) -> None:
    with pytest.raises(HubError, match="The Hub has no nobody/nothing"):
        pull("nobody/nothing", tmp_path / "back")
    hub.repositories[NAME] = [{}]
    with pytest.raises(HubError, match="The Hub refused"):
        pull("someone/tiny", tmp_path / "back", revision="v9")


def test_a_hub_that_refuses_is_quoted(hub: Hub, folders: tuple[Path, Path]) -> None:
    hub.is_closed = True
    with pytest.raises(HubError, match="The Hub refused"):
        push(folders[0], "someone/tiny")


def test_without_a_network_it_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(HubError, match="cannot be reached"):
        pull("someone/tiny", tmp_path / "back")


def test_a_folder_that_is_there_is_not_written_over(hub: Hub, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="is there already"):
        pull("someone/tiny", tmp_path)
    assert hub.asked == []


@pytest.mark.parametrize("text", ["", "tiny", "a/b/c", "../x", "a/..", "datasets/a", "a b/c"])
def test_what_names_no_repository_is_refused(text: str) -> None:
    with pytest.raises(HubError, match="does not name a repository"):
        Repository.parse(text)


def test_a_file_that_no_model_has_is_refused(
    hub: Hub, folders: tuple[Path, Path], tmp_path: Path
) -> None:
    push(folders[0], "someone/tiny")
    manifest = json.loads(hub.files(NAME)["manifest.json"])
    manifest["files"]["sitecustomize.py"] = describe_file(folders[0] / "config.toml")
    hub.files(NAME)["manifest.json"] = canonical_json(manifest).encode()
    hub.files(NAME)["sitecustomize.py"] = hub.files(NAME)["config.toml"]
    with pytest.raises(HubError, match=r"names sitecustomize\.py, and no model has such a file"):
        pull("someone/tiny", tmp_path / "back")
    assert list(tmp_path.iterdir()) == []

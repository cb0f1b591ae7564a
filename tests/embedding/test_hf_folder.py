"""What is believed of a folder of Hugging Face, and what is refused with a reason."""

import json
import shutil
import socket
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from embedding.hf_making import SENTENCES, embedder_of, make_folder, tokenizers, transformers
from polyseme.embedding.hf import network
from polyseme.embedding.hf.folder import HfFolder
from polyseme.embedding.hf.network import find_folder
from polyseme.errors import MissingExtraError, ModelError


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_folder("bert", tmp_path_factory.mktemp("made") / "bert")


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    """A copy, to be damaged."""
    return Path(shutil.copytree(made, tmp_path / "bert"))


def change(path: Path, **values: Any) -> None:
    told = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**told, **values}), encoding="utf-8")


def refusal(folder: Path) -> str:
    with pytest.raises(ModelError) as refused:
        embedder_of(folder)
    return str(refused.value)


def test_a_missing_folder_and_one_without_a_model_are_told_apart(tmp_path: Path) -> None:
    assert "hf download OWNER/MODEL --local-dir" in refusal(tmp_path / "nowhere")
    assert "has no config.json" in refusal(tmp_path)


def test_pickled_weights_are_refused(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    torch.save(weights, folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    assert "pickle: reading it can run code" in refusal(folder)
    (folder / "pytorch_model.bin").unlink()
    assert "there are no weights" in refusal(folder)


def test_pickled_weights_beside_safetensors_are_not_opened(folder: Path) -> None:
    [before] = embedder_of(folder).stream([SENTENCES[0]])
    (folder / "pytorch_model.bin").write_bytes(b"no pickle at all")
    [after] = embedder_of(folder).stream([SENTENCES[0]])
    assert (before == after).all()


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"transformers_weights": "adapter_model.bin"}, "transformers_weights"),
        ({"quantization_config": {"quant_method": "gptq"}}, "quantization_config"),
        ({"attn_implementation": "somebody/kernel"}, "somebody/kernel"),
        ({"text_config": {"_attn_implementation": "somebody/kernel"}}, "somebody/kernel"),
        ({"num_hidden_layers": 2_000_000}, "num_hidden_layers = 2,000,000"),
        ({"vocab_size": 1 << 40}, "do not fit its settings"),
        ({"hidden_size": 32}, "holds no model that can be read"),
        ({"model_type": "nobody-knows"}, "holds no model that can be read"),
    ],
)
def test_settings_that_ask_for_more_are_refused(
    folder: Path, values: dict[str, Any], reason: str
) -> None:
    change(folder / "config.json", **values)
    assert reason in refusal(folder)


def test_code_in_a_folder_is_never_run(folder: Path) -> None:
    names = {"AutoConfig": "evil.Config", "AutoModel": "evil.Model", "AutoTokenizer": "evil.T"}
    (folder / "evil.py").write_text("raise SystemExit('this code was run')", encoding="utf-8")
    change(folder / "config.json", auto_map=names, model_type="evil")
    assert "holds no model that can be read" in refusal(folder)
    change(folder / "config.json", model_type="bert")  # one that transformers has itself
    embedder_of(folder)


def test_an_adapter_is_refused(folder: Path) -> None:
    (folder / "adapter_config.json").write_text("{}", encoding="utf-8")
    assert "holds an adapter" in refusal(folder)


def test_weights_that_are_missing_are_not_drawn_at_random(folder: Path) -> None:
    path = folder / "model.safetensors"
    weights = load_file(path)
    less = {name: weight for name, weight in weights.items() if "pooler" not in name}
    save_file(less, path, {"format": "pt"})
    embedder_of(folder)  # the pooler is not used
    del less["encoder.layer.1.output.dense.weight"]
    save_file(less, path, {"format": "pt"})
    assert "lacks 1 of its tensors, such as encoder.layer.1.output.dense.weight" in refusal(folder)


def test_damaged_files_are_told(folder: Path) -> None:
    (folder / "config.json").write_text("[1]", encoding="utf-8")
    assert "holds no settings" in refusal(folder)
    (folder / "config.json").write_text("{", encoding="utf-8")
    assert "cannot be read" in refusal(folder)


def test_weights_cut_short_are_told(folder: Path) -> None:
    content = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(content[:-100])
    assert "holds no model that can be read" in refusal(folder)


def test_weights_that_are_no_numbers_give_no_vectors(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    weights["embeddings.LayerNorm.weight"].fill_(float("nan"))
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(ModelError, match="not finite"):
        list(embedder_of(folder).stream(SENTENCES))


def test_weights_in_parts_are_read_and_their_names_stay_inside(folder: Path) -> None:
    [before] = embedder_of(folder).stream([SENTENCES[0]])
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    index: dict[str, Any] = {"metadata": {}, "weight_map": {}}
    for number, names in enumerate((sorted(weights)[:9], sorted(weights)[9:])):
        part = f"model-{number}.safetensors"
        save_file({name: weights[name] for name in names}, folder / part, {"format": "pt"})
        index["weight_map"] |= dict.fromkeys(names, part)
    path = folder / "model.safetensors.index.json"
    path.write_text(json.dumps(index), encoding="utf-8")
    [after] = embedder_of(folder).stream([SENTENCES[0]])
    assert (before == after).all()
    index["weight_map"]["pooler.dense.bias"] = "../model-0.safetensors"
    path.write_text(json.dumps(index), encoding="utf-8")
    assert "plain names of safetensors" in refusal(folder)


def test_a_tokenizer_that_is_not_fast_is_refused(folder: Path) -> None:
    (folder / "tokenizer.json").rename(folder / "vocab.json")
    change(folder / "tokenizer_config.json", tokenizer_class="CanineTokenizer", backend="custom")
    told = refusal(folder)
    assert "CanineTokenizer, is not a 'fast' one" in told
    assert "word_ids" in told


def test_a_folder_without_a_tokenizer_is_told(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer_config.json").unlink()
    assert "has no tokenizer.json" in refusal(folder)


def test_a_tokenizer_of_another_model_is_told(folder: Path) -> None:
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.add_tokens(["another"])
    tokenizer.save(str(folder / "tokenizer.json"))
    assert "do not belong together" in refusal(folder)


def test_a_tokenizer_that_truncates_and_pads_does_not_here(folder: Path) -> None:
    [before] = embedder_of(folder).stream([SENTENCES[2]])
    path = str(folder / "tokenizer.json")
    tokenizer = tokenizers.Tokenizer.from_file(path)
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=50)
    tokenizer.save(path)
    [after] = embedder_of(folder).stream([SENTENCES[2]])
    assert (before == after).all()


def test_the_shortest_limit_of_tokenizer_and_positions_holds(folder: Path) -> None:
    change(folder / "tokenizer_config.json", model_max_length=12)
    assert embedder_of(folder).max_length == 10


def test_a_fingerprint_changes_with_all_that_decides_vectors(folder: Path) -> None:
    found = {HfFolder.open(folder).fingerprint(pooling) for pooling in ("mean", "first")}
    assert len(found) == 2
    (folder / "README.md").write_text("A card.", encoding="utf-8")
    assert HfFolder.open(folder).fingerprint("mean") in found
    for name in ("model.safetensors", "config.json", "tokenizer.json", "tokenizer_config.json"):
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content + b" ")
        found.add(HfFolder.open(folder).fingerprint("mean"))
        (folder / name).write_bytes(content)
    (folder / "vocab.txt").write_text("she", encoding="utf-8")
    found.add(HfFolder.open(folder).fingerprint("mean"))
    assert len(found) == 7


@pytest.mark.parametrize("vocabulary", [100, 100_001])
def test_nothing_is_asked_of_a_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, vocabulary: int
) -> None:
    """transformers asks its hub about tokenizers of more than 100,000 tokens, if it may."""
    path = make_folder("roberta", tmp_path / "roberta", vocab_size=100_400)
    told = json.loads((path / "tokenizer.json").read_text(encoding="utf-8"))
    known = told["model"]["vocab"]
    known |= {f"token{n}": len(known) + n for n in range(vocabulary)}
    (path / "tokenizer.json").write_text(json.dumps(told), encoding="utf-8")
    asked: list[Any] = []

    def refuse(*told: Any, **_: Any) -> Any:
        asked.append(told)
        raise OSError("no network in tests")

    for name in ("connect", "connect_ex", "sendto"):
        monkeypatch.setattr(socket.socket, name, refuse)
    for name in ("getaddrinfo", "create_connection", "gethostbyname"):
        monkeypatch.setattr(socket, name, refuse)
    list(embedder_of(path).stream(SENTENCES))
    assert asked == []


def test_messages_and_randomness_of_others_are_as_before(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    weights = load_file(folder / "model.safetensors")
    weights["cls.predictions.bias"] = torch.zeros(3)  # which transformers would report
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    level = transformers.utils.logging.get_verbosity()
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    embedder_of(folder)
    assert torch.equal(torch.rand(2), expected)
    assert transformers.utils.logging.get_verbosity() == level
    told = capfd.readouterr()
    assert told.out + told.err == ""


def test_without_the_extra_the_error_says_what_to_install(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[hf\]"):
        network.load_network(HfFolder.open(folder), device="cpu")


def test_a_model_in_the_cache_is_found_and_nothing_is_fetched_unless_asked(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[str, dict[str, Any]]] = []

    def snapshot_download(name: str, **told: Any) -> str:
        calls.append((name, told))
        if told["local_files_only"] and name != "owner/model":
            raise FileNotFoundError("not in the cache")
        return str(folder)

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot_download)
    assert find_folder("owner/model") == folder
    with pytest.raises(ModelError, match="nor has Hugging Face's cache a model of this name"):
        find_folder("owner/other")
    assert find_folder("owner/other", download=True) == folder
    assert [told["local_files_only"] for _, told in calls] == [True, True, False]
    assert not any("bin" in pattern or "py" in pattern for pattern in calls[0][1]["allow_patterns"])
    assert find_folder(str(folder)) == folder
    assert len(calls) == 3  # a folder is a folder


def test_the_cache_is_looked_up_without_a_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    with pytest.raises(ModelError, match="hf download OWNER/MODEL --local-dir"):
        find_folder("owner-that-is/not-there")

"""From a corpus to a model and back to sentences, through the command line."""

import json
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from command_line import polyseme
from pretraining.making import rule_corpus, rule_text
from safetensors.torch import load_file

import polyseme as polyseme_api
from polyseme.config import build
from polyseme.pretraining import PretrainConfig, run
from polyseme.pretraining.language_modeling import Throughput
from polyseme.pretraining.run import pretrain
from polyseme.storage.files import sha256_of
from polyseme.text.corpus import Corpus

SMALL = (
    *("--preset", "elmo-teaching", "--set", "model.encoder.contextualizer.proj_size=16"),
    *("--set", "model.vocabulary.min_count=1", "--set", "batches.words=300"),
    *("--learning-rate", "0.02", "--precision", "float32", "--evaluate-every", "20"),
)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return rule_corpus(Path(tmp_path_factory.mktemp("journey")))


@pytest.fixture(scope="module")
def model(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = Path(tmp_path_factory.mktemp("model")) / "m"
    polyseme("pretrain", corpus.folder, *SMALL, "--steps", "60", "--out", out)
    return out


def test_a_model_folder_is_complete_and_told(model: Path, corpus: Corpus) -> None:
    manifest = json.loads((model / "manifest.json").read_text(encoding="utf-8"))
    for name, told in manifest["files"].items():
        assert sha256_of(model / name) == told["sha256"]
    assert manifest["metadata"]["steps"] == 60
    assert manifest["metadata"]["perplexity"]["forward"] < 20
    assert "60 steps" in (model / "README.md").read_text(encoding="utf-8")
    assert (model / "curve.png").stat().st_size > 1000
    assert manifest["preparation"] == corpus.manifest["preparation"]


def test_a_finished_model_keeps_no_checkpoints_unless_asked(
    model: Path, corpus: Corpus, tmp_path: Path
) -> None:
    assert not (model / "checkpoints").exists()
    out = tmp_path / "kept"
    polyseme(
        "pretrain", corpus.folder, *SMALL, "--steps", "2", "--out", out, "--keep-training-state"
    )
    assert any((out / "checkpoints").iterdir())
    polyseme(
        "pretrain", corpus.folder, *SMALL, "--steps", "4", "--out", out, "--keep-training-state"
    )
    told = json.loads((out / "manifest.json").read_text(encoding="utf-8"))["metadata"]
    assert told["steps"] == 4
    shown = polyseme("pretrain", corpus.folder, *SMALL, "--out", out)  # as it is by now
    assert "4 steps planned" in " ".join(shown.stderr.split())
    assert not (out / "checkpoints").exists()


def test_a_model_no_better_than_word_frequencies_says_so(corpus: Corpus, tmp_path: Path) -> None:
    command = ("pretrain", corpus.folder, *SMALL, "--steps", "1", "--out", tmp_path / "m")
    shown = " ".join(polyseme(*command).stdout.split())
    assert "no better than the unigram model" in shown
    assert "too little to train on" in shown


def test_the_callers_arithmetic_is_as_it_was_after_a_run(corpus: Corpus, tmp_path: Path) -> None:
    values = {
        "corpus": corpus.folder,
        "out": tmp_path / "m",
        "preset": "elmo-teaching",
        "training": {"steps": 1, "precision": "float32"},
        "model": {"encoder": {"contextualizer": {"proj_size": 16}}, "vocabulary": {"min_count": 1}},
        "batches": {"words": 64},
    }
    assert pretrain(build(PretrainConfig, values)) is not None
    assert torch.tensor([1e-40]).mul(0.5).item() > 0  # still there, though below float32's normals


def test_evaluate_shows_the_model_beside_ngrams(model: Path, corpus: Corpus) -> None:
    shown = polyseme("evaluate", model, "--in", corpus.folder).stdout
    metadata = json.loads((model / "manifest.json").read_text(encoding="utf-8"))["metadata"]
    # What pretrain tells for nothing is what the n-gram model finds on the same predictions.
    told = [f"{metadata['unigram_perplexity'][part]:.1f}" for part in ("forward", "backward")]
    assert re.findall(r"ward +│ +[0-9,]+ +│ +([0-9.]+)", shown) == told
    assert "3-gram" in shown
    assert "unigram" in shown
    assert "forward" in shown
    assert "backward" in shown


def test_score_prefers_the_order_of_the_text(model: Path) -> None:
    natural, turned = "The old cat purrs and purrs .", "The cat old purrs purrs and ."
    shown = polyseme("score", "--model", model, turned, natural).stdout
    assert shown.index("The old cat purrs and purrs .") < shown.index("The cat old purrs purrs")


def test_n_grams_beside_the_model_prefer_the_order_of_the_text(model: Path, corpus: Corpus) -> None:
    natural, turned = "The old cat purrs and purrs .", "The cat old purrs purrs and ."
    asked = ("score", "--model", model, turned, natural, "--ngram", corpus.folder, "--order", "2")
    good, bad = sorted(
        map(json.loads, polyseme(*asked, "--json").stdout.splitlines()),
        key=lambda score: -score["total"],
    )
    assert good["words"] == natural.split()
    assert good["ngram"]["total"] > bad["ngram"]["total"]
    # The mean over directions is the model's own: n-grams have no part in it.
    assert good["total"] == (good["forward"]["total"] + good["backward"]["total"]) / 2
    by_name = polyseme_api.score([natural], model=model, ngram=corpus, order=2)
    assert by_name[0].as_json() == good
    shown = polyseme(*asked).stdout
    assert f"{good['total']:.1f} bits, 2-gram {good['ngram']['total']:.1f}: {natural}" in shown
    assert len(re.findall(r"^sum .*2-gram|^word .*2-gram", shown, re.MULTILINE)) == 2


def test_n_grams_of_a_corpus_with_other_words_are_refused(model: Path, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("今天是周日。\n" * 20, encoding="utf-8")
    polyseme("prepare", text, "--out", tmp_path / "zh", "--language", "zh")
    told = polyseme("score", "--model", model, "cat", "--ngram", tmp_path / "zh", code=65).stderr
    assert "The model reads" in told


def test_score_shows_every_word_of_a_long_sentence_on_a_narrow_screen(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    words = [f"word{number}" for number in range(28)]
    rows = polyseme("score", "--model", model, " ".join(words)).stdout.splitlines()
    for word in words:
        (row,) = [row.split() for row in rows if row.split()[:1] == [word]]
        assert float(row[2]) < 0
        assert float(row[4]) < 0


def test_score_as_json_is_what_python_gives(model: Path) -> None:
    texts = ["The cat purrs .", "The dog barks ."]
    printed = polyseme("score", "--model", model, *texts, "--json").stdout.splitlines()
    assert [json.loads(line) for line in printed] == [
        score.as_json() for score in polyseme_api.score(texts, model=model)
    ]


def test_a_model_can_be_trained_on(model: Path, corpus: Corpus, tmp_path: Path) -> None:
    out = tmp_path / "on"
    polyseme("pretrain", corpus.folder, "--from", model, "--steps", "3", "--out", out)
    metadata = json.loads((out / "manifest.json").read_text(encoding="utf-8"))["metadata"]
    before = json.loads((model / "manifest.json").read_text(encoding="utf-8"))["metadata"]
    assert metadata["perplexity"]["forward"] < 2 * before["perplexity"]["forward"]
    assert metadata["began_with"] == {
        "name": model.name,
        "sha256": sha256_of(model / "manifest.json"),
        "steps": before["steps"],
        "words": before["words"],
    }
    card = (out / "README.md").read_text(encoding="utf-8")
    assert f"`{model.name}` ({before['steps']} steps" in card


def test_a_model_goes_on_with_the_words_of_a_corpus_tokenized_differently(
    model: Path, tmp_path: Path
) -> None:
    text, corpus, out = tmp_path / "text.txt", tmp_path / "corpus", tmp_path / "on"
    text.write_text(rule_text().replace(" .", "."), encoding="utf-8")
    spaces = ("--segmenter", "whitespace", "--layout", "lines", "--held-out", "0.2")
    polyseme("prepare", text, "--language", "en", *spaces, "--out", corpus)
    command = ("pretrain", corpus, "--from", model, "--steps", "3", "--out", out)
    assert "--vocabulary corpus" in polyseme(*command, code=65).stderr
    polyseme(*command, "--vocabulary", "corpus")
    polyseme("evaluate", out, "--in", corpus)
    kept = ("--vocabulary", "corpus", "--interpolate", "0.5")
    assert "--vocabulary model" in polyseme(*command, *kept, code=2).stderr
    assert "--from MODEL" in polyseme("pretrain", corpus, *kept[:2], "--out", out, code=2).stderr


def test_trained_weights_are_interpolated_with_those_they_began_with(
    model: Path, corpus: Corpus, tmp_path: Path
) -> None:
    command = ("pretrain", corpus.folder, "--from", model, "--steps", "3")
    polyseme(*command, "--out", tmp_path / "trained")
    half = ("--interpolate", "0.25", "--keep-training-state", "--out", tmp_path / "mixed")
    polyseme(*command, *half)
    folders = (model, tmp_path / "trained", tmp_path / "mixed")
    before, after, mixed = (load_file(folder / "model.safetensors") for folder in folders)
    for name, weights in mixed.items():
        torch.testing.assert_close(weights, 0.75 * before[name] + 0.25 * after[name])
    assert any(not torch.equal(before[name], after[name]) for name in before)
    assert "25% of the trained weights, 75% of" in (tmp_path / "mixed" / "README.md").read_text()
    polyseme(*command, *half)  # what is kept to train further is not mixed, and not mixed twice
    again = load_file(tmp_path / "mixed" / "model.safetensors")
    assert all(torch.equal(again[name], weights) for name, weights in mixed.items())


def test_there_must_be_something_to_interpolate_with(
    model: Path, corpus: Corpus, tmp_path: Path
) -> None:
    command = ("pretrain", corpus.folder, "--interpolate", "0.5", "--out", tmp_path / "m")
    assert "--from MODEL" in polyseme(*command, code=2).stderr
    only = ("--from", model, "--only", "cloze")
    assert "nothing to interpolate" in polyseme(*command, *only, code=2).stderr


def test_a_cloze_head_is_trained_on_a_model_that_stays_as_it_is(
    model: Path, corpus: Corpus, tmp_path: Path
) -> None:
    out = tmp_path / "cloze"
    command = ("pretrain", corpus.folder, "--from", model, "--only", "cloze", "--out", out)
    polyseme(*command, "--steps", "40")
    before = load_file(model / "model.safetensors")
    after = load_file(out / "model.safetensors")
    assert all(torch.equal(after[name], weights) for name, weights in before.items())
    assert {name.rpartition(".")[0] for name in after.keys() - before.keys()} == {
        "objective.cloze.hidden",
        "objective.cloze.output",
    }
    metadata = json.loads((out / "manifest.json").read_text(encoding="utf-8"))["metadata"]
    told = metadata["perplexity"]
    assert told["cloze"] < min(told["forward"], told["backward"])
    words = polyseme_api.score(["The cat purrs ."], model=out)[0].parts
    assert list(words) == ["forward", "backward"]
    assert (
        "cat" in polyseme("substitutes", "The old *cat* purrs and purrs .", "--model", out).stdout
    )


def test_a_cloze_head_needs_a_model_that_reads_both_ways(
    model: Path, corpus: Corpus, tmp_path: Path
) -> None:
    command = ("pretrain", corpus.folder, "--only", "cloze", "--out", tmp_path / "m")
    assert "--from MODEL" in polyseme(*command, code=2).stderr
    causal = tmp_path / "gpt"
    preset = ("--preset", "gpt-mini", "--steps", "1", "--set", "model.vocabulary.min_count=1")
    polyseme("pretrain", corpus.folder, *preset, "--out", causal)
    result = polyseme(*command, "--from", causal, code=65)
    assert "forward and a backward" in " ".join(result.stderr.split())


def test_other_settings_do_not_overwrite_a_finished_model(model: Path, corpus: Corpus) -> None:
    command = ("pretrain", corpus.folder, "--preset", "gpt-mini", "--steps", "3", "--out", model)
    result = polyseme(*command, code=65)
    assert "finished model of other" in " ".join(result.stderr.split())


@pytest.mark.parametrize(("measuring", "steps"), [(0.0, 4), (1000.0, 2)])
def test_half_of_a_short_run_is_for_training_however_long_measuring_takes(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, measuring: float, steps: int
) -> None:
    """Of 36 seconds, with steps of 9."""
    found = Throughput(seconds=9.0, words=100.0, memory=0)
    monkeypatch.setattr(run, "measure_throughput", lambda *_, **__: found)
    monkeypatch.setattr(run, "time_evaluation", lambda _: measuring)
    command = ("pretrain", corpus.folder, *SMALL[:2], "--hours", "0.01", "--out", tmp_path / "m")
    told = " ".join(polyseme(*command).stderr.split())
    metadata = json.loads((tmp_path / "m/manifest.json").read_text(encoding="utf-8"))["metadata"]
    assert metadata["steps"] == steps
    assert ("longer than asked for" in told) == (measuring > 0)


def test_plan_tells_what_training_takes(corpus: Corpus) -> None:
    shown = polyseme("plan", corpus.folder, *SMALL[:2], "--hours", "0.1").stdout
    for line in ("parameters", "checkpoint on disk", "words per second", "time per epoch"):
        assert line in shown


def test_too_little_memory_is_told_with_what_to_make_smaller(
    corpus: Corpus, tmp_path: Path
) -> None:
    words = ["pretrain", corpus.folder, *SMALL, "--steps", "1", "--out", tmp_path / "m"]
    huge = ["--set", "model.encoder.contextualizer.proj_size=65536"]
    result = subprocess.run(
        [sys.executable, "-m", "polyseme", *map(str, words), *huge],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30)),
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert "Traceback" not in result.stderr
    assert result.returncode == 71, result.stderr
    assert "not enough memory" in result.stderr

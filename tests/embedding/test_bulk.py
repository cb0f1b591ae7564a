"""A corpus to vectors on disk: every word once, the same wherever and however often it is done."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from corpora import prepared
from executors.jobs import hashes

from embedding.bulk_cases import Case, make_case
from polyseme.commands.embed import run
from polyseme.devices import num_threads
from polyseme.embedding.bulk import Pca
from polyseme.embedding.corpus_parts import parts_of
from polyseme.embedding.embedder import Embedder
from polyseme.embedding.folder import VectorFolder
from polyseme.errors import ModelError, VectorsError


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    return make_case(Path(tmp_path_factory.mktemp("bulk")))


def rows_of(vectors: VectorFolder) -> list[dict[str, Any]]:
    return [row for path in vectors.files for row in pq.read_table(path).to_pylist()]


def all_sentences(case: Case) -> list[Any]:
    return [sentence for part in parts_of(case.corpus) for sentence in part.sentences()]


def test_every_word_of_the_corpus_is_there_once_in_order(case: Case, tmp_path: Path) -> None:
    result = case.embed(tmp_path / "v")
    found = [
        (row["sentence_id"], row["document"], row["position"], row["word_index"], row["word"])
        for row in rows_of(result.vectors)
    ]
    expected = [
        (sentence.sentence_id, sentence.document, sentence.position, index, word)
        for sentence in all_sentences(case)
        for index, word in enumerate(sentence.words)
    ]
    assert len(parts_of(case.corpus)) >= 3
    assert found == expected
    assert result.vectors.manifest["counts"]["vectors"] == case.corpus.read_stats["words"]


def test_vectors_are_those_the_embedder_gives_alone(case: Case, tmp_path: Path) -> None:
    result = case.embed(tmp_path / "v", dtype="float32")
    embedder = Embedder.load(case.model)
    sentence = all_sentences(case)[150]
    alone = embedder.embed([sentence.words])[0].vectors  # (L, T, D)
    rows = [row for row in rows_of(result.vectors) if row["sentence_id"] == sentence.sentence_id]
    stored = np.array([[row[f"layer_{layer}"] for row in rows] for layer in range(3)])
    np.testing.assert_allclose(stored, alone, atol=1e-5 * float(np.sqrt((alone**2).mean())))


def test_float16_is_the_nearest_to_what_float32_holds(case: Case, tmp_path: Path) -> None:
    half = case.embed(tmp_path / "a", layers="top").vectors
    full = case.embed(tmp_path / "b", layers="top", dtype="float32").vectors
    for one, other in zip(half.files, full.files, strict=True):
        small = pq.read_table(one)["vector"].combine_chunks().flatten().to_numpy()
        large = pq.read_table(other)["vector"].combine_chunks().flatten().to_numpy()
        assert small.dtype == np.float16
        np.testing.assert_array_equal(small, large.astype(np.float16))


def test_a_mix_is_the_weighted_sum_of_the_layers(case: Case, tmp_path: Path) -> None:
    apart = case.embed(tmp_path / "a", dtype="float32").vectors
    mixed = case.embed(tmp_path / "b", dtype="float32", layers="0.5,0.25,0.25").vectors
    for row, other in zip(rows_of(apart), rows_of(mixed), strict=True):
        by_hand = sum(
            weight * np.array(row[f"layer_{layer}"])
            for layer, weight in enumerate((0.5, 0.25, 0.25))
        )
        np.testing.assert_allclose(other["vector"], by_hand, atol=1e-5)


def test_only_chosen_words_are_kept_and_are_what_they_were_among_all(
    case: Case, tmp_path: Path
) -> None:
    (tmp_path / "words.txt").write_text("word3\n\nn7\n", encoding="utf-8")
    every = case.embed(tmp_path / "a", dtype="float32", batch_invariant=True).vectors
    some = case.embed(
        tmp_path / "b",
        dtype="float32",
        batch_invariant=True,
        words=["word8"],
        words_file=tmp_path / "words.txt",
    ).vectors
    wanted = {"word3", "word8", "n7"}
    assert rows_of(some) == [row for row in rows_of(every) if row["word"] in wanted]
    counts = some.manifest["counts"]
    assert 0 < counts["sentences_embedded"] < counts["sentences"]


def test_the_uses_of_a_word_can_be_read(case: Case, tmp_path: Path) -> None:
    vectors = case.embed(tmp_path / "v", layers="top").vectors
    uses = vectors.read(["n7"])
    assert uses["word"].to_pylist() == ["n7"]
    assert vectors.read(limit=5).num_rows == 5


def test_one_worker_and_two_give_the_same_bytes(case: Case, tmp_path: Path) -> None:
    case.embed(tmp_path / "one")
    case.embed(tmp_path / "two", executor={"workers": 2})
    assert hashes(tmp_path / "one") == hashes(tmp_path / "two")


def test_a_run_works_with_the_threads_asked_for_and_leaves_the_callers(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: set[int] = set()
    stream = Embedder.stream

    def watched(embedder: Embedder, *given: Any, **told: Any) -> Any:
        seen.add(torch.get_num_threads())
        return stream(embedder, *given, **told)

    monkeypatch.setattr(Embedder, "stream", watched)
    with num_threads(2):
        # Twice: the second run finds the model loaded, by which threads are not set again.
        for name in ("first", "second"):
            case.embed(tmp_path / name, threads=3)
            assert torch.get_num_threads() == 2
    assert seen == {3}


def test_a_second_run_does_nothing_and_a_damaged_file_is_mended(case: Case, tmp_path: Path) -> None:
    first = case.embed(tmp_path / "v")
    before = hashes(tmp_path / "v")
    again = case.embed(tmp_path / "v")
    assert again.words_now == 0
    assert again.files_found == len(first.vectors.files)
    victim = first.vectors.files[1]
    data = bytearray(victim.read_bytes())
    data[len(data) // 2] ^= 1
    victim.write_bytes(bytes(data))
    assert first.vectors.damaged() == [f"vectors/{victim.name}"]
    mended = case.embed(tmp_path / "v")
    assert mended.files_found == len(first.vectors.files) - 1
    assert hashes(tmp_path / "v") == before


def test_another_model_is_not_taken_for_the_same(case: Case, tmp_path: Path) -> None:
    other = make_case(tmp_path / "other", lines=310)
    case.embed(tmp_path / "v")
    changed = other.settings(tmp_path / "v", inputs=[str(case.corpus.folder)])
    result = run(changed)
    assert result.files_found == 0
    assert result.words_now == case.corpus.read_stats["words"]


def test_other_settings_are_refused_unless_asked_to_replace(case: Case, tmp_path: Path) -> None:
    case.embed(tmp_path / "v")
    with pytest.raises(VectorsError, match=r"layers = 'all', now 'top'.*--replace"):
        case.embed(tmp_path / "v", layers="top")
    result = case.embed(tmp_path / "v", layers="top", replace=True)
    assert result.vectors.manifest["columns"] == ["vector"]


def test_texts_are_prepared_as_the_models_corpus_was(case: Case, tmp_path: Path) -> None:
    result = case.embed(tmp_path / "v", inputs=[str(case.text)])
    reference = case.embed(tmp_path / "w")
    found = [(row["position"], row["word"]) for row in rows_of(result.vectors)]
    assert found == [(row["position"], row["word"]) for row in rows_of(reference.vectors)]


def test_reduced_vectors_keep_the_variance_that_they_say(case: Case, tmp_path: Path) -> None:
    whole = case.embed(tmp_path / "a", dtype="float32", layers="average").vectors
    reduced = case.embed(tmp_path / "b", dtype="float32", layers="average", pca=6).vectors
    points = np.array([row["vector"] for row in rows_of(whole)], np.float64)
    points -= points.mean(axis=0)
    spread = np.linalg.svd(points, compute_uv=False) ** 2
    small = np.array([row["vector"] for row in rows_of(reduced)], np.float64)
    assert small.shape == (len(points), 6)
    kept = ((small - small.mean(axis=0)) ** 2).sum() / spread.sum()
    [told] = reduced.manifest["explained_variance_ratio"]
    assert kept == pytest.approx(told, abs=0.02)
    assert kept == pytest.approx(spread[:6].sum() / spread.sum(), abs=0.02)
    assert Pca.load(tmp_path / "b") is not None


def test_a_corpus_with_other_words_is_refused(case: Case, tmp_path: Path) -> None:
    prepared(case.text, tmp_path / "c", layout="lines", segmenter="whitespace")
    told = r"reads words by spaCy's rules for 'en' .* has words by white space .*\. Name a model "
    with pytest.raises(ModelError, match=f"{told}.*TEXTS --language en --segmenter spacy --out"):
        case.embed(tmp_path / "v", inputs=[str(tmp_path / "c")])

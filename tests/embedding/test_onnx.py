"""An exported graph gives the library's vectors, for batches of any shape."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import polyseme
from laws.cases import SENTENCES, make
from required import need_package

from polyseme.embedding.embedder import Embedder
from polyseme.embedding.onnx_export import GRAPH, TRITON, VOCABULARY

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/how-to/deploy.md").read_text(encoding="utf-8")
CASES: list[tuple[str, str, str, str]] = [
    ("lstm", "separate", "bidirectional", "word+characters"),
    ("plain-lstm", "joint", "masked", "bytes"),
    ("lstm", "forward", "causal", "word"),
    ("rotary", "separate", "bidirectional", "unicode"),
    ("learned", "joint", "pairs", "word"),
    ("none", "forward", "cbow", "unicode"),
]


def page_code(folder: Path) -> Any:
    """The function of the docs page, which knows nothing of Polyseme."""
    names: dict[str, Any] = {}
    (code,) = [each for each in PAGE.split("```python\n") if "def layers_of(" in each]
    code = code.partition("\n```")[0].replace("exported", str(folder))
    exec(compile(code, "page", "exec"), names)
    return names["layers_of"]


@pytest.mark.parametrize("case", CASES, ids=" ".join)
def test_the_graph_gives_the_librarys_vectors(
    case: tuple[str, str, str, str], tmp_path: Path
) -> None:
    need_package("onnxruntime")
    need_package("onnxscript")
    model = make(*case, "full").model()
    model.save(tmp_path / "model", card="")
    polyseme(
        "convert", "export", tmp_path / "model", "--format", "onnx", "--out", tmp_path / "exported"
    )
    layers_of = page_code(tmp_path / "exported")
    expected = Embedder(model, device="cpu")
    for sentences in (SENTENCES, [["ba"]], [["水tüm", "no"] * 7, ["an"] * 3]):
        found = layers_of(sentences)
        for row, sentence in zip(found, expected.embed(sentences), strict=True):
            vectors = row[:, 1 : len(sentence.words) + 1]
            assert np.abs(vectors - sentence.vectors).max() <= 1e-4
    config = (tmp_path / "exported" / TRITON).read_text(encoding="utf-8")
    assert ("char_ids" in config) == (case[-1] != "word")


def test_the_published_model_as_a_graph(tmp_path: Path) -> None:
    need_package("onnxruntime")
    need_package("onnxscript")
    shown = polyseme(
        "convert", "export", ROOT / "models/en-base", "--format", "onnx", "--out", tmp_path
    )
    assert str(tmp_path) in shown.stdout
    assert {GRAPH, TRITON, VOCABULARY} <= {
        str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()
    }
    embedder = Embedder.load(ROOT / "models/en-base", device="cpu")
    sentences = [
        ["She", "sat", "on", "the", "bank", "of", "the", "river", "."],
        ["Zürich", ",", "naïvely", "12,000"],
    ]
    for row, sentence in zip(
        page_code(tmp_path)(sentences), embedder.embed(sentences), strict=True
    ):
        assert np.abs(row[:, 1 : len(sentence.words) + 1] - sentence.vectors).max() <= 1e-4


def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    words = ["convert", "export", str(ROOT / "models/en-mini"), "--format", "onnx"]
    told = polyseme(*words, "--out", tmp_path / "exported", code=1).stderr
    assert "pip install onnxscript" in told

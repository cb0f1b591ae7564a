"""Small outputs of each package with a `FORMAT`, to be compared with those recorded of that number.

`python tests/formats.py` records what is missing, after a `FORMAT` was raised.
"""

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pretraining.making import tiny_model
from text.documents import make_docx, word_paragraph
from text.making import make_config, make_source, prepare_all

from polyseme.commands import index, prepare
from polyseme.config import build
from polyseme.embedding import model_work
from polyseme.embedding.embedder import Embedder
from polyseme.meanings.index import row_group
from polyseme.meanings.index.use_index import UseIndex
from polyseme.model import Model
from polyseme.text import prepare as text_prepare
from polyseme.text.corpus import Corpus
from polyseme.text.settings import InputFormat

RECORDED = Path(__file__).parent / "recorded"
_LINES = [
    "The bank of the river was wet . We sat there until dark .",
    "A bank lends money , and “ a bank ” keeps it ; U.S. banks too !",
    "她在银行工作。河边有一家银行！他说：“走吧。”",
    "An overlong line " + "and so on " * 30 + ".",
]
_CONLLU = "# newdoc id = d\n# year = 1850\n1-2\tdon't\t_\t_\t_\t_\t_\t_\t_\t_\n" + "".join(
    f"{number}\t{word}\t{lemma}\tX\t_\t_\t_\t_\t_\t_\n"
    for number, (word, lemma) in enumerate([("do", "do"), ("n't", "not"), ("go", "go")], 1)
)
_FILES: dict[InputFormat, bytes] = {
    "text": "\n\n".join(["\n".join(_LINES[:2]), *_LINES[2:], "bad \0 line"]).encode(),
    "jsonl": b"".join(
        json.dumps({"text": line, "year": "1900"}).encode() + b"\n" for line in _LINES
    )
    + b"[]\n",
    "csv": b"text,year\n" + "".join(f'"{line}",1901\n' for line in _LINES[2:]).encode(),
    "html": f"<html><body><h1>Head</h1><p>{_LINES[0]}<p>{_LINES[2]}</body></html>".encode(),
    "docx": make_docx(word_paragraph(_LINES[0]) + word_paragraph(_LINES[2])),
    "vertical": b"<text year='1'>\n<s>\nA\ta\nbank\tbank\n<g/>\n.\t.\n</s>\n</text>\n",
    "conllu": _CONLLU.encode() + b"\n",
    "tei": f"<TEI><text><body><p>{_LINES[0]}</p><p>{_LINES[2]}</p></body></text></TEI>".encode(),
}


def shards(folder: Path) -> list[Any]:
    """Rows and quarantine of a file of each format, and how the words of texts were cut."""
    found: list[Any] = []
    for kind, data in _FILES.items():
        for segmenter in ("whitespace", "characters"):
            if kind in ("vertical", "conllu") and segmenter == "characters":
                continue
            config = make_config(segmenter=segmenter, meta=("year",), max_words=40, held_out=0.5)
            source = make_source(folder / kind / segmenter, data, kind)
            made = prepare_all([source], config, folder / kind / segmenter / "out")
            found += [[kind, segmenter, *row.values()] for row in made.rows]
            found += [[kind, segmenter, *entry.values()] for entry in made.quarantine]
    return found


def _model(folder: Path) -> tuple[Path, Corpus]:
    """A model whose weights no generator of random numbers has a hand in."""
    folder.mkdir(parents=True)
    (folder / "texts.txt").write_text("\n\n".join(_LINES[:3] * 30), encoding="utf-8")
    values = {
        "inputs": [str(folder / "texts.txt")],
        "out": folder / "corpus",
        "corpus": {"language": "en", "segmenter": "characters", "held_out": 0},
        "executor": {"workers": 1},
    }
    corpus = prepare.run(build(prepare.PrepareConfig, values)).corpus
    model: Model = tiny_model(corpus)
    with torch.no_grad():
        for number, weight in enumerate(model.network.parameters()):
            steps = torch.arange(weight.numel(), dtype=torch.float64).reshape(weight.shape)
            weight.copy_(torch.sin(steps * 0.7 + number) * 0.5)
    model.save(folder / "model", card="A model for tests.")
    return folder / "model", corpus


def vectors(folder: Path) -> list[Any]:
    """All layers of some sentences."""
    embedder = Embedder.load(_model(folder)[0], device="cpu")
    sentences = [line.split() for line in _LINES]
    return [_rounded(found) for found in embedder.stream(sentences)]


def uses(folder: Path) -> list[Any]:
    """The features of the uses of a word in an index."""
    model, corpus = _model(folder)
    values = {
        "model": model,
        "corpus": corpus.folder,
        "out": folder / "index",
        "index": {"words": ["bank", "河"]},
        "executor": {"workers": 1},
    }
    index.run(build(index.IndexConfig, values))
    found = UseIndex.open(folder / "index").find(corpus, "bank")
    features = found.encode(found.uses)
    spans = found.uses.spans.tolist()
    return [spans[:8], _rounded(features.context[:8]), _rounded(features.bag[:8])]


def _rounded(values: Any) -> Any:
    return np.round(np.asarray(values, np.float64), 4).tolist()


FORMATS: dict[str, tuple[int, Callable[[Path], list[Any]]]] = {
    "text/prepare.py": (text_prepare.FORMAT, shards),
    "embedding/model_work.py": (model_work.FORMAT, vectors),
    "meanings/index/row_group.py": (row_group.FORMAT, uses),
}
"""By the file that holds the number."""


def recorded(name: str) -> Path:
    """Where the output of the present number is."""
    return RECORDED / f"{name.replace('/', '-').removesuffix('.py')}-{FORMATS[name][0]}.json"


if __name__ == "__main__":
    for each, (_, make) in FORMATS.items():
        if not recorded(each).exists():
            with tempfile.TemporaryDirectory() as scratch:
                lines = (json.dumps(row, ensure_ascii=False) for row in make(Path(scratch) / "x"))
                text = "[\n" + ",\n".join(lines) + "\n]\n"
            recorded(each).write_text(text, encoding="utf-8")

"""Vectors in AllenNLP's layout: one hdf5 dataset a sentence, named by the sentence's number.

As its `elmo` command wrote them: "0", "1", ... of shape (layers, words, dimensions), float32, and
`sentence_to_index`, a JSON text from each sentence, its words joined by spaces, to its name.
Numbers count the sentences of the corpus; each file holds those of its own row group.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from polyseme.embedding.corpus_parts import CorpusSentence
from polyseme.embedding.store import VectorArray, as_stored
from polyseme.errors import MissingExtraError


class Hdf5Writer:
    """Writes one hdf5 file."""

    def __init__(self, path: Path, *, dtype: str) -> None:
        try:
            import h5py
        except ImportError as error:
            purpose = "--format allennlp-hdf5"
            raise MissingExtraError.of("h5py", extra="torch", purpose=purpose) from error
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file: Any = h5py.File(path, "w", track_order=False)
        self._text = h5py.string_dtype()
        self._dtype = dtype
        self._names: dict[str, str] = {}

    def __enter__(self) -> "Hdf5Writer":
        return self

    def __exit__(self, *reason: object) -> None:
        with self._file:
            if reason[0] is None:
                text = json.dumps(self._names, ensure_ascii=False)
                self._file.create_dataset("sentence_to_index", (1,), self._text)[0] = text

    def add(
        self, sentence: CorpusSentence, number: int, chosen: Sequence[int], vectors: VectorArray
    ) -> None:
        """The vectors (L, T, D) of a whole sentence."""
        del chosen
        whole = vectors[0] if len(vectors) == 1 else vectors  # one layer: (words, dimensions)
        self._file.create_dataset(
            str(number), data=as_stored(whole, self._dtype), track_times=False
        )
        self._names[" ".join(sentence.words)] = str(number)

"""Vectors on disk: Parquet, one row a word, one column a layer.

    document, position   the sentence, as in the corpus: which document, its position in it
    word_index, word     which word of the sentence, and how it is written
    layer_0, layer_1 ... or `vector`, where layers were mixed: fixed-size lists of float16 or 32

Any tool that reads Parquet reads it. Vectors are not compressed: there is little to gain.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from polyseme.embedding.corpus_parts import CorpusSentence
from polyseme.embedding.word_embedder import is_finite
from polyseme.errors import VectorsError
from polyseme.storage.parquet import ParquetOutput

VectorArray = npt.NDArray[Any]
# Words in a row group: 6 MB a column at 384 dimensions of float16; a reader skips by the group.
_ROW_GROUP = 8_192
_KEYS = ["sentence_id", "document", "position", "word_index", "word"]
_DICTIONARY = pa.dictionary(pa.int32(), pa.string())
_TYPES = {"float16": pa.float16(), "float32": pa.float32()}


def as_stored(vectors: VectorArray, dtype: str, setting: str = "vectors.dtype") -> VectorArray:
    """Vectors in the type they are kept in, all of them finite; `setting` chooses that type."""
    with np.errstate(over="ignore", invalid="ignore"):
        stored = vectors.astype(dtype)
    if is_finite(stored):
        return stored
    if not is_finite(vectors):
        raise VectorsError("Vectors that are not finite (NaN or infinity) are not stored.")
    raise VectorsError(
        f"A vector has a number as large as {np.abs(vectors).max():.3g}, and {dtype} ends at "
        f"{np.finfo(dtype).max:,.0f}. Set {setting} = 'float32'."
    )


class ParquetWriter(ParquetOutput):
    """Writes one Parquet file, a row group at a time."""

    def __init__(self, path: Path, columns: Sequence[str], *, dim: int, dtype: str) -> None:
        self._columns, self._dtype = columns, dtype
        vector = pa.list_(pa.field("element", _TYPES[dtype], nullable=False), dim)
        schema = pa.schema(
            [
                pa.field("sentence_id", _DICTIONARY, nullable=False),
                pa.field("document", _DICTIONARY, nullable=False),
                pa.field("position", pa.int32(), nullable=False),
                pa.field("word_index", pa.int32(), nullable=False),
                pa.field("word", _DICTIONARY, nullable=False),
                *(pa.field(name, vector, nullable=False) for name in columns),
            ]
        )
        super().__init__(
            path,
            schema,
            compression=dict.fromkeys(_KEYS, "zstd"),
            use_dictionary=["sentence_id", "document", "word"],
            write_statistics=_KEYS,  # the least and the largest number of a vector say nothing
        )
        self._keys: list[list[Any]] = [[] for _ in _KEYS]
        self._vectors: list[VectorArray] = []

    def add(self, sentence: CorpusSentence, chosen: Sequence[int], vectors: VectorArray) -> None:
        """The vectors (L, P, D) of the P words chosen."""
        ids, documents, positions, indices, words = self._keys
        ids += [sentence.sentence_id] * len(chosen)
        documents += [sentence.document] * len(chosen)
        positions += [sentence.position] * len(chosen)
        indices += chosen
        words += [sentence.words[index] for index in chosen]
        self._vectors.append(as_stored(vectors, self._dtype))
        if len(documents) >= _ROW_GROUP:
            self.flush()

    def flush(self) -> None:
        """Write what was collected as row groups."""
        if not self._keys[0]:
            return
        ids, documents, positions, indices, words = self._keys
        arrays = [
            pa.array(ids, pa.string()).dictionary_encode(),
            pa.array(documents, pa.string()).dictionary_encode(),
            pa.array(positions, pa.int32()),
            pa.array(indices, pa.int32()),
            pa.array(words, pa.string()).dictionary_encode(),
        ]
        vectors = np.concatenate(self._vectors, axis=1)  # (L, words, D)
        for layer, kind in zip(vectors, self.schema.types[len(_KEYS) :], strict=True):
            arrays.append(pa.FixedSizeListArray.from_arrays(pa.array(layer.reshape(-1)), type=kind))
        self.write(arrays)
        self._keys = [[] for _ in _KEYS]
        self._vectors = []

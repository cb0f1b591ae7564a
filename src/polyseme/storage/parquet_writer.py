"""One Parquet file, written a row group at a time.

in   a schema, and the arrays of its columns, once for each row group
out  the file, complete when the block is left
"""

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq


class ParquetOutput:
    """An open file; `options` are those of `pq.ParquetWriter`.

    A writer that collects rows is one of these, and says in `flush` how they are written.
    """

    def __init__(self, path: Path, schema: Any, **options: Any) -> None:
        self.schema = schema
        path.parent.mkdir(parents=True, exist_ok=True)
        # A Python file, not a path: a full disk then comes as an OSError with its number.
        self._file = path.open("wb")
        self._writer = pq.ParquetWriter(self._file, schema, **options)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # Closed even after an error, and before its file: left open, the writer would write to
        # the closed file when it is deleted, which takes the whole process down.
        with self._file, self._writer:
            if kind is None:
                self.flush()

    def flush(self) -> None:
        """Write what was collected and not yet written; called at the end, but after an error."""

    def write(self, arrays: Sequence[Any], *, rows: int | None = None) -> None:
        """An array for each column of the schema: a row group, or several of so many rows."""
        table = pa.Table.from_arrays(arrays, schema=self.schema)
        self._writer.write_table(table, row_group_size=rows)

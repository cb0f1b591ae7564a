"""Parquet files of anyone, ours and others', in bounded memory.

A few bytes can stand for gigabytes: in the footer, in a page that is packed, in a dictionary that
many rows point at, in a run of equal values. Each is measured before it is unfolded.
"""

from polyseme.parquet.reader import ParquetReader, expand, read_batches, read_table

__all__ = ["ParquetReader", "expand", "read_batches", "read_table"]

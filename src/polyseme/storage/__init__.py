"""Files that are absent or complete, folders with a manifest, Parquet and weights of anyone."""

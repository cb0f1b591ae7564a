"""How a task uses a model: static, frozen or fine-tuned, and where its layers are inserted.

`embeddings.Embeddings` is what a task is built on: `dims` are the dimensions of its inputs,
`prepare` takes a data set, and for each batch it gets `features.TaskInputs`. Which transfer is
behind them, it never learns.
"""

from typing import Literal

Variant = Literal["none", "static", "frozen", "finetuned"]
"""What of a model a task is given, where the ways are compared."""

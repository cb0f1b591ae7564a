"""How a task uses a model: static, frozen or fine-tuned, and where its layers are inserted.

`embeddings.Embeddings` is what a task is built on: `dims` are the dimensions of its inputs,
`prepare` takes a data set, and for each batch it gets `features.TaskInputs`. Which transfer is
behind them, it never learns.
"""

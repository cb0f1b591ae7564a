"""How a task uses a model: static, frozen or fine-tuned, and where it is inserted.

`feed.Feed` is what a task is built on: `feed.widths` tell it how much comes, `feed.prepare` takes a
data set, and for each batch it gets a `fed.Fed`. Which transfer is behind it, it never learns.
"""

"""Corpus shards in, tensors out, each distinct word once.

    in   a `Corpus`, or sentences as lists of words
    out  `Batch`: indices of words, and for each distinct word its id and its characters

A word costs an encoder the same whether a batch holds it once or a hundred times.
"""

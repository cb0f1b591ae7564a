"""Uses of a word: found, described, grouped by meaning, named, compared.

    concordance   find uses in a corpus, read them line by line, export them
    features      what tells meanings apart, by a model
    index         the same for many words, kept on disk
    groups        uses that belong together, with names and a map
    annotation    what people decide: edits, labels, judged pairs
    change        one set of texts against another

Each may use those before it. Questions about a single use (`nearest`, `same`, `substitutes`), the
pages of `report` and the map of `use_map` are made of these.
"""

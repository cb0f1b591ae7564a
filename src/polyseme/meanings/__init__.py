"""Uses of a word: found, encoded, grouped by meaning, named, compared.

    concordance   find uses in a corpus, read them line by line, export them
    edits         what a user does to groups, as a log that can be applied again
    use_map       where uses lie on a map, and in which colour
    features      what tells meanings apart, by a model
    index         the same for many words, kept on disk
    groups        uses that belong together, with names
    labels        a user's own labels, learned for all uses
    change        one set of texts against another
    report        pages to keep or share

Each may use those before it. `nearest`, `same` and `substitutes` answer questions about one use.
"""

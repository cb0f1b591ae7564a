"""Uses of a word: found, described, grouped by meaning, named, compared."""

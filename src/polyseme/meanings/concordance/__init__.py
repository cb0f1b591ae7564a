"""Uses of a word in a corpus: found, sorted, counted, read line by line, exported."""

"""Uses of a word in, what they tell of its senses out: groups, names, change, labels, edits."""

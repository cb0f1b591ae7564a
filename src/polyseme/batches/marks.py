"""The ids that are no words of a text. They are the same in every lexicon."""

PADDING = 0
"""Fills up short sentences; no word at all."""
START = 1
"""<S>, before the first word of every row."""
END = 2
"""</S>, after each sentence."""
UNKNOWN = 3
"""Every word without an id of its own. Its spelling is kept."""
HIDDEN = 4
"""Stands where a word is hidden and to be guessed."""
FIRST_WORD = 5
"""The most frequent word of the corpus."""

WIDEST = 7
"""The widest filter that may run over a word's characters, in characters."""

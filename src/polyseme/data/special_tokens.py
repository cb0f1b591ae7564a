"""The ids that are no words of a text. They are the same in every vocabulary."""

PAD = 0
"""Fills up short sentences; no word at all."""
BOS = 1
"""<S>, before the first word of every row."""
EOS = 2
"""</S>, after each sentence."""
UNK = 3
"""Every word without an id of its own. Its characters are kept."""
MASK = 4
"""Stands where a word is hidden and to be predicted."""
FIRST_WORD = 5
"""The most frequent word of the corpus."""

MAX_FILTER_WIDTH = 7
"""The widest filter that may run over a word's characters, in characters."""

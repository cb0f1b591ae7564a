"""One file per verb: its settings, `run`, which does it, and `show`, which tells of it.

The first line of each file's docstring is the verb's line in `polyseme --help`; the rest, with
its examples, is the text of `polyseme VERB --help`. Nothing here prints: `cli.py` does.
"""

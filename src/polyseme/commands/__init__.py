"""One file per verb (a folder, if it has sub-commands): settings, `run`, and `show`.

The first line of each file's docstring is the verb's line in `polyseme --help`; the rest, with
its examples, is the text of `polyseme VERB --help`. Nothing here prints: `cli/` does.
"""

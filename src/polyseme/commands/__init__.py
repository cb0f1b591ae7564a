"""One file per verb: settings, `run` (a function per sub-command, if it has any), and `show`.

The first line of each file's docstring is the verb's line in `polyseme --help`; the rest, with
its examples, is the text of `polyseme VERB --help`; a sub-command's stand in the docstring of its
function. Nothing here prints: `cli/` does.
"""

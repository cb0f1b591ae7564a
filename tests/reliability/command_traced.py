"""The whole command line, to be traced once the modules of the command are there.

command_traced.py COMMAND ARGUMENTS
"""

import importlib
import sys

from polyseme.cli.app import main
from reliability.traced import announce

if __name__ == "__main__":
    for module in (f"commands.{sys.argv[1]}", "text.word_counts", "text.shards", "cli.terminal"):
        importlib.import_module(f"polyseme.{module}")
    announce()
    main()

"""The whole command line, to be traced once its modules are there."""

import importlib

from polyseme.cli import main
from reliability.traced import announce

if __name__ == "__main__":
    for module in ("commands.prepare", "text.vocabulary", "text.shards", "terminal"):
        importlib.import_module(f"polyseme.{module}")
    announce()
    main()

"""Lets `python -m polyseme` stand for the `polyseme` command."""

from polyseme.cli.app import main

if __name__ == "__main__":  # worker processes import this file again; they must not run it
    main()

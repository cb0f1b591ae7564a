"""Python processes of our own that do one thing and end, and what they imported with them."""

import json
import sys


def python_process(module: str, function: str, *arguments: str) -> list[str]:
    """The command of a process that calls a function of a module, and can import what this one can.

    Not `multiprocessing`: there a script that has no `if __name__ == "__main__"` would run again.
    """
    search = json.dumps([folder for folder in sys.path if folder])  # "" would be this folder
    start = (
        "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
        f"from {module} import {function}; {function}(*sys.argv[2:])"
    )
    return [sys.executable, "-I", "-c", start, search, *arguments]

"""Python processes of our own that do one thing and end, and what they imported with them."""

import json
import sys
from pathlib import Path


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


def limit_memory(num_bytes: int) -> None:
    """Let this process take so much more than it has now, on systems that can hold it to that."""
    if sys.platform != "linux":
        return  # macOS takes such a limit and does not keep it; Windows has none for oneself
    import resource

    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    _, allowed = resource.getrlimit(resource.RLIMIT_AS)
    most = pages * resource.getpagesize() + num_bytes
    most = most if allowed == resource.RLIM_INFINITY else min(most, allowed)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))

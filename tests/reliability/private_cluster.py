"""A private Ray cluster as we start it, kept until standard input ends.

    private_cluster.py closed|open

Open means without the switch that closes it, and without the check that would find out. It
prints, as JSON, its address, all it listens on, and its folder.
"""

import json
import sys
from pathlib import Path

import psutil

from polyseme.executors import cluster


def main() -> None:
    if sys.argv[1] == "open":
        cluster._LOOPBACK_ONLY = "NO_SUCH_SWITCH"
        cluster._check_closed = lambda ray: None
    with cluster._connected(None, workers=2) as ray:
        ray.get([ray.remote(lambda: 1).remote() for _ in range(4)])  # so that there are workers
        state = {
            "address": ray.get_runtime_context().gcs_address,
            "listening": listening(),
            "folder": str(Path(ray._private.worker._global_node.get_session_dir_path()).parent),
        }
        print(json.dumps(state), flush=True)
        sys.stdin.read()


def listening() -> list[tuple[str, str, int]]:
    """Process, address and port of all that waits for others."""
    me = psutil.Process()
    return [
        (process.name(), connection.laddr.ip, connection.laddr.port)
        for process in [me, *me.children(recursive=True)]
        for connection in process.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN or not connection.raddr
    ]


if __name__ == "__main__":
    main()

"""A private Ray cluster as we start it, kept until standard input ends.

    private_cluster.py closed|open

Open means without the switch that closes it, and without the check that would find out. It
prints, as JSON, its address and all it listens on.
"""

import json
import sys

import psutil

from polyseme.engines import RayConfig, cluster


def main() -> None:
    if sys.argv[1] == "open":
        cluster._LOOPBACK_ONLY = "NO_SUCH_SWITCH"
        cluster._check_closed = lambda ray: None
    ray = cluster._connect(RayConfig(workers=2))
    ray.get([ray.remote(lambda: 1).remote() for _ in range(4)])  # so that there are workers, too
    me = psutil.Process()
    listening = [
        (process.name(), connection.laddr.ip, connection.laddr.port)
        for process in [me, *me.children(recursive=True)]
        for connection in process.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN or not connection.raddr
    ]
    address = ray.get_runtime_context().gcs_address
    print(json.dumps({"address": address, "listening": listening}), flush=True)
    sys.stdin.read()
    ray.shutdown()


if __name__ == "__main__":
    main()

"""A Ray cluster of three nodes on this machine, led by lines on standard input.

    add        one more node
    remove     the oldest node that is not the head dies, without a farewell
    (the end)  all of it ends

After the start and after each line it prints, as JSON, its address and its raylets' process ids.
"""

import json
import sys

from ray.cluster_utils import Cluster

# The defaults need a quarter of a minute to notice that a node is dead.
QUICK_TO_NOTICE = {
    "health_check_initial_delay_ms": 1000,
    "health_check_period_ms": 500,
    "health_check_timeout_ms": 2000,
    "health_check_failure_threshold": 3,
}
MEMORY = 80 << 20  # bytes in each object store; ours hold next to nothing


def main() -> None:
    head = {
        "num_cpus": 0,
        "object_store_memory": MEMORY,
        "include_dashboard": False,
        "_system_config": QUICK_TO_NOTICE,
    }
    cluster = Cluster(initialize_head=True, head_node_args=head)
    nodes = [cluster.add_node(num_cpus=1, object_store_memory=MEMORY) for _ in range(2)]
    try:
        while True:
            raylets = [node.all_processes["raylet"][0].process.pid for node in nodes]
            print(json.dumps({"address": cluster.address, "raylets": raylets}), flush=True)
            match sys.stdin.readline().strip():
                case "add":
                    nodes.append(cluster.add_node(num_cpus=1, object_store_memory=MEMORY))
                case "remove":
                    cluster.remove_node(nodes.pop(0), allow_graceful=False)
                case _:
                    return
    finally:
        cluster.shutdown()  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main()

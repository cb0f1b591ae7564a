"""Which tests go together when several processes share them (`pytest -n 2`), and in which order.

Those of a file do, as fixtures are made for a file; so do all that start a cluster, as two clusters
would see each other's ports. What takes long is begun first: begun last, it would keep one process
busy while the others wait.

Groups are told by names alone: the process that shares out the tests knows nothing else of them.
"""

CLUSTER = {
    "tests/executors/test_cluster.py",
    "tests/serving/test_on_ray.py",
    "tests/reliability/test_ray_is_closed.py",
    "tests/reliability/test_kills.py::test_a_ray_run_comes_out_as_the_local_one_whoever_is_killed",
    "tests/reliability/test_index_kills.py::test_an_index_made_on_ray_is_the_same_whoever_is_killed",
    "tests/reliability/test_embedding_kills.py::test_vectors_made_on_ray_are_the_same_whoever_is_killed",
}
"""Files, and tests, that are marked so."""
APART = {"tests/docs/test_commands.py", "tests/docs/test_how_to_add.py"}
"""Files whose tests share no fixture, and take long: each goes by itself."""
FIRST = [
    "cluster",
    "tests/docs/test_commands.py",
    "tests/docs/test_how_to_add.py",
    "tests/journeys/test_every_command.py",
    "tests/docs/test_add_a_task_family.py",
    "tests/journeys/",
    "tests/training/test_processes.py",
    "tests/docs/",
    "tests/tasks/",
]
"""How groups begin, in the order in which they are begun; all others follow."""


def group_of(nodeid: str) -> str:
    """The group of a test."""
    file, _, test = nodeid.partition("::")
    if CLUSTER & {file, f"{file}::{test.partition('[')[0]}"}:
        return "cluster"
    return nodeid if file in APART else file


def turn_of(nodeid: str) -> int:
    """When a test's group is begun: that of 0 first."""
    group = group_of(nodeid)
    found = (turn for turn, beginning in enumerate(FIRST) if group.startswith(beginning))
    return next(found, len(FIRST))

"""Which tests go together when several processes share them (`pytest -n 2`), in which order, and
which are left to `make test-long`.

Those of a file do, as fixtures are made for a file; so do all that start a cluster, as two clusters
would see each other's ports. What takes long is begun first: begun last, it would keep one process
busy while the others wait.

Groups are told by names alone: the process that shares out the tests knows nothing else of them.
"""

CLUSTER = {
    "tests/executors/test_cluster.py",
    "tests/serving/test_on_ray.py",
    "tests/reliability/test_ray_is_closed.py",
    "tests/reliability/test_kills.py::test_what_is_made_on_ray_is_the_same_whoever_is_killed",
    "tests/reliability/test_kills.py::test_an_index_made_on_ray_is_the_same_whoever_is_killed",
    "tests/reliability/test_kills.py::test_ranges_sorted_on_ray_are_those_sorted_here",
}
"""Files, and tests, that are marked so."""
LONG = {
    *CLUSTER,
    "tests/docs/test_commands.py::test_commands_run_and_print_what_the_page_says",
    "tests/docs/test_commands.py::test_sections_on_the_classics_print_what_they_say",
    "tests/docs/test_how_to_add.py::test_the_steps_of_the_page_can_be_carried_out",
    "tests/docs/test_add_a_task_family.py",
    "tests/docs/test_notebook.py",
    "tests/docs/test_pages_on_meanings.py",
    "tests/docs/test_serving_page.py",
    "tests/embedding/test_bulk.py::test_one_worker_and_two_give_the_same_bytes",
    "tests/embedding/test_onnx.py::test_the_graph_gives_the_librarys_vectors",
    "tests/embedding/test_onnx.py::test_the_published_model_as_a_graph",
    "tests/embedding/test_pages.py",
    "tests/journeys/test_hf.py",
    "tests/meanings/test_periods.py::test_planted_shares_lie_in_nine_of_ten_intervals",
    "tests/explorer/test_browser.py",
    "tests/explorer/test_opening.py",
    "tests/explorer/test_no_network.py::test_search_groups_and_map_need_no_network_but_loopback",
    "tests/journeys/test_every_command.py::test_a_command_works_in_a_process_of_its_own",
    "tests/storage/test_store_faults.py",
    "tests/journeys/test_standard_streams.py::test_two_uses_are_compared_with_no_extra_but_torch",
    "tests/journeys/test_stores.py",
    "tests/tasks/test_tagger.py::test_a_task_tags_the_same_with_one_worker_or_two",
    "tests/encoders/kernels/test_build.py",
    "tests/training/test_processes.py::test_one_then_two_then_one_then_three_processes_learn_the_same",
    "tests/training/test_processes.py::test_processes_decide_alike_and_draw_the_chance_that_one_would",
    "tests/deploy/test_deploy.py::test_two_nodes_of_a_slurm_cluster_train_as_one_process_does",
    "tests/deploy/test_deploy.py::test_a_pod_serves_as_it_is_told_to_and_is_found_alive_and_ready",
    "tests/tasks/readers/test_real_sets.py",
}
"""Files, and tests, that are marked so: they walk through a whole page, browser or cluster, use
many processes, export many graphs, or read what others published. `make check` leaves them out;
`make test-long` runs them, and so does CI. What they walk through has smaller tests of its own in
`make check`."""
APART = {"tests/docs/test_commands.py", "tests/docs/test_how_to_add.py"}
"""Files whose tests share no fixture, and take long: each goes by itself."""
FIRST = [
    "cluster",
    "tests/reliability/test_any_call.py",
    "tests/reliability/test_serving.py",
    "tests/reliability/test_training.py",
    "tests/explorer/test_browser.py",
    "tests/docs/test_notebook.py",
    "tests/journeys/test_every_command.py",
    "tests/storage/test_store_faults.py",
    "tests/docs/test_commands.py",
    "tests/docs/test_how_to_add.py",
    "tests/docs/test_add_a_task_family.py",
    "tests/journeys/",
    "tests/training/test_processes.py",
    "tests/docs/",
    "tests/tasks/",
]
"""How groups begin, in the order in which they are begun; all others follow."""


def group_of(nodeid: str) -> str:
    """The group of a test."""
    if is_in(CLUSTER, nodeid):
        return "cluster"
    file = nodeid.partition("::")[0]
    return nodeid if file in APART else file


def is_in(names: set[str], nodeid: str) -> bool:
    """Whether a test, or its file, is one of these."""
    file, _, test = nodeid.partition("::")
    return bool(names & {file, f"{file}::{test.partition('[')[0]}"})


def turn_of(nodeid: str) -> int:
    """When a test's group is begun: that of 0 first."""
    group = group_of(nodeid)
    found = (turn for turn, beginning in enumerate(FIRST) if group.startswith(beginning))
    return next(found, len(FIRST))

"""The number of threads, by a machine that is made up: no clock is asked."""

from collections.abc import Callable

from polyseme.training.threads import ThreadChoice

WORDS = 1000


def seconds_alone(threads: int) -> float:
    return 1.0 / threads + 0.1


def seconds_in_company(threads: int) -> float:
    """Another program has one core: threads wait for the one that shares it."""
    return 1.0 if threads == 1 else 5.0


def run(choice: ThreadChoice, steps: int, seconds: Callable[[int], float]) -> list[int]:
    """The numbers that the steps were done with."""
    numbers = []
    for _ in range(steps):
        numbers.append(choice.number)
        choice.note(seconds(choice.number), WORDS)
    return numbers


def test_alone_all_threads_are_used_once_all_were_tried() -> None:
    numbers = run(ThreadChoice(4, is_adaptive=True), 300, seconds_alone)
    assert numbers[:6] == [4, 4, 2, 2, 1, 1]
    assert set(numbers[6:]) == {4}


def test_a_program_that_comes_costs_a_few_steps_and_then_one_core_is_left_to_it() -> None:
    choice = ThreadChoice(2, is_adaptive=True)
    run(choice, 50, seconds_alone)
    numbers = run(choice, 200, seconds_in_company)
    assert numbers.count(2) <= 12
    assert numbers[-1] == 1


def test_when_it_goes_all_threads_are_used_again() -> None:
    choice = ThreadChoice(2, is_adaptive=True)
    run(choice, 20, seconds_in_company)
    assert choice.number == 1
    assert run(choice, 300, seconds_alone)[-1] == 2


def test_where_all_is_slow_alike_nothing_is_tried_again_and_again() -> None:
    choice = ThreadChoice(2, is_adaptive=True)
    run(choice, 50, seconds_alone)
    numbers = run(choice, 1000, lambda threads: 3 * seconds_alone(threads))
    assert numbers.count(1) == 2


def test_unless_it_is_adaptive_the_number_stays() -> None:
    choice = ThreadChoice(4, is_adaptive=False)
    run(choice, 20, seconds_alone)
    assert run(choice, 50, seconds_in_company) == [4] * 50


def test_with_one_core_there_is_nothing_to_try() -> None:
    assert run(ThreadChoice(1, is_adaptive=True), 50, seconds_in_company) == [1] * 50

"""What is told of rows that gave no example."""

from polyseme.tasks.account import Account
from polyseme.text.records import Rejected


def test_counts_add_up_and_the_summary_says_why() -> None:
    account = Account()
    account.keep(1)
    account.keep(3)
    account.reject(Rejected(7, "no-label", "some text", "in column 'label'"), "train.tsv")
    account.reject(Rejected(9, "no-label", ""), "train.tsv")
    account.reject(Rejected(9, "no-text", ""), "train.tsv")
    assert account.read == account.kept + account.set_aside == 5
    assert account.summary() == "4 examples; 3 of 5 rows set aside: 2 no-label, 1 no-text"
    assert account.faults[0] == "train.tsv, line 7: no-label (in column 'label'): 'some text'"


def test_nothing_is_said_of_faults_where_there_are_none() -> None:
    account = Account()
    account.keep(1)
    assert account.summary() == "1 examples"


def test_a_file_full_of_faults_fills_neither_memory_nor_screen() -> None:
    account = Account()
    for line in range(1000):
        account.reject(Rejected(line, "no-text", "x" * 1000), "train.tsv")
    assert account.set_aside == 1000
    assert sum(map(len, account.faults)) < 4000

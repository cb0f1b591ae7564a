import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from polyseme.encoders.directions import reverse_sequences

LENGTHS = st.lists(st.integers(1, 7), min_size=1, max_size=5)


@given(lengths=LENGTHS)
@settings(max_examples=50, derandomize=True, deadline=None)
def test_a_turned_sentence_stands_back_to_front_and_padding_stays(lengths: list[int]) -> None:
    vectors = torch.randn(len(lengths), 8, 3)
    turned = reverse_sequences(vectors, torch.tensor(lengths))
    for row, length in enumerate(lengths):
        expected = [*reversed(vectors[row, :length].tolist()), *vectors[row, length:].tolist()]
        assert turned[row].tolist() == expected


@given(lengths=LENGTHS)
@settings(max_examples=50, derandomize=True, deadline=None)
def test_turning_twice_changes_nothing(lengths: list[int]) -> None:
    vectors = torch.randn(len(lengths), 7, 2)
    twice = reverse_sequences(
        reverse_sequences(vectors, torch.tensor(lengths)), torch.tensor(lengths)
    )
    assert torch.equal(twice, vectors)

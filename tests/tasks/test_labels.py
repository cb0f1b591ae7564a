"""Labels, their numbers, and the network's own scheme."""

import pytest

from polyseme.errors import InputError
from polyseme.tasks.examples import Classified, Tagged
from polyseme.tasks.labels import Labels, due
from polyseme.tasks.networks.classification import ClassificationConfig
from polyseme.tasks.networks.tagging import TaggingConfig


def test_spans_of_any_scheme_are_written_in_the_network_s_own() -> None:
    iob1 = Tagged(("John", "Smith", "Paris"), ("I-PER", "I-PER", "I-LOC"))
    assert due(iob1, TaggingConfig()) == ("B-PER", "I-PER", "B-LOC")
    assert due(iob1, TaggingConfig(scheme="bmes")) == ("B-PER", "E-PER", "S-LOC")


def test_labels_that_mark_no_spans_stay_as_they_are() -> None:
    assert due(Tagged(("go",), ("VERB",)), TaggingConfig(scheme="none")) == ("VERB",)
    assert due(Classified(("go",), "B-x"), ClassificationConfig()) == ("B-x",)


def test_names_and_numbers_are_each_other_s_reverse() -> None:
    examples = [Classified(("a",), label) for label in ("good", "bad", "good")]
    labels = Labels.of(examples, ClassificationConfig())
    assert labels.names == ("bad", "good")
    assert labels.encode(["good", "bad"]).tolist() == [1, 0]
    assert labels.decode([1, 0]) == ("good", "bad")


def test_a_single_label_is_nothing_to_learn() -> None:
    with pytest.raises(InputError, match=r"nothing to tell apart.*good"):
        Labels.of([Classified(("a",), "good")], ClassificationConfig())

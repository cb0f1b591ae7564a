"""Labels of words: the network's own scheme, and its rules."""

import time

import pytest
import torch
from slack import allowed

from polyseme.errors import InputError
from polyseme.tasks.embeddings.features import InputDims
from polyseme.tasks.families.labels import ContextConfig, Labels
from polyseme.tasks.families.tagging import MAX_TAGS, Tagged, Tagging, TaggingConfig
from polyseme.tasks.spans import Scheme
from tasks.rules import is_allowed

LABELS = ("B-x", "B-y", "I-x", "I-y", "O")


def test_spans_of_any_scheme_are_written_in_the_network_s_own() -> None:
    iob1 = Tagged(("John", "Smith", "Paris"), ("I-PER", "I-PER", "I-LOC"))
    assert Tagging(TaggingConfig()).gold(iob1) == ("B-PER", "I-PER", "B-LOC")
    assert Tagging(TaggingConfig(scheme="bmes")).gold(iob1) == ("B-PER", "E-PER", "S-LOC")
    assert Tagging(TaggingConfig()).fit([iob1]).labels.names == ("B-LOC", "B-PER", "I-PER")


def test_kinds_that_are_given_are_not_counted() -> None:
    example = Tagged(("she", "gave"), ("B-ARG0", "B-V"), 1)
    family = Tagging(TaggingConfig(ignore_labels=("V",))).fit([example])
    predicted = [family.predicted(example, [0, 1])]
    assert family.score([example], predicted).labels == ("ARG0",)
    assert predicted[0].as_json() == {
        "words": ["she", "gave"],
        "labels": ["B-ARG0", "B-V"],
        "target_index": 1,
    }


def test_an_untrained_tagger_never_breaks_the_rules() -> None:
    torch.manual_seed(1)
    schemes: dict[Scheme, tuple[str, ...]] = {
        "bio": LABELS,
        "bioes": ("B-x", "B-y", "E-x", "E-y", "I-x", "I-y", "O", "S-x", "S-y"),
    }
    for scheme, names in schemes.items():
        config = TaggingConfig(scheme=scheme, context=ContextConfig(dim=4))
        network = Tagging(config, labels=Labels(names)).network(InputDims(3))
        scores = 5 * torch.randn(300, 6, len(names))
        mask = torch.arange(6) < torch.randint(1, 7, (300, 1))
        rows = network.crf.decode(scores, mask)[0].tolist()
        for row, length in zip(rows, mask.sum(1), strict=True):
            assert is_allowed([names[number] for number in row[:length]], scheme)
        # Without rules the same scores break them.
        loose = config.model_copy(update={"scheme": "none"})
        free = Tagging(loose, labels=Labels(names)).network(InputDims(3))
        found = [[names[n] for n in row] for row in free.crf.decode(scores, mask)[0].tolist()]
        assert not all(is_allowed(row, scheme) for row in found)


def test_an_outline_of_many_labels_is_built_in_no_time() -> None:
    family = Tagging(TaggingConfig(), labels=Labels(tuple(f"B-{n}" for n in range(MAX_TAGS))))
    with torch.device("meta"):
        family.network(InputDims(3))  # torch loads what it needs for this
        seconds = []
        for _ in range(3):  # the best: a collection of garbage may fall into any of them
            begin = time.process_time()
            network = family.network(InputDims(3))
            seconds.append(time.process_time() - begin)
    assert min(seconds) < allowed(1)  # all pairs of labels would take ten seconds
    assert network.crf.pair.shape == (MAX_TAGS, MAX_TAGS)


def test_more_labels_than_pairs_of_them_can_be_kept_are_refused() -> None:
    family = Tagging(TaggingConfig(scheme="none"))
    names = [f"label{number}" for number in range(MAX_TAGS + 1)]
    with pytest.raises(InputError, match=r"4,097 labels.*2 to 4,096"):
        family.restore({"labels": names})
    assert family.restore({"labels": names[1:]}).labels.names == tuple(names[1:])


def test_labels_without_a_kind_divide_characters_into_words() -> None:
    example = Tagged(tuple("扬帆远东方人"), ("B", "E", "S", "B", "M", "E"))
    family = Tagging(TaggingConfig(scheme="bmes")).fit([example])
    assert family.labels.names == ("B", "E", "M", "S")
    found = family.predicted(example, [3, 0, 1, 0, 2, 1])
    assert found.as_json() == {
        "words": ["扬", "帆", "远", "东", "方", "人"],
        "labels": ["S", "B", "E", "B", "M", "E"],
        "segments": ["扬", "帆远", "东方人"],
    }
    assert str(found.__rich__()) == "扬 帆远 东方人"
    assert "帆远</span>" in found._repr_html_()
    # One of three words is right: both ends count.
    assert family.score([example], [found]).value("f1") == pytest.approx(1 / 3)


def test_names_are_no_segments() -> None:
    example = Tagged(("John", "Smith"), ("B-PER", "I-PER"))
    family = Tagging(TaggingConfig()).fit([example])
    assert "segments" not in family.predicted(example, [0, 1]).as_json()
    unkind = Tagged(("a", "b"), ("B", "O"))
    family = Tagging(TaggingConfig()).fit([unkind])
    assert "segments" not in family.predicted(unkind, [0, 1]).as_json()

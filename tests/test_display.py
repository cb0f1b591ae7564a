"""What notebooks are given: text of users is text, whatever is in it."""

from html.parser import HTMLParser

import numpy as np
import pytest

from polyseme.display import counted, html_table, html_words, sentence, summary
from polyseme.embedding.word_embedder import EmbeddedSentence
from polyseme.pretraining.evaluation import DirectionScore, Score
from polyseme.tasks.families.labels import PredictedLabel
from polyseme.tasks.families.tagging import PredictedTags

HOSTILE = "<script>alert(1)</script><img src=x onerror='alert(2)'>\x1b[31m\u202e\"&"
TAGS = {"div", "b", "table", "thead", "tbody", "tr", "th", "td", "span", "sub"}


class Tags(HTMLParser):
    """The tags, attributes and text a browser would see."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """One that opens."""
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        """Text between tags."""
        self.text += data


SHOWN = {
    "table": html_table(HOSTILE, [(HOSTILE, 1, 0.5)], (HOSTILE, "n", "x")),
    "words": html_words([(HOSTILE, HOSTILE, "lavender")]),
    "embedded": EmbeddedSentence((HOSTILE,), np.ones((2, 1, 3), np.float32), 0)._repr_html_(),
    "score": Score((HOSTILE,), {"forward": DirectionScore((-1.0,), -2.0)})._repr_html_(),
    "tagged": PredictedTags((HOSTILE,), (f"B-{HOSTILE}",))._repr_html_(),
    "classified": PredictedLabel((HOSTILE,), HOSTILE)._repr_html_(),
}


@pytest.mark.parametrize("html", SHOWN.values(), ids=SHOWN)
def test_no_markup_of_a_user_is_obeyed(html: str) -> None:
    seen = Tags(html)
    assert seen.tags <= TAGS
    assert seen.attributes <= {"style"}
    assert "<script>alert(1)</script>" in seen.text, "it is shown as it is"
    assert "\\x1b[31m\\u202e" in seen.text
    assert not set("\x1b\u202e") & set(html)


def test_markup_that_is_not_escaped_would_be_noticed() -> None:
    assert "script" in Tags(f"<div>{HOSTILE}</div>").tags


def test_a_line_is_one_line_without_control_characters() -> None:
    line = summary("Thing", HOSTILE, "", "a\nb")
    assert line.isprintable()
    assert line.endswith("a\\nb>")


def test_a_long_sentence_is_shortened() -> None:
    assert sentence(["word"] * 3) == "word word word"
    assert len(sentence(["word"] * 100)) == 60


def test_one_is_told_in_the_singular() -> None:
    assert [counted(number, "use") for number in (0, 1, 2, 1200)] == [
        "0 uses", "1 use", "2 uses", "1,200 uses",
    ]  # fmt: skip

r"""Ask whether a word means the same in two sentences.

Mark the word in each with asterisks, or name it with --word. A similarity is told. With pairs that
people judged (--pairs), a probability, too, and how often such answers were right.

Examples:

  polyseme same "He sat on the *bank* of the river." "The *bank* raised its rates." \
      --model models/en-mini

  polyseme same "She *plays* chess." "A *play* by Ibsen." --model models/en-mini \
      --pairs wic.jsonl
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from rich.console import Group, RenderableType

from polyseme.config import Settings
from polyseme.errors import ConfigError
from polyseme.printable import PrintableText
from polyseme.progress import NullProgress, Progress
from polyseme.tables import JsonLines

if TYPE_CHECKING:
    from polyseme.meanings.same import SameMeaning


class SameConfig(Settings):
    """Which two uses, by which model."""

    arguments: ClassVar[tuple[str, ...]] = ("inputs",)

    inputs: tuple[str, ...]
    """Two sentences, each quoted, one word of each between asterisks."""
    model: str
    """The model that describes the uses: a folder, or hf:FOLDER for one of Hugging Face."""
    word: str = ""
    """The word that is meant, where none is marked."""
    pairs: Path | None = None
    """Pairs that people judged, to learn from: .jsonl, .tsv or .csv with sentence1, sentence2 and
    label (true or false)."""
    tokenizer_from: str | None = None
    """How sentences are split into words, if the model does not say: as for a language (en, zh), or
    for the model or the corpus in a folder."""
    json_: bool = False
    """Print one JSON object."""


@dataclass(frozen=True)
class SameResult:
    """What was found."""

    found: "SameMeaning"
    config: SameConfig
    num_left_out: int
    """Judged pairs that could not be used."""


def run(config: SameConfig, progress: Progress | None = None) -> SameResult:
    """Describe both uses, and compare them."""
    from polyseme.embedding.loading import load_embedder
    from polyseme.meanings.features import UseDescriber
    from polyseme.meanings.judged_pairs import read_pairs
    from polyseme.meanings.marked_use import read_marked
    from polyseme.meanings.same import compare_uses, learn_same

    progress = progress or NullProgress()
    if len(config.inputs) != 2:
        raise ConfigError(f"Two sentences are compared; {len(config.inputs)} were given.")
    judged, unread = ([], 0) if config.pairs is None else read_pairs(config.pairs)
    describer = UseDescriber(load_embedder(config.model, tokenizer_from=config.tokenizer_from))
    first, second = (read_marked(describer.embedder, text, config.word) for text in config.inputs)
    classifier = None
    if judged:
        progress.start("Learning from pairs", 2 * len(judged))
        classifier, not_found = learn_same(describer, judged, progress.update)
        unread += not_found
    return SameResult(compare_uses(describer, first, second, classifier), config, unread)


def show(result: SameResult) -> RenderableType:
    """The similarity, and what the judged pairs say."""
    found = result.found
    if result.config.json_:
        return JsonLines([found.to_json()])
    views = ", ".join(f"{name} {value:.2f}" for name, value in found.views.items())
    parts: list[RenderableType] = [PrintableText(f"Similarity {found.similarity:.2f} ({views}).")]
    if found.probability is None:
        parts.append(
            PrintableText(
                "What is alike enough depends on how finely you tell senses apart: give pairs that "
                "were judged with --pairs for a probability."
            )
        )
    else:
        said = "the same" if found.is_same else "not the same"
        sure = f"probability of the same meaning {found.probability:.0%}"
        parts.append(PrintableText(f"Likely {said}: {sure}.", "bold"))
        parts.append(
            PrintableText(
                f"Learned from {found.num_pairs:,} pairs; of pairs left out in turn, "
                f"{found.accuracy:.0%} were told right (always one answer: {found.majority:.0%})."
            )
        )
    if result.num_left_out:
        parts.append(PrintableText(f"{result.num_left_out:,} pairs could not be used.", "yellow"))
    return Group(*parts)

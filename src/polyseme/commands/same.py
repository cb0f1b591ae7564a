r"""Decide whether a word has the same meaning in two sentences (WiC).

Mark the word in each sentence with asterisks, or name it with --word. Prints a similarity. With
human-judged pairs (--pairs), also prints a probability, and how often such answers are right.

Examples:

  polyseme same "He sat on the *bank* of the river." "The *bank* raised its rates." \
      --model models/en-mini

  polyseme same "She *plays* chess." "A *play* by Ibsen." --model models/en-mini \
      --pairs wic.jsonl

  cat pairs.tsv | polyseme same - --model models/en-mini --json
"""

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from rich.console import Group, RenderableType

from polyseme.commands import Result
from polyseme.config import Settings
from polyseme.display import PrintableText
from polyseme.embedding.settings import ModelName
from polyseme.errors import ConfigError, InputError
from polyseme.progress import SILENT, Progress
from polyseme.storage.installed import chosen_model
from polyseme.text.streams import STANDARD_INPUT, pairs_of_lines

if TYPE_CHECKING:
    from polyseme.embedding.word_embedder import WordEmbedder
    from polyseme.meanings.concordance.uses import MarkedUse
    from polyseme.meanings.same import SameMeaning


class SameConfig(Settings):
    """Which two uses, by which model."""

    arguments: ClassVar[tuple[str, ...]] = ("inputs",)

    inputs: tuple[str, ...]
    """Two sentences, each quoted, one word of each between asterisks; - reads pairs from standard
    input, one per line, with a tab between the sentences."""
    model: ModelName = None
    word: str = ""
    """The word, if none is marked."""
    pairs: Path | None = None
    """Pairs that people judged, to learn from: .jsonl, .tsv or .csv with sentence1, sentence2 and
    label (true or false)."""
    tokenizer_from: str | None = None
    """Tokenization of sentences, if the model does not define it: that of a language (en, zh), or
    of the model or the corpus in a folder."""


def run(config: SameConfig, progress: Progress = SILENT) -> "Result[list[SameMeaning], SameConfig]":
    """Describe both uses of each pair, and compare them."""
    from polyseme.embedding.loading import load_embedder
    from polyseme.meanings.features.use_encoder import ModelUseEncoder
    from polyseme.meanings.same import compare_uses, learn_same, read_pairs

    texts = _texts(config)
    judged, unread = ([], 0) if config.pairs is None else read_pairs(config.pairs)
    both = [text for pair in texts.values() for text in pair]
    model = chosen_model(config.model, both, progress)
    encoder = ModelUseEncoder(load_embedder(model, tokenizer_from=config.tokenizer_from))
    pairs = [_read(encoder.embedder, pair, line, config.word) for line, pair in texts.items()]
    classifier = None
    if judged:
        progress.start("Learning from pairs", 2 * len(judged))
        classifier, not_found = learn_same(encoder, judged, progress.update)
        unread += not_found
    progress.start("Comparing uses", 2 * len(pairs))
    notes = (f"{unread:,} pairs could not be used.",) if unread else ()
    return Result(compare_uses(encoder, pairs, classifier, progress.update), config, notes=notes)


def _texts(config: SameConfig) -> dict[int, tuple[str, str]]:
    """Two sentences by the number of their line, which is 0 if they were given as arguments."""
    if config.inputs == (STANDARD_INPUT,):
        return pairs_of_lines()
    if len(config.inputs) != 2 or STANDARD_INPUT in config.inputs:
        raise ConfigError(
            f"Two sentences are compared, or - alone for pairs on standard input; "
            f"{len(config.inputs)} were given."
        )
    return {0: (config.inputs[0], config.inputs[1])}


def _read(
    embedder: "WordEmbedder", pair: tuple[str, str], line: int, word: str
) -> "tuple[MarkedUse, MarkedUse]":
    from polyseme.meanings.concordance.uses import read_marked

    try:
        return read_marked(embedder, pair[0], word), read_marked(embedder, pair[1], word)
    except InputError as error:
        if not line:
            raise
        raise InputError(f"Line {line} of standard input: {error}") from error


def show(result: "Result[list[SameMeaning], SameConfig]") -> RenderableType:
    """A line for each pair, and what the judged pairs say."""
    parts: list[RenderableType] = [*map(_line, result.found)]
    first = result.found[0]
    if first.probability is None:
        parts.append(
            "How similar is similar enough depends on how finely you distinguish senses: give "
            "judged pairs with --pairs to get a probability."
        )
    else:
        parts.append(
            f"Trained on {first.num_pairs:,} pairs; cross-validated accuracy "
            f"{first.accuracy:.0%} (majority baseline: {first.majority:.0%})."
        )
    return Group(*parts, *(PrintableText(note, "yellow") for note in result.notes))


def _line(found: "SameMeaning") -> PrintableText:
    views = ", ".join(f"{name} {value:.2f}" for name, value in found.views.items())
    line = PrintableText(f"Similarity {found.similarity:.2f} ({views}).")
    if found.probability is not None:
        said = "the same" if found.is_same else "not the same"
        sure = f"probability of the same meaning {found.probability:.0%}"
        line.append(f" Likely {said}: {sure}.", "bold")
    return line

r"""Find the uses of a word that are nearest in meaning to its use in one sentence.

Mark the word with asterisks, or name it with --word. Also shows the word's static nearest
neighbours (words near it without context, which mix all its meanings) and, if the corpus has them
(`prepare --word-attributes upos`), the parts of speech of the uses.

Examples:

  polyseme nearest "Chico Ruiz made a spectacular *play* on the grounder." \
      --in corpus/en --model models/en-mini

  polyseme nearest "They sat on the *bank*." --in corpus/en \
      --model models/en-mini --index index/en --top 20

  cat sentences.txt | polyseme nearest - --word bank --in corpus/en \
      --model models/en-mini --json
"""

import time
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field
from rich.console import Group, RenderableType

from polyseme.commands import Result
from polyseme.commands.uses import UseLines
from polyseme.config import OptionalFolder, Settings
from polyseme.display import PrintableText, counted, on_one_line
from polyseme.embedding.settings import ModelName
from polyseme.errors import ConfigError
from polyseme.meanings.settings import FindConfig, out_help
from polyseme.progress import SILENT, Progress, duration
from polyseme.text.streams import texts_of

if TYPE_CHECKING:
    from polyseme.meanings.concordance.search import Query
    from polyseme.meanings.concordance.uses import MarkedUse
    from polyseme.meanings.features.use_encoder import ModelUseEncoder
    from polyseme.meanings.index.use_index import UseSource
    from polyseme.meanings.nearest import Nearest
    from polyseme.text.corpus import Corpus


class NearestConfig(Settings):
    """Which use, where to look for similar ones, by which model."""

    arguments: ClassVar[tuple[str, ...]] = ("inputs",)

    inputs: tuple[str, ...]
    """Sentences, each quoted, one word of each between asterisks; - reads them from standard input,
    one per line."""
    find: FindConfig
    """What to look for; without --word, the word that is marked."""
    model: ModelName = None
    index: OptionalFolder = None
    """Read the uses from this index (`polyseme index`) instead of embedding them."""
    top: int = Field(10, ge=1, le=10_000)
    """How many uses, and how many static neighbours."""
    seed: int = 1
    """Random seed of the sample if there are very many uses."""
    out: Path | None = Field(
        None, description=out_help("For one sentence: write the uses to this file")
    )


def run(
    config: NearestConfig, progress: Progress = SILENT
) -> "Result[list[Nearest], NearestConfig]":
    """Describe each use, hold it against all others of its word."""
    from polyseme.meanings.concordance.export import check_format, write_table
    from polyseme.meanings.concordance.uses import read_marked
    from polyseme.meanings.index.use_index import load_encoder
    from polyseme.storage.installed import default_model
    from polyseme.text.corpus import Corpus

    began = time.monotonic()
    texts = texts_of(config.inputs)
    if config.out is not None:
        check_format(config.out)
        if len(texts) != 1:
            raise ConfigError(f"--out is for one sentence, not for {len(texts)}: use --json.")
    corpus = Corpus.open(config.find.corpus)
    encoder = load_encoder(config.model or default_model(corpus.config.language), corpus)
    marked = [read_marked(encoder.embedder, text, config.find.word or "") for text in texts]
    found = _search(marked, encoder, corpus, config, progress)
    if config.out is not None:
        write_table(found[0].table(), config.out)
    return Result(found, config, time.monotonic() - began)


def _search(
    marked: "list[MarkedUse]",
    encoder: "ModelUseEncoder",
    corpus: "Corpus",
    config: NearestConfig,
    progress: Progress,
) -> "list[Nearest]":
    """In the order given; the uses of a word are found and described once for all its sentences."""
    from polyseme.meanings.concordance.search import Query
    from polyseme.meanings.nearest import nearest_to

    find = config.find
    named = find.query if find.word or find.forms or find.regex else None
    numbers: dict[Query, list[int]] = {}
    for number, use in enumerate(marked):
        query = named or Query.of(use.form, case_sensitive=find.case_sensitive)
        numbers.setdefault(query, []).append(number)
    found: dict[int, Nearest] = {}
    for query, own in numbers.items():
        nearest = nearest_to(
            [marked[number] for number in own],
            encoder,
            _source(query, encoder, corpus, config),
            number=config.top,
            seed=config.seed,
            progress=progress,
        )
        found |= zip(own, nearest, strict=True)
    return [found[number] for number in range(len(marked))]


def _source(
    query: "Query", encoder: "ModelUseEncoder", corpus: "Corpus", config: NearestConfig
) -> "UseSource":
    from polyseme.meanings.concordance.uses import find_uses
    from polyseme.meanings.index.use_index import UseSource, find_in_index

    where = config.find.where
    if config.index is None:
        return UseSource(find_uses(corpus, query, where=where), encoder)
    return find_in_index(config.index, corpus, query, where=where, model=config.model)


def show(result: "Result[list[Nearest], NearestConfig]") -> RenderableType:
    """For each sentence the uses, then the static neighbours."""
    found, config = result.found, result.config
    parts = [part for each in found for part in _parts(each, with_sentence=len(found) > 1)]
    if config.out is not None:
        parts.append(on_one_line(f"{counted(len(found[0].uses), 'use')} written to {config.out}."))
    return Group(*parts, f"Took {duration(result.seconds)}.")


def _parts(found: "Nearest", *, with_sentence: bool) -> list[RenderableType]:
    sentence = [PrintableText(" ".join(found.use.words), "bold")] if with_sentence else []
    parts: list[RenderableType] = [
        *sentence,
        f"The nearest of {found.num_searched:,} uses, the most similar first:",
        UseLines(found.uses),
    ]
    if found.similarities:
        first, last = found.similarities[0], found.similarities[-1]
        parts.append(f"Similarity {first:.2f} to {last:.2f}.")
    if found.tags:
        shares = ", ".join(f"{share:.0%} {tag}" for tag, share in found.tag_shares.items())
        parts.append(f"Parts of speech: {shares}.")
    if found.static:
        words = " ".join(word for word, _ in found.static)
        parts.append(f"Static neighbours of {found.use.form!r}: {words}")
    return [*parts, *(PrintableText(note, "yellow") for note in found.notes)]

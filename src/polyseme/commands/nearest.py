r"""Find the uses of a word that mean what it means in one sentence.

Mark the word with asterisks, or name it with --word. Beside the uses stand the word's static
neighbours: the words nearest to it without any sentence, which mix all its meanings. With the
CoNLL-U file the corpus was prepared from (--tags), the parts of speech of the uses are told.

Examples:

  polyseme nearest "Chico Ruiz made a spectacular *play* on the grounder." \
      --in corpus/en --model models/en-mini

  polyseme nearest "They sat on the *bank*." --in corpus/en \
      --model models/en-mini --index index/en --number 20
"""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field
from rich.console import Group, RenderableType

from polyseme.commands.uses import UseLines
from polyseme.config import Settings
from polyseme.meanings.settings import FindConfig
from polyseme.printable import PrintableText
from polyseme.progress import NullProgress, Progress, duration
from polyseme.tables import JsonLines, on_one_line

if TYPE_CHECKING:
    from polyseme.meanings.nearest import Nearest


class NearestConfig(Settings):
    """Which use, where its like are looked for, by which model."""

    arguments: ClassVar[tuple[str, ...]] = ("text",)

    text: str
    """The sentence, quoted, one word of it between asterisks."""
    find: FindConfig
    """What to look for; without --word, the word that is marked."""
    model: str
    """The model that describes the uses: a folder, or hf:FOLDER for one of Hugging Face."""
    index: Path | None = None
    """Read the uses from this index (`polyseme index`) instead of embedding them."""
    number: int = Field(10, ge=1, le=10_000)
    """How many uses, and how many static neighbours."""
    tags: Path | None = None
    """The CoNLL-U file that the corpus was prepared from, for parts of speech."""
    seed: int = 1
    """Of the sample that is taken of very many uses."""
    out: Path | None = None
    """Write the uses into this file: .csv, .tsv or .xlsx."""
    json_: bool = False
    """Print one JSON object instead of lines."""


@dataclass(frozen=True)
class NearestResult:
    """What was found, and how long it took."""

    found: "Nearest"
    config: NearestConfig
    seconds: float


def run(config: NearestConfig, progress: Progress | None = None) -> NearestResult:
    """Describe the use, hold it against all others."""
    from polyseme.meanings.export import check_format, write_uses
    from polyseme.meanings.marked_use import read_marked
    from polyseme.meanings.nearest import nearest_to
    from polyseme.meanings.query import Query
    from polyseme.meanings.sources import UseSource, find_in_index, load_describer
    from polyseme.meanings.uses import find_uses
    from polyseme.text.corpus import Corpus

    began = time.monotonic()
    if config.out is not None:
        check_format(config.out)
    corpus, find = Corpus.open(config.find.in_), config.find
    describer = load_describer(config.model, corpus)
    use = read_marked(describer.embedder, config.text, find.word or "")
    named = find.word or find.forms or find.regex
    query = find.query if named else Query.of(use.form, case_sensitive=find.case_sensitive)
    if config.index is None:
        source = UseSource(find_uses(corpus, query, where=find.where), describer)
    else:
        source = find_in_index(config.index, corpus, query, where=find.where, model=config.model)
    found = nearest_to(
        use,
        describer,
        source,
        number=config.number,
        tags=config.tags,
        seed=config.seed,
        progress=progress or NullProgress(),
    )
    if config.out is not None:
        write_uses(found.table(), config.out)
    return NearestResult(found, config, time.monotonic() - began)


def show(result: NearestResult) -> RenderableType:
    """The uses, then the static neighbours."""
    found, config = result.found, result.config
    if config.json_:
        return JsonLines([found.to_json()])
    parts: list[RenderableType] = [
        PrintableText(f"The nearest of {found.num_searched:,} uses, the most alike first:"),
        UseLines(found.uses),
    ]
    if found.similarities:
        first, last = found.similarities[0], found.similarities[-1]
        parts.append(PrintableText(f"Similarity {first:.2f} to {last:.2f}."))
    if found.tags:
        shares = ", ".join(f"{share:.0%} {tag}" for tag, share in found.tag_shares.items())
        parts.append(PrintableText(f"Parts of speech: {shares}."))
    if found.static:
        words = " ".join(word for word, _ in found.static)
        parts.append(PrintableText(f"Static neighbours of {found.use.form!r}: {words}"))
    parts += [PrintableText(note, "yellow") for note in found.notes]
    if config.out is not None:
        parts.append(on_one_line(f"{len(found.uses):,} uses written to {config.out}."))
    parts.append(PrintableText(f"Took {duration(result.seconds)}."))
    return Group(*parts)

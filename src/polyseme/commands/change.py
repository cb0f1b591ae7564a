r"""Test whether a word changed between two sets of texts, and which of its meanings grew or shrank.

The uses of both sides are grouped together, then the sides are compared: by how many control words
of like frequency moved less far between the same two sides, and by the share of each group on each
side. Control words are measured once for two sides and a model. Texts of two periods also differ in
topic and genre: read the lines before you call it a change of meaning.

With --by and --periods, the share of each sense in each of several periods is told instead, with a
95 % interval: of the senses that are kept for the word, which takes no model; or else of groups.

With --all, every word with enough uses on both sides is compared, the most changed first, with
p-values of a permutation test over documents adjusted for multiple testing, control words of like
frequency, and a control run with documents assigned to the sides at random. With --out, a stopped
run is resumed.

Examples:

  polyseme change train --in corpus/novels --model models/en-mini \
      --before "year<1860" --after "year>=1900"

  polyseme change bank --in corpus/en --model models/en-mini --before genre=news --after genre=law

  polyseme change train --in corpus/novels --index index/novels \
      --before "year<1860" --after "year>=1900"

  polyseme change bank --in corpus/novels --by year --periods 4 --report bank.html

  polyseme change --all --in corpus/novels --model models/en-mini \
      --before "year<1860" --after "year>=1900" --out changes.csv
"""

import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field
from rich.console import Group, RenderableType
from rich.table import Table

from polyseme.commands import Result, read_list
from polyseme.commands.senses import check_report, how_it_was_made, language_of
from polyseme.config import Option, OptionalFolder, Settings
from polyseme.display import PrintableText, numbers, on_one_line, titled
from polyseme.embedding.settings import ModelName
from polyseme.errors import ConfigError, InputError
from polyseme.meanings.settings import Conditions, FindConfig, out_help
from polyseme.progress import SILENT, Progress, duration

if TYPE_CHECKING:
    from polyseme.meanings.change.periods import SensesOverTime
    from polyseme.meanings.change.sides import Sides, WordChange
    from polyseme.meanings.change.vocabulary import VocabularyChange, VocabularyQuestion
    from polyseme.text.corpus import Corpus


class ChangeConfig(Settings):
    """Which word, which two sides or which periods, by which model."""

    arguments: ClassVar[tuple[str, ...]] = ("word",)

    find: FindConfig
    """What to look for."""
    model: ModelName = None
    index: OptionalFolder = None
    """For one word: read the uses from this index (`polyseme index`) instead of embedding them."""
    before: Conditions = ()
    """Metadata condition of the first side: year<1860."""
    after: Conditions = ()
    """Metadata condition of the second side: year>=1900."""
    by: str | None = None
    """Instead of two sides, periods by this column: year. It has years or other numbers."""
    periods: int = Field(4, ge=2, le=100)
    """With --by: how many periods, of as many years each."""
    shuffle: Literal["documents", "uses"] | None = None
    """What the permutation test shuffles; by default documents, if each side has at least five."""
    seed: int = 1
    """Random seed of samples, groups and permutations."""
    all_words: Annotated[bool, Option("--all")] = False
    """Instead of one word, compare every word that has enough uses on both sides."""
    words: tuple[str, ...] = ()
    """Instead of one word, compare these: train,plane,station."""
    words_file: Path | None = None
    """Instead of one word, compare those in this file, one per line."""
    min_uses: int = Field(50, ge=20)
    """With several words: uses that a word needs on each side."""
    max_uses: int = Field(200, ge=20, le=1_000)
    """With several words: at most this many uses per side; of more, a random sample."""
    permutations: int = Field(9_999, ge=199, le=1_000_000)
    """With several words: permutations for each word."""
    top: int = Field(20, ge=0)
    """With several words: how many words are shown."""
    out: Path | None = Field(
        None, description=out_help("With several words, or --by: write all of them to this file")
    )
    report: Path | None = None
    """For one word: write a report to keep or share, one .html file that works offline."""

    @property
    def is_of_one_word(self) -> bool:
        """Whether one word, in whatever forms, is asked about."""
        return self.find.is_given


def run(
    config: ChangeConfig, progress: Progress = SILENT
) -> "Result[WordChange | VocabularyChange | SensesOverTime, ChangeConfig]":
    """Find the uses of both sides, group them together, compare the sides."""
    from polyseme.meanings.change.sides import Sides
    from polyseme.meanings.concordance.conditions import parse_where
    from polyseme.meanings.concordance.search import CorpusColumns
    from polyseme.text.corpus import Corpus

    began = time.monotonic()
    _check(config)
    corpus = Corpus.open(config.find.corpus)
    if config.by is not None:
        over_time = _over_time(config, corpus, config.by, progress)
        return Result(over_time, config, time.monotonic() - began)
    columns = CorpusColumns(corpus)
    given = (config.before, config.after, config.find.where)
    sides = Sides(*(parse_where(texts, columns) for texts in given))
    compare = _compare_one if config.is_of_one_word else _compare_many
    found = compare(config, corpus, sides, progress)
    _write_report(found, config)
    return Result(found, config, time.monotonic() - began)


def _over_time(
    config: ChangeConfig, corpus: "Corpus", column: str, progress: Progress
) -> "SensesOverTime":
    """Of the senses that are kept, unless a model or an index is named; else of groups."""
    from polyseme.meanings.change.periods import (
        groups_over_time,
        kept_senses_over_time,
        with_texts,
    )
    from polyseme.meanings.concordance.export import write_table
    from polyseme.meanings.concordance.kept_senses import find_senses_of, has_senses_of
    from polyseme.meanings.concordance.uses import find_uses
    from polyseme.meanings.groups.senses import find_senses
    from polyseme.meanings.index.use_index import find_source
    from polyseme.meanings.report import periods_page, write_page

    find, seed = config.find, config.seed
    is_of_groups = config.model is not None or config.index is not None
    asked = find.word or find.cql
    if not is_of_groups and asked and has_senses_of(corpus, asked):
        uses = find_uses(corpus, find.query, where=find.where)
        kept = find_senses_of(corpus, asked)
        found = kept_senses_over_time(uses, kept, column, config.periods, seed)
    else:
        source = find_source(
            corpus, find.query, where=find.where, model=config.model, index=config.index
        )
        senses = find_senses(source.uses, source.encoder, seed=seed, progress=progress)
        senses = replace(senses, source_notes=source.notes)
        found = groups_over_time(senses, column, config.periods, seed)
    found = with_texts(found, corpus, find.query.condition(find.where, corpus))
    if config.out is not None:
        write_table(found, config.out)
    if config.report is not None:
        made = how_it_was_made("change", find, config.model)
        settings = [*made, ("periods", f"{config.periods} by {column}"), ("seed", seed)]
        write_page(config.report, periods_page(found, settings, language=language_of(find)))
    return found


def _write_report(found: "WordChange | VocabularyChange", config: ChangeConfig) -> None:
    from polyseme.meanings.change.sides import WordChange
    from polyseme.meanings.report import change_page, write_page

    if config.report is None or not isinstance(found, WordChange):
        return
    made = how_it_was_made("change", config.find, config.model or f"that of {config.index}")
    sides = zip(("before", "after"), _sides(config), strict=True)
    settings = [*made, *sides, ("shuffled", found.change.unit), ("seed", config.seed)]
    language = language_of(config.find)
    html = change_page(found, _sides(config), settings, language=language, seed=config.seed)
    write_page(config.report, html)


def _sides(config: ChangeConfig) -> tuple[str, str]:
    from polyseme.meanings.concordance.conditions import joined

    return joined(config.before), joined(config.after)


def _check(config: ChangeConfig) -> None:
    """Refuse what does not go together, before any work is done."""
    from polyseme.meanings.concordance.export import check_format

    is_one = config.is_of_one_word
    many = [config.all_words, bool(config.words), config.words_file is not None]
    if is_one + sum(many) > 1:
        raise ConfigError("Choose one: a word, --words, --words-file or --all.")
    if not (is_one or any(many)):
        raise ConfigError(
            "Name the word to compare: polyseme change WORD. To compare several, give --words, "
            "--words-file or --all."
        )
    is_of_sides = bool(config.before and config.after)
    if config.by is not None and (config.before or config.after or not is_one):
        raise ConfigError("--by is for periods of one word: leave out --before, --after, --all.")
    if config.by is None and not is_of_sides:
        raise ConfigError(
            "Say what to compare: two sides with --before and --after, or --by COLUMN --periods N."
        )
    if not is_one and config.index is not None:
        raise ConfigError("--index is for one word. Leave it out.")
    if config.out is not None:
        if is_one and config.by is None:
            is_page = config.out.suffix.lower() in (".html", ".htm")
            page = f" For a page of one word: --report {config.out}" if is_page else ""
            raise ConfigError(f"--out is for several words.{page}")
        check_format(config.out)
    if config.report is not None:
        if not is_one:
            raise ConfigError("--report is for one word.")
        check_report(config.report)


def _compare_one(
    config: ChangeConfig,
    corpus: "Corpus",
    sides: "Sides",
    progress: Progress,
) -> "WordChange":
    from polyseme.meanings.change.sides import compare_sides
    from polyseme.meanings.index.use_index import find_source

    source = find_source(
        corpus,
        config.find.query,
        where=sides.where,
        model=config.model,
        index=config.index,
    )
    found = compare_sides(
        source.uses,
        sides,
        source.encoder,
        unit=config.shuffle,
        seed=config.seed,
        progress=progress,
    )
    notes = (*source.notes, *found.senses.source_notes)
    return replace(found, senses=replace(found.senses, source_notes=notes))


def _compare_many(
    config: ChangeConfig, corpus: "Corpus", sides: "Sides", progress: Progress
) -> "VocabularyChange":
    from polyseme.meanings.change.vocabulary import WordLog, compare_vocabulary
    from polyseme.meanings.concordance.export import write_table
    from polyseme.meanings.index.use_index import load_encoder
    from polyseme.storage.files import disk_faults_explained, hold_file, sha256_of
    from polyseme.storage.folders import MANIFEST
    from polyseme.storage.installed import default_model

    question = _question(config, sides)
    encoder = load_encoder(config.model or default_model(corpus.config.language), corpus)
    words = read_list(config.words_file) if config.words_file else [*config.words] or None
    if config.words_file and not words:
        raise InputError(f"{config.words_file} has no words. Expected: one per line.")
    compare = partial(compare_vocabulary, corpus, encoder, question, words=words, progress=progress)
    if config.out is None:
        return compare()
    asked = question.to_json() | {
        "corpus": sha256_of(corpus.folder / MANIFEST),
        "model": encoder.embedder.fingerprint,
    }
    with disk_faults_explained(config.out.parent), hold_file(config.out):
        log = WordLog(config.out.with_name(f"{config.out.name}.unfinished.jsonl"), asked)
        if log.found:
            progress.log(f"{len(log.found):,} words from an earlier run were reused.")
        found = compare(known=log.found, on_word=log.add)
        write_table(found, config.out)
        log.remove()
    return found


def _question(config: ChangeConfig, sides: "Sides") -> "VocabularyQuestion":
    from polyseme.meanings.change.vocabulary import VocabularyQuestion

    return VocabularyQuestion(
        before=sides.before,
        after=sides.after,
        where=sides.where,
        min_uses=config.min_uses,
        max_uses=config.max_uses,
        permutations=config.permutations,
        unit=config.shuffle or "documents",
        seed=config.seed,
    )


def show(
    result: "Result[WordChange | VocabularyChange | SensesOverTime, ChangeConfig]",
) -> RenderableType:
    """The measures, then the groups with their share on either side; or the most changed words."""
    from polyseme.meanings.change.periods import SensesOverTime
    from polyseme.meanings.change.sides import WordChange

    found, config = result.found, result.config
    if isinstance(found, SensesOverTime):
        shown = _periods(found, config)
    else:
        shown = _word(found, config) if isinstance(found, WordChange) else _words(found, config)
    return Group(*shown, f"Took {duration(result.seconds)}.")


def _word(found: "WordChange", config: ChangeConfig) -> list[RenderableType]:
    before, after = _sides(config)
    table = Table(*numbers("", PrintableText(before), PrintableText(after)), "")
    table.add_column("substitutes | collocates", overflow="fold")
    names = {group.number: group.name for group in found.senses.groups}
    for each in sorted(found.change.groups, key=lambda each: int(each.group)):
        shares = (f"{side.count:,} ({side.share:.0%})" for side in (each.before, each.after))
        name = PrintableText(names[int(each.group)])
        table.add_row(each.group, *shares, each.movement, name)
    parts = [titled(f"{found.senses.uses.query}: {before} against {after}", table), _verdict(found)]
    parts += [PrintableText(note, "yellow") for note in found.senses.notes]
    if config.report is not None:
        parts.append(on_one_line(f"To read in a browser: {config.report}"))
    return parts


def _periods(found: "SensesOverTime", config: ChangeConfig) -> list[RenderableType]:
    table = Table()
    table.add_column(PrintableText(found.column), no_wrap=True)
    for name in ("uses", "documents", *found.senses):
        table.add_column(PrintableText(name), justify="right", overflow="fold")
    for period in found.periods:
        shares = [
            f"{each.share:.0%} ({100 * each.low:.0f}–{100 * each.high:.0f})"
            for each in period.shares
        ]
        if not shares:  # not 0 % of each
            shares = [period.empty_label, *[""] * (len(found.senses) - 1)]
        table.add_row(period.label, f"{period.uses:,}", f"{period.documents:,}", *shares)
    parts: list[RenderableType] = [
        titled(f"{found.word}: share of each sense, with its 95 % interval", table)
    ]
    parts += [PrintableText(note, "yellow") for note in found.notes]
    if config.out is not None:
        parts.append(on_one_line(f"All figures: {config.out}"))
    if config.report is not None:
        parts.append(on_one_line(f"To read in a browser: {config.report}"))
    return parts


def _words(found: "VocabularyChange", config: ChangeConfig) -> list[RenderableType]:
    before, after = _sides(config)
    sides = PrintableText(before), PrintableText(after)
    table = Table("word", *numbers(*sides, "APD", "by chance", "q", "controls"))
    for each in found.words[: config.top]:
        word = each.change
        counts = (f"{word.before:,}", f"{word.after:,}")
        measures = (f"{word.apd:.3f}", f"{word.apd_by_chance:.3f}", f"{each.q_value:.3f}")
        controls = f"{each.controls_below} of {each.controls}"
        table.add_row(PrintableText(word.word), *counts, *measures, controls)
    found_words = f"{len(found.significant):,} of {len(found):,} words"
    title = f"{found_words} differ by more than chance (q < 0.05): {before} against {after}"
    told = "controls: how many words of similar frequency on both sides changed less."
    parts: list[RenderableType] = [titled(title, table), told]
    parts += [PrintableText(note, "yellow") for note in found.notes]
    if config.out is not None:
        parts.append(on_one_line(f"All words: {config.out}"))
    return parts


def _verdict(found: "WordChange") -> RenderableType:
    """The figures, and what they can and cannot say."""
    facts = Table.grid(padding=(0, 2))
    for name, value in found.change.facts():
        facts.add_row(name, PrintableText(value))
    style = "bold" if found.change.verdict == "changed" else ""
    told = [PrintableText(found.verdict, style)]
    told += [PrintableText(str(rival), "yellow") for rival in found.rivals]
    return Group(facts, *told, PrintableText(found.caveat))

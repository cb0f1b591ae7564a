r"""Write a table for each annotator: pairs of uses of a word to judge, or lines and their senses.

Each annotator gets a CSV with the same items in an order of their own, and fills in the
column `judgment` of pairs: 4 identical, 3 closely related, 2 distantly related, 1 unrelated, 0
cannot decide. With --senses, lines are judged: the column `sense` gets one of them, or ?. How far
the annotators agree: polyseme agreement.

With --judgments so far, the items to judge next are chosen: those that the model is least sure of
after these judgments, and those in dispute, for an annotator who has not judged them.

Examples:

  polyseme judge bank --in corpus/en --annotators ana,ben --number 50 --out round1

  polyseme judge bank --in corpus/en --annotators ana,ben --senses shore,institution --out lines

  polyseme judge bank --in corpus/en --model models/en-mini --annotators ana,ben,eve \
      --judgments round1 --number 20 --out round2
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field
from rich.console import Group, RenderableType

from polyseme.config import OptionalFolder, Settings
from polyseme.display import PrintableText, counted, on_one_line
from polyseme.embedding.settings import ModelName
from polyseme.errors import ConfigError
from polyseme.meanings.settings import FindConfig
from polyseme.progress import SILENT, Progress

if TYPE_CHECKING:
    from polyseme.meanings.judging import Material


def as_listed(given: Any) -> Any:
    """One path for a list of them."""
    return (given,) if isinstance(given, str | Path) else given


class JudgeConfig(Settings):
    """What is judged, and by whom."""

    arguments: ClassVar[tuple[str, ...]] = ("word",)

    find: FindConfig
    """What to look for."""
    annotators: tuple[str, ...] = Field(min_length=1)
    """Who judges: ana,ben. Each gets a table."""
    number: int = Field(50, ge=1, le=10_000)
    """How many pairs, or lines, each gets."""
    senses: tuple[str, ...] = ()
    """The senses to choose from: shore,institution. Lines are judged instead of pairs."""
    judgments: Annotated[tuple[Path, ...], BeforeValidator(as_listed)] = ()
    """Judgments so far, after which the next are chosen: tables that were filled in, or folders of
    them; or DURel's judgments."""
    model: ModelName = None
    index: OptionalFolder = None
    """Read the uses from this index (`polyseme index`) instead of embedding them."""
    seed: int = Field(1, ge=0)
    """Of samples and orders."""
    out: Path
    """The folder for the tables. Those of pairs have NAME.uses.tsv and NAME.instances.tsv beside
    them, to be judged in DURel."""


@dataclass(frozen=True)
class JudgeResult:
    """The tables that were written."""

    material: "Material"
    paths: list[Path]
    config: JudgeConfig

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        material = self.material
        return {
            "kind": material.kind,
            "items": len(material.items),
            "files": list(map(str, self.paths)),
            "notes": list(material.notes),
        }


def run(config: JudgeConfig, progress: Progress = SILENT) -> JudgeResult:
    """Find the uses, draw or choose items, write a table for each annotator."""
    from polyseme.meanings.concordance.uses import find_uses
    from polyseme.meanings.index.use_index import find_source
    from polyseme.meanings.judging import Plan, choose_material, draw_material, write_material
    from polyseme.meanings.judgments import read_judgments
    from polyseme.text.corpus import Corpus

    _check(config)
    corpus, find = Corpus.open(config.find.corpus), config.find
    plan = Plan(config.annotators, config.number, config.senses, config.seed)
    if config.judgments:
        judgments = read_judgments(config.judgments)
        source = find_source(
            corpus, find.query, where=find.where, model=config.model, index=config.index
        )
        material = choose_material(source.uses, source.encoder, judgments, plan, progress)
    else:
        uses = find_uses(corpus, find.query, where=find.where)
        material = draw_material(uses, plan)
    return JudgeResult(material, write_material(material, config.out), config)


def _check(config: JudgeConfig) -> None:
    for what, names in (("annotator", config.annotators), ("sense", config.senses)):
        if len({name.strip().casefold() for name in names}) < len(names):
            raise ConfigError(f"One {what} is named twice.")
        if wrong := [name for name in names if not name.strip() or "|" in name or name == "?"]:
            raise ConfigError(f"{wrong[0]!r} cannot be the name of a {what}.")
    if len(config.senses) == 1:
        raise ConfigError("Name two senses or more to choose from: --senses shore,institution.")


def show(result: JudgeResult) -> RenderableType:
    """Where the tables are, and what to do with them."""
    material, out = result.material, result.config.out
    word = "pair" if material.kind == "pairs" else "line"
    annotators = counted(len(material.sheets), "annotator")
    lines: list[RenderableType] = [
        f"{counted(len(material.items), word)} of {material.lemma!r} for {annotators}:",
        *(on_one_line(f"  {path}") for path in result.paths),
    ]
    if material.kind == "pairs":
        lines.append(
            "Fill in `judgment`: 4 identical, 3 closely related, 2 distantly related, 1 "
            "unrelated, 0 cannot decide."
        )
    else:
        senses = ", ".join(result.config.senses)
        lines.append(f"Fill in `sense`: {senses}; or ? if you cannot decide.")
    lines += [PrintableText(note, "yellow") for note in material.notes]
    lines += [on_one_line(f"How far they agree: polyseme agreement {out}")]
    return Group(*lines)

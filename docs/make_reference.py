"""Settings classes in, `docs/reference/settings.md` out.

    python docs/make_reference.py           writes the page
    python docs/make_reference.py --check   fails if the page is not up to date

Every word of the page comes from the classes: names, types, defaults and docstrings.
"""

import runpy
import sys
import types
import typing
from pathlib import Path
from typing import Any

import annotated_types
from pydantic.fields import FieldInfo

from polyseme.commands.change import ChangeConfig
from polyseme.commands.choices import ChoiceSetConfig
from polyseme.commands.compare import CompareConfig
from polyseme.commands.convert.export import ExportConfig
from polyseme.commands.convert.import_ import ImportConfig
from polyseme.commands.edit import EditConfig
from polyseme.commands.embed import EmbedConfig
from polyseme.commands.evaluate import EvaluateConfig
from polyseme.commands.generate import GenerateConfig
from polyseme.commands.index import IndexConfig
from polyseme.commands.inspect import InspectConfig
from polyseme.commands.label import LabelConfig
from polyseme.commands.nearest import NearestConfig
from polyseme.commands.plan import PlanConfig
from polyseme.commands.predict import PredictConfig
from polyseme.commands.prepare import PrepareConfig
from polyseme.commands.same import SameConfig
from polyseme.commands.score import ScoreConfig
from polyseme.commands.senses import SensesConfig
from polyseme.commands.substitutes import SubstitutesConfig
from polyseme.commands.train import TrainConfig
from polyseme.commands.uses import UsesConfig
from polyseme.commands.vectors.info import VectorsInfoConfig
from polyseme.config import Settings
from polyseme.data.stream import BatchConfig
from polyseme.data.vocabulary import VocabularyConfig
from polyseme.embedding.settings import VectorsConfig
from polyseme.encoders.characters import CharactersConfig, FilterConfig
from polyseme.encoders.contextualizer import NoContextualizerConfig
from polyseme.encoders.encoder import EncoderConfig
from polyseme.encoders.inputs import CharacterInputConfig, WordCharacterInputConfig, WordInputConfig
from polyseme.encoders.lstm import LstmConfig
from polyseme.encoders.transformer import TransformerConfig
from polyseme.executors import ExecutorConfig
from polyseme.meanings.settings import FindConfig, GroupingConfig, UseIndexConfig
from polyseme.objectives.bidirectional import BidirectionalConfig
from polyseme.objectives.causal import CausalConfig
from polyseme.objectives.encoder_only import EncoderOnlyConfig
from polyseme.objectives.masked import MaskedConfig
from polyseme.objectives.softmaxes import (
    AdaptiveSoftmaxConfig,
    FullSoftmaxConfig,
    SampledSoftmaxConfig,
)
from polyseme.objectives.word2vec import Word2VecConfig
from polyseme.pretraining.settings import GenerationConfig, PretrainConfig, RunConfig
from polyseme.tasks.data import DataConfig
from polyseme.tasks.embeddings.cache import CacheConfig
from polyseme.tasks.embeddings.character_labels import CharacterLabelsConfig
from polyseme.tasks.embeddings.embeddings import EmbeddingsConfig
from polyseme.tasks.embeddings.finetuned import FineTunedConfig
from polyseme.tasks.embeddings.frozen import FrozenConfig
from polyseme.tasks.embeddings.mix import MixConfig
from polyseme.tasks.embeddings.word_embedding import (
    CharacterCnnConfig,
    FileVectorsConfig,
    ModelVectorsConfig,
    NewVectorsConfig,
    WordEmbeddingConfig,
)
from polyseme.tasks.families import NetworkConfig
from polyseme.tasks.families.antecedents import SpansConfig
from polyseme.tasks.families.coreference import WindowsConfig
from polyseme.tasks.families.decoder import DecoderConfig
from polyseme.tasks.families.layers import ContextConfig
from polyseme.tasks.readers.choices import ChoicesConfig
from polyseme.tasks.readers.columns import ColumnsConfig
from polyseme.tasks.readers.conllu import ConlluConfig
from polyseme.tasks.readers.coreference import CoreferenceColumnsConfig
from polyseme.tasks.readers.labelled import LabelledConfig
from polyseme.tasks.readers.propbank import PropbankConfig
from polyseme.tasks.readers.segmented import SegmentedConfig
from polyseme.tasks.readers.senses import SenseLabelsConfig
from polyseme.tasks.readers.squad import SquadConfig
from polyseme.tasks.readers.table import TableConfig
from polyseme.tasks.readers.trees import TreesConfig
from polyseme.tasks.settings import TaskConfig, TaskTrainingConfig
from polyseme.text.settings import CorpusConfig

PAGE = Path(__file__).parent / "reference" / "settings.md"

_TOP = """# Settings

Made by `docs/make_reference.py` from the settings classes; do not edit.

A setting can be given in three ways. Later ones override earlier ones:

1. in a TOML file, read with `--config FILE`;
2. as an option of its own name, with hyphens for underscores: `max_words` is `--max-words`;
3. with `--set NAME=VALUE` and the full name: `--set corpus.max_words=100`.

An unknown setting is an error, also in a file. In a TOML file, lists are written as lists
(`meta = ["date", "author"]`); as an option, with commas (`--meta date,author`).

`task`, `model`, `folder` and `inputs` of a command have no option: they are what follows it
on the command line, in this order. A part that is a choice is picked by its `kind`; only `--set`
and files reach it.
"""

_SECTIONS: list[tuple[str, str, type[Settings], str]] = [
    ("polyseme prepare", "", PrepareConfig, "Top level of the file."),
    (
        "The corpus",
        "corpus.",
        CorpusConfig,
        (
            "The table `[corpus]` of the file. These decide every byte of the corpus and are "
            "stored in its `config.toml`."
        ),
    ),
    (
        "Who does the work",
        "executor.",
        ExecutorConfig,
        "The table `[executor]`, of prepare and embed.",
    ),
    ("polyseme inspect", "", InspectConfig, "Top level of the file."),
    ("polyseme plan", "", PlanConfig, "Top level of the file."),
    ("polyseme pretrain", "", PretrainConfig, "Top level of the file."),
    ("The run", "training.", RunConfig, "The table `[training]`, of plan and pretrain."),
    ("Batches", "batches.", BatchConfig, "The table `[batches]`."),
    (
        "Words and characters",
        "model.vocabulary.",
        VocabularyConfig,
        "The table `[model.vocabulary]`.",
    ),
    ("The encoder", "model.encoder.", EncoderConfig, "The table `[model.encoder]`."),
    *(
        (title, "model.encoder.input.", kind, "One choice of `model.encoder.input`.")
        for title, kind in (
            ("Input: words", WordInputConfig),
            ("Input: characters", CharacterInputConfig),
            ("Input: words and characters", WordCharacterInputConfig),
        )
    ),
    (
        "Characters beside a table",
        "model.encoder.input.characters.",
        CharactersConfig,
        "The characters of an input of kind `word+characters`.",
    ),
    ("Filters", "filters.", FilterConfig, "One entry of `filters`."),
    *(
        (
            title,
            "model.encoder.contextualizer.",
            kind,
            "One choice of `model.encoder.contextualizer`.",
        )
        for title, kind in (
            ("Contextualizer: LSTM", LstmConfig),
            ("Contextualizer: Transformer", TransformerConfig),
            ("Contextualizer: none", NoContextualizerConfig),
        )
    ),
    *(
        (title, "model.objective.", kind, "One choice of `model.objective`.")
        for title, kind in (
            ("Objective: bidirectional", BidirectionalConfig),
            ("Objective: causal", CausalConfig),
            ("Objective: masked", MaskedConfig),
            ("Objective: word2vec", Word2VecConfig),
            ("Objective: encoder only", EncoderOnlyConfig),
        )
    ),
    *(
        (title, "model.objective.softmax.", kind, "One choice of `model.objective.softmax`.")
        for title, kind in (
            ("Softmax: full", FullSoftmaxConfig),
            ("Softmax: sampled", SampledSoftmaxConfig),
            ("Softmax: adaptive", AdaptiveSoftmaxConfig),
        )
    ),
    ("polyseme evaluate", "", EvaluateConfig, "Top level of the file."),
    ("polyseme score", "", ScoreConfig, "Top level of the file."),
    ("polyseme generate", "", GenerateConfig, "Top level of the file."),
    ("Sampling words", "generation.", GenerationConfig, "The table `[generation]`, of generate."),
    ("polyseme embed", "", EmbedConfig, "Top level of the file."),
    ("Vectors", "vectors.", VectorsConfig, "The table `[vectors]`, of embed."),
    ("polyseme vectors info", "", VectorsInfoConfig, "Top level of the file."),
    ("polyseme uses", "", UsesConfig, "Top level of the file."),
    ("polyseme senses", "", SensesConfig, "Top level of the file."),
    ("polyseme edit", "", EditConfig, "Top level of the file."),
    ("polyseme label", "", LabelConfig, "Top level of the file."),
    ("polyseme change", "", ChangeConfig, "Top level of the file."),
    ("polyseme substitutes", "", SubstitutesConfig, "Top level of the file."),
    ("polyseme nearest", "", NearestConfig, "Top level of the file."),
    ("polyseme same", "", SameConfig, "Top level of the file."),
    ("polyseme index", "", IndexConfig, "Top level of the file."),
    ("Which uses an index has", "index.", UseIndexConfig, "The table `[index]` of index."),
    (
        "What to look for",
        "find.",
        FindConfig,
        "The table `[find]` of uses, senses, edit, label, change and nearest.",
    ),
    ("How to group", "grouping.", GroupingConfig, "The table `[grouping]` of senses and edit."),
    ("polyseme train", "", TrainConfig, "Top level of a file read with `--config`."),
    ("polyseme predict", "", PredictConfig, "Top level of the file."),
    ("polyseme compare", "", CompareConfig, "Top level of a file read with `--config`."),
    ("polyseme choices", "", ChoiceSetConfig, "Top level of the file."),
    ("polyseme convert import", "", ImportConfig, "Top level of the file."),
    ("polyseme convert export", "", ExportConfig, "Top level of the file."),
    ("A task", "", TaskConfig, "Top level of a task's file, which train and compare read."),
    ("Task: data", "data.", DataConfig, "The table `[data]` of a task."),
    *(
        (f"Reader: {title}", "data.reader.", kind, "One choice of `data.reader`.")
        for title, kind in (
            ("columns", ColumnsConfig),
            ("CoNLL-U", ConlluConfig),
            ("PropBank", PropbankConfig),
            ("a table", TableConfig),
            ("labelled lines", LabelledConfig),
            ("trees", TreesConfig),
            ("segmented text", SegmentedConfig),
            ("senses", SenseLabelsConfig),
            ("coreference", CoreferenceColumnsConfig),
            ("squad", SquadConfig),
            ("choices", ChoicesConfig),
        )
    ),
    ("Task: embeddings", "embeddings.", EmbeddingsConfig, "The table `[embeddings]` of a task."),
    (
        "Words without context",
        "embeddings.words.",
        WordEmbeddingConfig,
        "The table `[embeddings.words]`.",
    ),
    *(
        (
            f"Vectors: {title}",
            "embeddings.words.vectors.",
            kind,
            "One choice of `embeddings.words.vectors`.",
        )
        for title, kind in (
            ("from a file", FileVectorsConfig),
            ("from a model", ModelVectorsConfig),
            ("new", NewVectorsConfig),
        )
    ),
    (
        "Character CNN",
        "embeddings.words.characters.",
        CharacterCnnConfig,
        "The table `[embeddings.words.characters]`.",
    ),
    ("Model: frozen", "embeddings.model.", FrozenConfig, "One choice of `embeddings.model`."),
    ("The cache", "embeddings.model.cache.", CacheConfig, "The table `[embeddings.model.cache]`."),
    (
        "Model: fine-tuned",
        "embeddings.model.",
        FineTunedConfig,
        "One choice of `embeddings.model`.",
    ),
    (
        "Labels at characters",
        "embeddings.character_labels.",
        CharacterLabelsConfig,
        "The table `[embeddings.character_labels]`.",
    ),
    ("The mix", "embeddings.mix.", MixConfig, "The table `[embeddings.mix]`."),
    *(
        (
            f"Network: {kind.model_fields['kind'].default.replace('_', ' ')}",
            "network.",
            kind,
            "One choice of `network`.",
        )
        for kind in typing.get_args(typing.get_args(NetworkConfig)[0])
    ),
    (
        "The network's layers",
        "network.context.",
        ContextConfig,
        "The table `[network.context]`, of networks that have one.",
    ),
    ("Spans", "network.spans.", SpansConfig, "The table `[network.spans]`, of coreference."),
    (
        "Windows of a long text",
        "network.windows.",
        WindowsConfig,
        "The table `[network.windows]`, of coreference.",
    ),
    (
        "The decoder",
        "network.decoder.",
        DecoderConfig,
        "The table `[network.decoder]`, of seq2seq.",
    ),
    ("Task: training", "training.", TaskTrainingConfig, "The table `[training]` of a task."),
]


def make() -> str:
    """The whole page."""
    return "\n".join([_TOP, *(_section(*section) for section in _SECTIONS)])


def settings_without_text() -> list[str]:
    """Settings and classes that say nothing about themselves."""
    kinds = [kind for _, _, kind, _ in _SECTIONS]
    silent = [kind.__name__ for kind in kinds if not kind.__doc__]
    for kind in kinds:
        fields = kind.model_fields.items()
        silent += [f"{kind.__name__}.{name}" for name, field in fields if not _meaning(name, field)]
    return silent


def _section(title: str, prefix: str, kind: type[Settings], where: str) -> str:
    rows = [
        _row(name, field)
        for name, field in kind.model_fields.items()
        if not _is_settings(field.annotation) and not _is_choice(field)
    ]
    lines = [
        f"## {title}\n",
        f"{kind.__doc__} {where}\n",
        "| setting | values | default | meaning |",
        "|---|---|---|---|",
        *(f"| `{prefix}{row[0]}` | {' | '.join(row[1:])} |" for row in rows),
    ]
    return "\n".join(lines) + "\n"


def _row(name: str, field: FieldInfo) -> tuple[str, str, str, str]:
    return name, _values(field), _default(field), _escape(_meaning(name, field))


def _meaning(name: str, field: FieldInfo) -> str:
    """What a setting says of itself."""
    if name == "kind":
        return "Picks this choice."
    return " ".join((field.description or "").split())


def _values(field: FieldInfo) -> str:
    """The type in words, with its bounds."""
    return _bounded(_type(field.annotation), field.metadata)


def _bounded(text: str, limits: typing.Iterable[Any]) -> str:
    for limit in limits:
        match limit:
            case annotated_types.Ge():
                text += f", from {limit.ge}"
            case annotated_types.Le():
                text += f", to {limit.le}"
    return text


def _type(annotation: Any) -> str:
    if typing.get_origin(annotation) is typing.Literal:
        return ", ".join(f"`{value}`" for value in typing.get_args(annotation))
    if typing.get_origin(annotation) is typing.Annotated:  # a part of a union, with bounds
        inner, field = typing.get_args(annotation)
        return _bounded(_type(inner), field.metadata)
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        parts = [part for part in typing.get_args(annotation) if part is not type(None)]
        return ", ".join(_type(part) for part in parts)
    if typing.get_origin(annotation) is tuple:
        return "list"
    if typing.get_origin(annotation) is dict or _is_settings(annotation):
        return "table"
    words = {str: "text", int: "number", float: "number", bool: "true, false", Path: "path"}
    return words[annotation]


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    if field.default_factory is not None:
        return "see there"
    if field.default is None or field.default == ():
        return "none"
    value = field.default
    if isinstance(value, Settings | tuple):
        return "see there"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _is_settings(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, Settings)


def _is_choice(field: FieldInfo) -> bool:
    """One of several settings classes: each has a section of its own."""
    return any(_is_settings(part) for part in _parts(field.annotation))


def _parts(annotation: Any) -> list[Any]:
    """What a type is put together from, down to the last."""
    inner = typing.get_args(annotation)
    if typing.get_origin(annotation) is typing.Annotated:
        inner = inner[:1]
    return [leaf for part in inner for leaf in _parts(part) or [part]]


def _escape(text: str) -> str:
    text = text.replace("}_{", "}\\_{")
    return text.replace("|", "\\|").replace("[", "\\[").replace("<", "&lt;")


def main() -> None:
    """Write the page, or check it."""
    text = make()
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(text, encoding="utf-8", newline="\n")
    elif PAGE.read_text(encoding="utf-8") != text:
        sys.exit(f"{PAGE} is not up to date. Run: python docs/make_reference.py")
    runpy.run_path(str(Path(__file__).with_name("make_command_line.py")), run_name="__main__")


if __name__ == "__main__":
    main()

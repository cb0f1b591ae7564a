"""Generate text with a causal (GPT) or bidirectional (ELMo) language model.

Words are sampled one by one, from left to right. The same seed gives the same text.

Examples:

  polyseme generate "The bank" --model models/en-mini --samples 3 --temperature 0.8

  polyseme generate 今天 --model models/zh-mini --top-k 50 --top-p 0.9 --seed 7

  cat beginnings.txt | polyseme generate - --model models/en-mini --json
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field
from rich.console import Group, RenderableType

from polyseme.config import Settings
from polyseme.display import PrintableText
from polyseme.embedding.settings import ModelName
from polyseme.pretraining import GenerationConfig
from polyseme.progress import SILENT, Progress
from polyseme.storage.installed import chosen_model
from polyseme.text.streams import texts_of

if TYPE_CHECKING:
    from polyseme.pretraining.generation import GeneratedText


class GenerateConfig(Settings):
    """Which prompts, by which model."""

    arguments: ClassVar[tuple[str, ...]] = ("inputs",)

    inputs: tuple[str, ...] = ("",)
    """Prompts, each quoted; - reads them from standard input, one per line. Without any, the model
    starts a sentence of its own."""
    model: ModelName = None
    generation: GenerationConfig = Field(default_factory=GenerationConfig)
    """How words are sampled."""


@dataclass(frozen=True)
class GenerateResult:
    """The texts, prompt by prompt."""

    texts: "list[GeneratedText]"

    def json_lines(self) -> Iterator[dict[str, Any]]:
        """A line for each text."""
        return (text.as_json() for text in self.texts)


def run(config: GenerateConfig, progress: Progress = SILENT) -> GenerateResult:
    """Continue every beginning."""
    from polyseme.pretraining.generation import generate_from

    prompts = texts_of(config.inputs)
    model = Path(chosen_model(config.model, prompts, progress))
    return GenerateResult(generate_from(model, prompts, config.generation))


def show(result: GenerateResult) -> RenderableType:
    """A text a line, what was given in bold."""
    return Group(*map(_shown, result.texts))


def _shown(generated: "GeneratedText") -> PrintableText:
    given = generated.prompt.rstrip()
    text = PrintableText(given, "bold")
    text.append(generated.text[len(given) :])
    return text if generated.is_finished else text.append(" …", style="dim")

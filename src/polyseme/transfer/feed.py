"""Feeds a task: static vectors, a model's layers, or both, put where the settings say.

    feed = Feed.new(config, words_of_the_data)
    supply = feed.prepare(sentences)              # once for each data set
    fed = feed(supply.gather([3, 17, 4]))         # for each batch: a `Fed`

A task gets `feed.widths` when it is built and `Fed` for each batch; which transfer is behind it,
it cannot know. ELMo is put beside the input [x; ELMo], beside the output [h; ELMo], beside both,
or behind the task's first layer, as in TagLM.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from polyseme.config import Settings
from polyseme.errors import ConfigError
from polyseme.files import canonical_json
from polyseme.progress import Progress
from polyseme.training.optimizer import ParamGroup
from polyseme.transfer.fed import Fed, Given, Widths
from polyseme.transfer.finetuned import FineTuned, FineTunedConfig
from polyseme.transfer.frozen import Frozen, FrozenConfig
from polyseme.transfer.joined import Rows
from polyseme.transfer.known import Known
from polyseme.transfer.mix import LayerMix, MixConfig
from polyseme.transfer.sentences import Sentences
from polyseme.transfer.supply import Supply
from polyseme.transfer.units import UnitsConfig, WordFinder
from polyseme.transfer.words import Words, WordsConfig

Place = Literal["input", "output", "both", "middle"]
_PUT = {"input": ["first"], "output": ["last"], "both": ["first", "last"], "middle": ["middle"]}


class FeedConfig(Settings):
    """What a task is fed."""

    words: WordsConfig | None = None
    """Static vectors, the task's x; without it a model's layers are all there is."""
    model: Annotated[FrozenConfig | FineTunedConfig, Field(discriminator="kind")] | None = None
    """The model whose layers are used, and how; without it static vectors are all there is."""
    units: UnitsConfig | None = None
    """Where labels stand at characters: how words are found in them. Both words and the model then
    read these words, and each character takes the vectors of its own."""
    mix: MixConfig = MixConfig()
    """How layers become one vector; each place learns a mix of its own."""
    place: Place = "input"
    """Where the layers are put: beside the task's input, beside its output, beside both, or in the
    middle, behind its first layer (TagLM, which takes the top layer: mix.only = -1)."""

    @model_validator(mode="after")
    def _input_is_fed(self) -> "FeedConfig":
        if not (self.words or self.model or self.units):
            raise ValueError("a task needs words, a model, or both")
        if not (self.words or self.units) and self.place not in ("input", "both"):
            raise ValueError(f"place = '{self.place}' leaves the input empty without words")
        return self


def load_model(config: FeedConfig, device: str | None = None) -> Frozen | FineTuned | None:
    """The model whose layers are used, if any. `device`: where a frozen one works."""
    match config.model:
        case FrozenConfig():
            return Frozen.load(config.model, device=device)
        case FineTunedConfig():
            return FineTuned.load(config.model)
    return None


class Feed(nn.Module):
    """Everything between words and a task. What is trained is in its parameters."""

    def __init__(
        self,
        config: FeedConfig,
        words: Words | None,
        units: Words | None,
        model: Frozen | FineTuned | None,
    ) -> None:
        super().__init__()
        self.config = config
        self.words, self.units = words, units
        self._finder = None if config.units is None else WordFinder(config.units)
        self.tuned = model if isinstance(model, FineTuned) else None
        # No module: neither trained nor saved.
        self._frozen = model if isinstance(model, Frozen) else None
        self._layers_width = model.width if model else 0
        places = _PUT[config.place] if model else []
        self.mixes = nn.ModuleDict(
            {place: LayerMix(model.num_layers, config.mix) for place in places if model}
        )

    @classmethod
    def new(
        cls, config: FeedConfig, words: Iterable[str] = (), *, device: str | None = None
    ) -> "Feed":
        """A feed for a task that is yet to be trained; reads the files that the settings name.

        `words`: those of the data that may have a static vector, see `Words.new`. `device`: where
        a frozen model works; everything else goes where the module is put.
        """
        distinct = list(dict.fromkeys(words))
        static = None if config.words is None else Words.new(config.words, distinct)
        units = None if config.units is None else Words.new(config.units.table, distinct)
        return cls(config, static, units, load_model(config, device))

    @classmethod
    def of(cls, config: FeedConfig, known: Known, model: Frozen | FineTuned | None) -> "Feed":
        """A feed whose weights are loaded next: built from what was kept beside them."""
        static = None if config.words is None else Words(config.words, known)
        units = None
        if config.units is not None:
            units = Words(config.units.table, Known(known.units, "", config.units.width))
        return cls(config, static, units, model)

    @property
    def known(self) -> Known:
        """What must be kept beside the weights."""
        known = Known() if self.words is None else self.words.known
        return known if self.units is None else replace(known, units=self.units.known.words)

    @property
    def widths(self) -> Widths:
        """Dimensions at each place."""
        own = sum(part.width for part in (self.units, self.words) if part is not None)
        put = dict.fromkeys(self.mixes, self._layers_width)
        return Widths(own + put.get("first", 0), put.get("middle", 0), put.get("last", 0))

    def prepare(
        self,
        sentences: Iterable[Sequence[str]],
        *,
        kept: bool = True,
        progress: Progress | None = None,
    ) -> Supply:
        """A data set. `kept=False` for sentences met once, as in prediction: nothing is cached."""
        given = Sentences(sentences)
        spread = self._finder.find(given) if self._finder else None
        read = spread.sentences if spread else given
        frozen, tuned = self._frozen, self.tuned
        return Supply(
            given.lengths,
            words=self.words.source(read) if self.words else None,
            layers=frozen.source(read, kept=kept, progress=progress) if frozen else None,
            reading=tuned.source(read) if tuned else None,
            units=self.units.source(given) if self.units else None,
            spread=spread,
        )

    def prepare_joined(self, rows: Rows) -> Supply:
        """A data set whose rows are one or more sentences each: `<S> a </S> b </S>`.

        Every place is fed, marks included: the first is `<S>`, the last of the mask is `</S>`.
        """
        if self.tuned is None or self.words is not None or self.units is not None:
            raise ConfigError(
                "Joined sentences need a fine-tuned model and no static vectors, which have none "
                "for the marks: set model.kind = 'finetuned' and leave out words."
            )
        source = self.tuned.joined(rows)
        return Supply(source.lengths, reading=source, num_cut=source.num_cut)

    def forward(self, given: Given, *, step: int | None = None) -> Fed:
        """The vectors at each place.

        `step`: in training the number of the step, from 0; layers that are fine-tuned may begin to
        learn one after the other.
        """
        mask = given.mask
        mixed = self._mix(given, step)
        first = [mixed["first"]] if "first" in mixed else []
        if self.words is not None:
            assert given.spelt is not None
            first = [self.words(given.spelt), *first]
        if self.units is not None:
            assert given.units is not None
            first = [self.units(given.units), *first]
        whole = torch.cat(first, dim=-1) if len(first) > 1 else first[0]
        others = {place: mixed[place] * mask[..., None] for place in mixed if place != "first"}
        return Fed(whole * mask[..., None], mask, **others)

    def _mix(self, given: Given, step: int | None) -> dict[str, Tensor]:
        layers: Tensor
        if self.tuned is not None:
            layers = self.tuned(given.reading, step=step)
        elif given.layers is not None:
            layers = given.layers.float().permute(2, 0, 1, 3)  # (L, B, T, D)
        else:
            return {}
        return {place: mix(layers) for place, mix in self.mixes.items()}

    def penalty(self) -> Tensor:
        """What the task adds to its loss, once a step: the mixes' pull towards the average."""
        own = [mix.penalty() for mix in self.mixes.values() if isinstance(mix, LayerMix)]
        return torch.stack(own).sum() if own else torch.zeros(())

    def told(self) -> dict[str, Any]:
        """What each place's mix has learned, as numbers."""
        return {p: mix.told() for p, mix in self.mixes.items() if isinstance(mix, LayerMix)}

    def param_groups(self) -> dict[str, ParamGroup]:
        """How each parameter that is ever trained is to be trained, by its name in this module."""
        found = {
            name: ParamGroup(weight_decay=name not in ("words.table", "units.table"))
            for name, parameter in self.named_parameters()
            if parameter.requires_grad and not name.startswith("tuned.")
        }
        if self.tuned is not None:
            found |= {f"tuned.{name}": rate for name, rate in self.tuned.param_groups().items()}
        return found

    def fingerprint(self) -> dict[str, Any]:
        """What must be the same for a run to be continued."""
        model = self._frozen or self.tuned
        # Where a model or vectors lie changes no number; which ones they are, their hashes tell.
        where: Any = {
            "model": {"model": True, "cache": {"folder", "max_gigabytes"}},
            "words": {"vectors": {"path", "model"}},
            "units": {"words_like"},
        }
        known = canonical_json(self.known.as_json()).encode()
        return {
            "settings": self.config.model_dump(mode="json", exclude=where),
            "model": model.model_hash if model else None,
            "known": hashlib.sha256(known).hexdigest(),
            "words_found": dict(self._finder.preparation) if self._finder else None,
        }

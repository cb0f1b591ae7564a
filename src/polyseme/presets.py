"""word2vec, ELMo, GPT, BERT and their neighbours as values: the only place that knows their names.

A preset is a model's settings with the batches and the learning rate that suit it. Sizes of the
published models are from their options files; those called mini were tuned on two processor cores,
see docs/experiments.md.
"""

from polyseme.batches.lexicon import LexiconConfig
from polyseme.batches.stream import BatchConfig
from polyseme.config import Settings
from polyseme.encoders.characters import CharactersConfig, FilterConfig
from polyseme.encoders.encoder import EncoderConfig, NoContextConfig
from polyseme.encoders.inputs import CharacterInputConfig, FusedInputConfig, LookupInputConfig
from polyseme.encoders.lstm import LstmConfig
from polyseme.encoders.transformer import TransformerConfig
from polyseme.model import ModelConfig
from polyseme.objectives.bidirectional import BidirectionalConfig
from polyseme.objectives.causal import CausalConfig
from polyseme.objectives.masked import MaskedConfig
from polyseme.objectives.neighbours import NeighboursConfig
from polyseme.objectives.softmaxes import FullSoftmaxConfig, SampledSoftmaxConfig


class Preset(Settings):
    """A model with what it takes to train it."""

    about: str
    """What it is, in one line."""
    model: ModelConfig
    """Words, encoder, objective."""
    batches: BatchConfig = BatchConfig()
    """How much text a step sees."""
    learning_rate: float = 2e-3
    """The highest learning rate."""


_CLIP = 3.0  # as published: keeps a run alive through a bad batch


def _published(width: int, cells: int, highways: int) -> ModelConfig:
    """The models that came with the paper: bytes in, 793,471 words out, 8,192 of them sampled."""
    return ModelConfig(
        lexicon=LexiconConfig(characters="bytes", size=800_000),
        encoder=EncoderConfig(
            input=CharacterInputConfig(width=width, highways=highways),
            context=LstmConfig(
                width=width, cells=cells, cell_clip=_CLIP, output_clip=_CLIP, dropout=0.1
            ),
            dropout=0.1,
        ),
        objective=BidirectionalConfig(softmax=SampledSoftmaxConfig(samples=8192)),
    )


_MINI_WIDTH = 192
_MINI_BATCHES = BatchConfig(words=2048)  # small: steps teach more than words do, at this size
_MINI_LSTM_RATE, _MINI_TRANSFORMER_RATE = 3e-3, 1e-3
_MINI_WORDS = LexiconConfig(size=40_000)
_MINI_SOFTMAX = SampledSoftmaxConfig(samples=4096, tied=True)
_MINI_INPUT = FusedInputConfig(
    lookup=_MINI_WIDTH,
    characters=CharactersConfig(
        width=64,
        filters=tuple(
            FilterConfig(width=width, number=number)
            for width, number in ((1, 16), (2, 32), (3, 64), (4, 64), (5, 64))
        ),
        highways=1,
    ),
)


def _mini(
    about: str,
    context: LstmConfig | TransformerConfig,
    objective: BidirectionalConfig | CausalConfig | MaskedConfig,
) -> Preset:
    """The same words, input and batches for all, so that only encoder and objective differ."""
    encoder = EncoderConfig.model_validate(
        {
            "input": _MINI_INPUT,
            "context": context,
            "direction": objective.needs,
            "segments": isinstance(objective, MaskedConfig) and objective.next_sentence,
        }
    )
    is_lstm = isinstance(context, LstmConfig)
    return Preset(
        about=about,
        model=ModelConfig(lexicon=_MINI_WORDS, encoder=encoder, objective=objective),
        batches=_MINI_BATCHES,
        learning_rate=_MINI_LSTM_RATE if is_lstm else _MINI_TRANSFORMER_RATE,
    )


_MINI_LSTM = LstmConfig(width=_MINI_WIDTH, cells=768, cell_clip=_CLIP, output_clip=_CLIP)
_MINI_TRANSFORMER = TransformerConfig(layers=4, width=_MINI_WIDTH, heads=4, inner=768)

PRESETS: dict[str, Preset] = {
    "elmo-original": Preset(
        about="ELMo as published: 2 x 4096 cells, 512 dimensions per direction, bytes.",
        model=_published(512, 4096, 2),
    ),
    "elmo-medium": Preset(
        about="The published medium model: 2 x 2048 cells, 256 dimensions per direction.",
        model=_published(256, 2048, 1),
    ),
    "elmo-small": Preset(
        about="The published small model: 2 x 1024 cells, 128 dimensions per direction.",
        model=_published(128, 1024, 1),
    ),
    "elmo-mini": _mini(
        "ELMo that trains in two hours on two processor cores; words and characters.",
        _MINI_LSTM,
        BidirectionalConfig(softmax=_MINI_SOFTMAX),
    ),
    "elmo-teaching": Preset(
        about="ELMo for the classroom: word 200 + character 100, 64 dimensions per direction.",
        model=ModelConfig(
            lexicon=LexiconConfig(size=20_000),
            encoder=EncoderConfig(
                input=FusedInputConfig(
                    lookup=200,
                    characters=CharactersConfig(
                        width=100, filters=(FilterConfig(width=3, number=100),), highways=1
                    ),
                ),
                context=LstmConfig(width=64, cells=None),
            ),
            objective=BidirectionalConfig(softmax=FullSoftmaxConfig()),
        ),
        batches=BatchConfig(words=128 * 21),
    ),
    "elmo-transformer": _mini(
        "ELMo with two Transformers in place of two LSTMs.",
        _MINI_TRANSFORMER,
        BidirectionalConfig(softmax=_MINI_SOFTMAX),
    ),
    "lstm-masked": _mini(
        "BERT's hidden words on an LSTM that reads both ways in every layer.",
        _MINI_LSTM,
        MaskedConfig(softmax=_MINI_SOFTMAX, next_sentence=False),
    ),
    "gpt-mini": _mini(
        "GPT: a Transformer that reads forward.",
        _MINI_TRANSFORMER,
        CausalConfig(softmax=_MINI_SOFTMAX),
    ),
    "bert-mini": _mini(
        "BERT: a Transformer that sees both sides, hidden words, next sentence.",
        _MINI_TRANSFORMER,
        MaskedConfig(softmax=_MINI_SOFTMAX),
    ),
    "word2vec": Preset(
        about="word2vec: one vector for each word, from its neighbours.",
        model=ModelConfig(
            lexicon=LexiconConfig(size=40_000, characters="none"),
            encoder=EncoderConfig(
                input=LookupInputConfig(width=300),
                context=NoContextConfig(width=300),
                direction="forward",
            ),
            objective=NeighboursConfig(softmax=SampledSoftmaxConfig(samples=1024)),
        ),
        batches=BatchConfig(words=16_384),
    ),
}

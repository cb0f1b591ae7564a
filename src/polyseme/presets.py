"""NNLM, word2vec, ELMo, GPT, BERT and their neighbours as values: nothing else knows their names.

A preset is a model's settings with the batches and the learning rate that suit it. Sizes of the
published models are from their options files; those called mini were tuned on two processor cores,
see docs/experiments.md.
"""

from polyseme.config import Settings
from polyseme.data.stream import BatchConfig
from polyseme.data.vocabulary import VocabularyConfig
from polyseme.encoders.encoder import EncoderConfig, NoContextualizerConfig
from polyseme.encoders.feedforward import FeedForwardConfig
from polyseme.encoders.inputs import (
    CharacterInputConfig,
    CharactersConfig,
    FilterConfig,
    WordCharacterInputConfig,
    WordInputConfig,
)
from polyseme.encoders.lstm import LstmConfig
from polyseme.encoders.transformer import TransformerConfig
from polyseme.model import ModelConfig
from polyseme.objectives.bidirectional import BidirectionalConfig, CausalConfig
from polyseme.objectives.masked import MaskedConfig
from polyseme.objectives.softmaxes import FullSoftmaxConfig, SampledSoftmaxConfig
from polyseme.objectives.word2vec import Word2VecConfig


class Preset(Settings):
    """A model's settings, with the batches and the learning rate that suit it."""

    about: str
    """What it is, in one line."""
    model: ModelConfig
    """Words, encoder, objective."""
    batches: BatchConfig = BatchConfig()
    """How much text a step sees."""
    learning_rate: float = 2e-3
    """The peak learning rate."""


_CLIP = 3.0  # as published: keeps a run alive through a bad batch


def _published(*, dim: int, hidden_size: int, num_highway_layers: int) -> ModelConfig:
    """The models that came with the paper: bytes in, 793,471 words out, 8,192 of them sampled."""
    return ModelConfig(
        vocabulary=VocabularyConfig(characters="bytes", size=800_000),
        encoder=EncoderConfig(
            input=CharacterInputConfig(dim=dim, num_highway_layers=num_highway_layers),
            contextualizer=LstmConfig(
                proj_size=dim,
                hidden_size=hidden_size,
                cell_clip=_CLIP,
                output_clip=_CLIP,
                dropout=0.1,
            ),
            dropout=0.1,
        ),
        objective=BidirectionalConfig(softmax=SampledSoftmaxConfig(num_samples=8192)),
    )


_MINI_DIM = 192
_MINI_BATCHES = BatchConfig(words=2048)  # small: steps teach more than words do, at this size
_MINI_LSTM_RATE, _MINI_TRANSFORMER_RATE = 3e-3, 1e-3
_MINI_WORDS = VocabularyConfig(size=40_000)
_MINI_SOFTMAX = SampledSoftmaxConfig(num_samples=4096, tied=True)
_MINI_INPUT = WordCharacterInputConfig(
    word_dim=_MINI_DIM,
    characters=CharactersConfig(
        dim=64,
        filters=tuple(
            FilterConfig(width=width, num_filters=number)
            for width, number in ((1, 16), (2, 32), (3, 64), (4, 64), (5, 64))
        ),
        num_highway_layers=1,
    ),
)


def _mini(
    about: str,
    contextualizer: LstmConfig | TransformerConfig | FeedForwardConfig,
    objective: BidirectionalConfig | CausalConfig | MaskedConfig,
) -> Preset:
    """The same words, input and batches for all, so that only encoder and objective differ."""
    encoder = EncoderConfig.model_validate(
        {
            "input": _MINI_INPUT,
            "contextualizer": contextualizer,
            "direction": objective.direction,
            "segments": isinstance(objective, MaskedConfig) and objective.next_sentence,
        }
    )
    is_transformer = isinstance(contextualizer, TransformerConfig)
    return Preset(
        about=about,
        model=ModelConfig(vocabulary=_MINI_WORDS, encoder=encoder, objective=objective),
        batches=_MINI_BATCHES,
        learning_rate=_MINI_TRANSFORMER_RATE if is_transformer else _MINI_LSTM_RATE,
    )


_MINI_LSTM = LstmConfig(proj_size=_MINI_DIM, hidden_size=768, cell_clip=_CLIP, output_clip=_CLIP)
_MINI_TRANSFORMER = TransformerConfig(num_layers=4, dim=_MINI_DIM, num_heads=4, ffn_dim=768)

PRESETS: dict[str, Preset] = {
    "elmo-original": Preset(
        about="ELMo as published: 2 x 4096 cells, 512 dimensions per direction, bytes.",
        model=_published(dim=512, hidden_size=4096, num_highway_layers=2),
    ),
    "elmo-medium": Preset(
        about="The published medium model: 2 x 2048 cells, 256 dimensions per direction.",
        model=_published(dim=256, hidden_size=2048, num_highway_layers=1),
    ),
    "elmo-small": Preset(
        about="The published small model: 2 x 1024 cells, 128 dimensions per direction.",
        model=_published(dim=128, hidden_size=1024, num_highway_layers=1),
    ),
    "elmo-mini": _mini(
        "ELMo that trains in two hours on two processor cores; words and characters.",
        _MINI_LSTM,
        BidirectionalConfig(softmax=_MINI_SOFTMAX),
    ),
    "elmo-teaching": Preset(
        about="ELMo for the classroom: word 200 + character 100, 64 dimensions per direction.",
        model=ModelConfig(
            vocabulary=VocabularyConfig(size=20_000),
            encoder=EncoderConfig(
                input=WordCharacterInputConfig(
                    word_dim=200,
                    characters=CharactersConfig(
                        dim=100,
                        filters=(FilterConfig(width=3, num_filters=100),),
                        num_highway_layers=1,
                    ),
                ),
                contextualizer=LstmConfig(proj_size=64, hidden_size=None),
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
        "BERT's masked words on an LSTM that reads both ways in every layer.",
        _MINI_LSTM,
        MaskedConfig(softmax=_MINI_SOFTMAX, next_sentence=False),
    ),
    "nnlm": _mini(
        "NNLM (Bengio 2003): the next word from the last four, by one hidden layer.",
        FeedForwardConfig(dim=_MINI_DIM),
        CausalConfig(softmax=_MINI_SOFTMAX),
    ),
    "gpt-mini": _mini(
        "GPT: a causal Transformer.",
        _MINI_TRANSFORMER,
        CausalConfig(softmax=_MINI_SOFTMAX),
    ),
    "bert-mini": _mini(
        "BERT: a Transformer that sees both sides, masked words, next sentence.",
        _MINI_TRANSFORMER,
        MaskedConfig(softmax=_MINI_SOFTMAX),
    ),
    "word2vec": Preset(
        about="word2vec: one vector for each word, from its neighbours.",
        model=ModelConfig(
            vocabulary=VocabularyConfig(size=40_000, characters="none"),
            encoder=EncoderConfig(
                input=WordInputConfig(dim=300),
                contextualizer=NoContextualizerConfig(dim=300),
                direction="forward",
            ),
            objective=Word2VecConfig(softmax=SampledSoftmaxConfig(num_samples=1024)),
        ),
        batches=BatchConfig(words=16_384),
    ),
}

"""Small folders of Hugging Face, with random weights and tokenizers of a few words."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from required import need_package

from polyseme.embedding.hf.embedder import HfEmbedder
from polyseme.embedding.hf.folder import HfFolder

transformers: Any = need_package("transformers")
tokenizers: Any = need_package("tokenizers")

KINDS = ("bert", "roberta", "modernbert")
TEXT = "she plays the piano . it rains on the bank of the river , and they play on ."
SENTENCES = [
    ["she", "plays", "the", "piano", "."],
    ["rain"],
    ["unseen", "it", "rains", "on", "the", "riverbank", "!"],
    ["they", "play", "on", "and", "on", "."],
    ["piano"],
]
MAX_TOKENS = 24
"""Of each of these models, special tokens counted."""
_SIZES = {"num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
_LETTERS = "abcdefghijklmnopqrstuvwxyz.,!"


def make_folder(kind: str, folder: Path, **changes: Any) -> Path:
    """A folder as `save_pretrained` leaves it; the same weights at every call."""
    make = _wordpiece if kind in ("bert", "t5") else _byte_level
    tokenizer = make()
    tokenizer.save_pretrained(folder)
    ids = {"pad_token_id": tokenizer.pad_token_id, "bos_token_id": 0, "eos_token_id": 2}
    told = {"vocab_size": len(tokenizer), "hidden_size": 24, **_SIZES, **ids, **changes}
    config = _CONFIGS[kind](told)
    torch.manual_seed(7)
    network = transformers.AutoModel.from_config(config)
    with torch.no_grad():
        for parameter in network.parameters():  # larger than usual, so that layers differ
            parameter.add_(torch.randn_like(parameter) * 0.1)
    network.save_pretrained(folder)
    return folder


def embedder_of(folder: Path, **options: Any) -> HfEmbedder:
    return HfEmbedder(HfFolder.open(folder), **{"device": "cpu", **options})


def network_of(folder: Path) -> Any:
    """The network itself, for whoever wants to find a vector in another way."""
    return transformers.AutoModel.from_pretrained(folder, local_files_only=True).eval()


def tokenizer_of(folder: Path) -> Any:
    return transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)


def long_sentence(length: int) -> list[str]:
    words = TEXT.split()
    return [words[(3 * n + n // 7) % len(words)] for n in range(length)]


def _bert(told: dict[str, Any]) -> Any:
    return transformers.BertConfig(**{"max_position_embeddings": MAX_TOKENS, **told})


def _roberta(told: dict[str, Any]) -> Any:
    # Positions are counted from behind that of padding: two are never used.
    return transformers.RobertaConfig(**{"max_position_embeddings": MAX_TOKENS + 2, **told})


def _modernbert(told: dict[str, Any]) -> Any:
    own = {"max_position_embeddings": MAX_TOKENS, "local_attention": 8, "cls_token_id": 0}
    return transformers.ModernBertConfig(**{**own, "sep_token_id": 2, **told})


def _t5(told: dict[str, Any]) -> Any:
    sizes = {"vocab_size": told["vocab_size"], "d_model": 24, "d_ff": 48, "d_kv": 6}
    return transformers.T5Config(**sizes, num_layers=2, num_heads=4, pad_token_id=0)


_CONFIGS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "bert": _bert,
    "roberta": _roberta,
    "modernbert": _modernbert,
    "t5": _t5,
}


def _wordpiece() -> Any:
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    parts = ["play", "##s", "pian", "##o", "river", "##bank", "the", "it", "rain"]
    pieces = [*special, *_LETTERS, *(f"##{letter}" for letter in _LETTERS), *parts]
    ids = {piece: number for number, piece in enumerate(dict.fromkeys(pieces))}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(ids, unk_token="[UNK]"))
    tokenizer.normalizer = tokenizers.normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    return _finished(tokenizer, special)


def _byte_level() -> Any:
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=290,
        special_tokens=special,
        initial_alphabet=sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator([TEXT], trainer)
    pad, unk, begin, end, mask = special[1], special[3], special[0], special[2], special[4]
    return _finished(tokenizer, [pad, unk, begin, end, mask])


def _finished(tokenizer: Any, special: Sequence[str]) -> Any:
    """With special tokens around each sentence, in the form that transformers reads."""
    pad, unk, begin, end, mask = special
    ids = [(name, tokenizer.token_to_id(name)) for name in (begin, end)]
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single=f"{begin} $A {end}", pair=f"{begin} $A {end} $B:1 {end}:1", special_tokens=ids
    )
    names = {"pad_token": pad, "unk_token": unk, "mask_token": mask}
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, cls_token=begin, sep_token=end, **names
    )

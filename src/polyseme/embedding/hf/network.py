"""An encoder and its tokenizer, by transformers (extra [hf]): found and loaded, words in tokens.

    in   a folder, or a name in that library's own cache; sentences as lists of words
    out  `HfNetwork`: token ids (B, S) -> every layer (B, S, D); a task may train it further
         `Subwords`: for each sentence its token ids, and which word each of them is a part of

Nothing is fetched unless it is asked for, and no code of the folder is run. transformers' own
messages are held back while a model is loaded: what matters of them is an error here.

Each word is tokenized by itself, so a token is never part of two words. A space goes before a word
as in running text: many tokenizers have other tokens for the beginning of a word than for its
inside. Long sentences are read in windows; special tokens are put around each.
"""

import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from shlex import quote
from typing import Any, NamedTuple

import numpy as np
import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from polyseme.data.batch import Integers
from polyseme.embedding.hf.folder import HfFolder
from polyseme.errors import ModelError, extra_needed_for

_REPOSITORY = re.compile(r"\w[\w.-]*/\w[\w.-]*")  # OWNER/MODEL
# Neither pickle nor code: what would not be read is not fetched.
_WANTED = ["*.json", "*.txt", "*.model", "*.safetensors"]


def find_folder(name: str, *, download: bool = False) -> Path:
    """The folder that is meant by `hf:NAME`: itself, or where the cache has a model so named."""
    folder = Path(name)
    if folder.is_dir() or not _REPOSITORY.fullmatch(name):
        return folder  # whoever opens it says what is wrong with it
    import_transformers()  # which brings the library that knows the cache
    import huggingface_hub

    try:
        found = huggingface_hub.snapshot_download(
            name, local_files_only=not download, allow_patterns=_WANTED
        )
    except (OSError, ValueError) as error:
        if download:
            raise ModelError(f"{name} cannot be fetched: {error}") from error
        raise ModelError(
            f"There is no folder {quote(name)}, nor has Hugging Face's cache a model of this name. "
            f"Fetch one with: hf download OWNER/MODEL --local-dir {quote(name)}"
        ) from error
    return Path(found)


# Scripts written without spaces: Thai, Lao, Myanmar, Khmer, CJK punctuation, kana, Han and their
# wide forms. Other encoders were trained on such text as it is, so no space goes there.
_NO_SPACES = (
    (0x0E00, 0x0EFF),
    (0x1000, 0x109F),
    (0x1780, 0x17FF),
    (0x2E80, 0x312F),
    (0x31A0, 0x9FFF),
    (0xF900, 0xFAFF),
    (0xFF00, 0xFFEF),
    (0x20000, 0x3FFFF),
)


class TokenWindow(NamedTuple):
    """Words `begin` to `end` are read at once; the vectors of `first` to `last` are taken."""

    begin: int
    end: int
    first: int
    last: int


@dataclass(frozen=True, eq=False)
class Subwords:
    """A sentence as an encoder reads it, special tokens apart."""

    ids: Integers  # (S,)
    counts: Integers  # (T,) tokens of each word; 0 where the tokenizer has none for it
    before: tuple[int, ...]
    after: tuple[int, ...]
    """Ids of the special tokens around it."""
    unread_characters: int
    """At the ends of words that have more tokens than are read at once."""

    @property
    def starts(self) -> Integers:
        """(T,) where each word's tokens begin."""
        starts: Integers = np.cumsum(self.counts) - self.counts
        return starts

    @property
    def num_unread(self) -> int:
        """Words without a token: nothing is known of them but that they are there."""
        return int((self.counts == 0).sum())

    def row(self, window: TokenWindow) -> list[int]:
        """The ids of a window, with its special tokens."""
        ends = np.cumsum(self.counts)
        begin = int(ends[window.begin] - self.counts[window.begin])
        inside = self.ids[begin : int(ends[window.end - 1])]
        return [*self.before, *inside.tolist(), *self.after]


class SubwordTokenizer:
    """Splits words into the subword tokens of an encoder."""

    def __init__(self, tokenizer: Any, *, max_tokens: int) -> None:
        self._tokenizer = tokenizer
        tokenizer.no_truncation()
        tokenizer.no_padding()
        # A word with the same characters as a special token, such as [SEP], is a word.
        tokenizer.encode_special_tokens = True
        self.max_tokens = max(1, max_tokens - int(tokenizer.num_special_tokens_to_add(False)))
        """Tokens that are read at once, special tokens not counted."""
        self.max_of_pair = max(2, max_tokens - int(tokenizer.num_special_tokens_to_add(True)))
        """The same of two sentences that are read as one sequence."""

    def __call__(self, sentences: Sequence[Sequence[str]]) -> list[Subwords]:
        """Each sentence in tokens."""
        spaced = [with_spaces(words) for words in sentences]
        found = self._tokenizer.encode_batch(spaced, is_pretokenized=True)
        return [self._subwords(words, each) for words, each in zip(spaced, found, strict=True)]

    def sequence(self, row: Sequence[Sequence[str]]) -> tuple[list[int], list[int]]:
        """One sentence or two as the encoder was taught to read them: the ids, special tokens among
        them, and the sentence of each as the encoder numbers it."""
        found = self._tokenizer.encode(*map(with_spaces, row), is_pretokenized=True)
        return found.ids, found.type_ids

    def _subwords(self, words: Sequence[str], encoding: Any) -> Subwords:
        which = np.array([-1 if n is None else n for n in encoding.word_ids], np.int64)
        ids = np.array(encoding.ids, np.int64)
        inside = np.flatnonzero(which >= 0)
        first, last = (int(inside[0]), int(inside[-1]) + 1) if len(inside) else (len(ids), len(ids))
        which = which[inside]
        counts: Integers = np.bincount(which, minlength=len(words))
        unread = 0
        if counts.max(initial=0) > self.max_tokens:
            nth = np.arange(len(which)) - (np.cumsum(counts) - counts)[which]
            for word in np.flatnonzero(counts > self.max_tokens).tolist():
                at = inside[which == word][self.max_tokens - 1]
                unread += len(words[word]) - encoding.offsets[at][1]
            inside = inside[nth < self.max_tokens]
            counts = np.minimum(counts, self.max_tokens)
        around = tuple(ids[:first].tolist()), tuple(ids[last:].tolist())
        return Subwords(ids[inside], counts, *around, unread)


def with_spaces(words: Sequence[str]) -> list[str]:
    """Each word with the space before it that running text would have there."""
    spaced = list(words[:1])
    for before, word in pairwise(words):
        is_close = _is_without_spaces(before[-1]) or _is_without_spaces(word[0])
        spaced.append(word if is_close else f" {word}")
    return spaced


def _is_without_spaces(character: str) -> bool:
    return any(first <= ord(character) <= last for first, last in _NO_SPACES)


def windows_of(counts: Integers, max_tokens: int) -> list[TokenWindow]:
    """A sentence whose words have so many tokens, in windows of at most `max_tokens`.

    Successive windows share up to a quarter of their tokens. Of the words that they share, the
    first half is taken from the window before and the second from the window after, so that each
    word is taken where it has more context. A word is never cut.
    """
    ends: Integers = np.concatenate([[0], np.cumsum(counts)])  # tokens before each word
    spans = [_fill(ends, 0, max_tokens)]
    while spans[-1][1] < len(counts):
        begin, end = spans[-1]
        room = min(max_tokens // 4, max_tokens - int(counts[end]))
        shared = int(np.searchsorted(ends, ends[end] - room))
        spans.append(_fill(ends, min(max(shared, begin + 1), end), max_tokens))
    middles = [
        max(begin, int(np.searchsorted(ends, (ends[begin] + ends[end]) / 2)))
        for (_, end), (begin, _) in pairwise(spans)
    ]
    edges = [0, *middles, len(counts)]
    return [TokenWindow(*span, *edges[n : n + 2]) for n, span in enumerate(spans)]


def _fill(ends: Integers, begin: int, max_tokens: int) -> tuple[int, int]:
    """As many words from `begin` on as have room in a window."""
    return begin, int(np.searchsorted(ends, ends[begin] + max_tokens, side="right")) - 1


_NUMBERED = re.compile(r"\.(\d+)\.")  # network.encoder.layer.3.output.dense.weight
_USUAL_TOKENS = 512
"""Read at once by encoders that set no limit, such as those with relative positions."""
_FREE_WEIGHTS = 1 << 24
"""Numbers a network may have beyond its weights: poolers are often not in the file."""
# What a network may raise where it cannot be built from its settings, or cannot read mere text.
_MISFITS = (
    *(TypeError, ValueError, RuntimeError, AttributeError, KeyError, IndexError, OSError),
    *(ImportError, AssertionError, ArithmeticError, SafetensorError),
)


class HfNetwork(nn.Module):
    """An encoder, as it was published: it is read, or fine-tuned with a task."""

    def __init__(self, network: Any, *, device: str) -> None:
        super().__init__()
        if getattr(network, "pooler", None) is not None:
            network.pooler = None  # reads the first token for a task of its own
        self.network = network.to(device)
        self.eval()
        try:
            with torch.no_grad():
                layers = self(torch.zeros(1, 2, dtype=torch.int64, device=device))
            widths = {layer.shape[-1] for layer in layers if layer.shape[:2] == (1, 2)}
        except _MISFITS as error:
            raise ModelError(f"This model does not read plain text: {error}") from error
        if len(widths) != 1 or not all(layer.shape[:2] == (1, 2) for layer in layers):
            shapes = [tuple(layer.shape) for layer in layers]
            raise ModelError(f"This model gives no vector of each token in each layer: {shapes}.")
        self.num_layers: int = len(layers)
        self.dim: int = widths.pop()
        """Layers, the input counted; and dimensions of their vectors."""

    def layer_of(self, parameter: str) -> int:
        """The layer that a parameter makes, by its name in here.

        Networks have their parts in the order in which they are used: what stands before the first
        numbered layer makes the input, and what stands behind them belongs to the top.
        """
        names = [name for name, _ in self.named_parameters()]
        numbers = [_NUMBERED.search(name) for name in names]
        first = next((at for at, found in enumerate(numbers) if found), len(names))
        at = names.index(parameter)
        if (found := numbers[at]) is not None:
            return min(1 + int(found[1]), self.num_layers - 1)
        return 0 if at < first else self.num_layers - 1

    def forward(
        self, ids: Tensor, mask: Tensor | None = None, segments: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        """Token ids (B, S) to L layers (B, S, D).

        `mask`: 0 at padding, where there is some. `segments`: the sentence of each token, for
        encoders that tell two apart.
        """
        told = {} if segments is None or not self.has_segments else {"token_type_ids": segments}
        found = self.network(
            input_ids=ids,
            attention_mask=torch.ones_like(ids) if mask is None else mask,
            output_hidden_states=True,
            return_dict=True,
            **told,
        )
        # The top layer is what the encoder puts out: some have one more norm behind it.
        return (*found.hidden_states[:-1], found.last_hidden_state)

    @property
    def has_segments(self) -> bool:
        """Whether the first and second sentence of a pair have vectors of their own."""
        return (getattr(self.network.config, "type_vocab_size", 0) or 0) > 1

    @property
    def padding_id(self) -> int:
        """What stands behind the end of a sequence; from it RoBERTa knows where positions end."""
        return getattr(self.network.config, "pad_token_id", None) or 0

    @property
    def vocab_size(self) -> int | None:
        """How many different tokens it has vectors for, if that can be told."""
        table = self.network.get_input_embeddings()
        return table.num_embeddings if isinstance(table, nn.Embedding) else None

    @property
    def max_tokens(self) -> int | None:
        """The longest sequence there are positions for, special tokens counted."""
        limits = [getattr(self.network.config, "max_position_embeddings", None)]
        for name, module in self.network.named_modules():
            if name.endswith("position_embeddings") and isinstance(module, nn.Embedding):
                # RoBERTa and its kin count positions from behind the one of padding.
                unused = 0 if module.padding_idx is None else module.padding_idx + 1
                limits.append(module.num_embeddings - unused)
        known = [limit for limit in limits if isinstance(limit, int) and limit > 0]
        return min(known, default=None)


def load_network(folder: HfFolder, *, device: str) -> HfNetwork:
    """The encoder in a folder, in float32."""
    transformers = import_transformers()
    options = {"local_files_only": True, "trust_remote_code": False}
    with _quiet(transformers), torch.random.fork_rng(devices=[]):
        try:
            config = transformers.AutoConfig.from_pretrained(folder.path, **options)
            _check_size(folder, transformers, config)
            network, told = transformers.AutoModel.from_pretrained(
                folder.path,
                config=config,
                use_safetensors=True,
                dtype=torch.float32,
                output_loading_info=True,
                **options,
            )
        except _MISFITS as error:
            raise ModelError(f"{folder.path} holds no model that can be read: {error}") from error
    is_part = bool(getattr(config, "is_encoder_decoder", False))
    _check_whole(folder, told["missing_keys"], is_part=is_part)
    return HfNetwork(network.get_encoder() if is_part else network, device=device)


def load_tokenizer(folder: HfFolder, network: HfNetwork) -> SubwordTokenizer:
    """The tokenizer in a folder, if it can tell which word a token is of."""
    transformers = import_transformers()
    with _quiet(transformers):
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(
                folder.path, local_files_only=True, trust_remote_code=False
            )
        except _MISFITS as error:
            raise ModelError(f"{folder.path} has no tokenizer that can be read: {error}") from error
    if not tokenizer.is_fast:
        raise ModelError(
            f"The tokenizer of {folder.path}, {type(tokenizer).__name__}, is not a 'fast' one: it "
            "cannot map tokens to words (word_ids). Use a model that has a tokenizer.json."
        )
    known, wanted = network.vocab_size, len(tokenizer)
    if known is not None and wanted > known:
        raise ModelError(
            f"The tokenizer of {folder.path} has {wanted:,} tokens, but the encoder has vectors "
            f"for {known:,}: they do not belong together. Copy the whole folder again."
        )
    limits = [tokenizer.model_max_length, network.max_tokens]
    usable = [limit for limit in limits if limit is not None and limit < 1 << 30]
    return SubwordTokenizer(
        tokenizer.backend_tokenizer, max_tokens=min(usable, default=_USUAL_TOKENS)
    )


def import_transformers() -> Any:
    """The library, or an error that says how to install it."""
    with extra_needed_for("A Hugging Face encoder"):
        import transformers
    return transformers


def _check_size(folder: HfFolder, transformers: Any, config: Any) -> None:
    """Refuse a network that is larger than its weights, before memory is taken for it."""
    with torch.device("meta"):
        outline = transformers.AutoModel.from_config(config, trust_remote_code=False)
    numbers = sum(parameter.numel() for parameter in outline.parameters())
    there = sum(file.stat().st_size for file in folder.weights)
    if numbers > there + _FREE_WEIGHTS:  # a number has a byte at least
        raise ModelError(
            f"The weights in {folder.path} do not fit its settings: they have {there:,} bytes, "
            f"and the network {numbers:,} numbers. Copy the whole folder again."
        )


def _check_whole(folder: HfFolder, missing: set[str], *, is_part: bool) -> None:
    """Refuse a network some of whose weights were drawn at random, as none were found for them."""
    lacking = sorted(
        name
        for name in missing
        if "pooler" not in name and not (is_part and name.startswith(("decoder.", "lm_head.")))
    )
    if lacking:
        raise ModelError(
            f"{folder.path} lacks {len(lacking):,} of its tensors, such as {lacking[0]}: vectors "
            "would be random. Copy the whole folder again from where it came."
        )


@contextlib.contextmanager
def _quiet(transformers: Any) -> Iterator[None]:
    """No bars and no reports of what was loaded, for as long as that takes."""
    logging = transformers.utils.logging
    level = logging.get_verbosity()
    hook = logging.set_tqdm_hook(lambda _, args, options: _NoBar(*args, **options))
    logging.set_verbosity(logging.CRITICAL)
    try:
        yield
    finally:
        logging.set_verbosity(level)
        logging.set_tqdm_hook(hook)


class _NoBar:
    """What transformers takes for a progress bar."""

    def __init__(self, steps: Any = None, **_: Any) -> None:
        self._steps = steps

    def __iter__(self) -> Iterator[Any]:
        return iter(self._steps)

    def __enter__(self) -> "_NoBar":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __getattr__(self, _: str) -> Any:
        return lambda *_, **__: None

"""An encoder and its tokenizer out of a folder, by transformers (extra [hf]).

    in   HfFolder
    out  `HfNetwork`: token ids (B, S) -> every layer (B, S, D); `SubwordTokenizer`

Nothing is fetched and no code of the folder is run. transformers' own messages are held back while
a model is loaded: what matters of them is an error here.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from polyseme.embedding.hf.folder import HfFolder
from polyseme.embedding.hf.subwords import SubwordTokenizer
from polyseme.errors import MissingExtraError, ModelError

_USUAL_TOKENS = 512
"""Read at once by encoders that set no limit, such as those with relative positions."""
_FREE_WEIGHTS = 1 << 24
"""Numbers a network may have beyond its weights: poolers are often not in the file."""
# What a network may raise where it cannot be built from its settings, or cannot read mere text.
_MISFITS = (
    *(TypeError, ValueError, RuntimeError, AttributeError, KeyError, IndexError, OSError),
    *(ImportError, AssertionError, ArithmeticError, SafetensorError),
)


class HfNetwork:
    """An encoder that is only read."""

    def __init__(self, network: Any, *, device: str) -> None:
        self._network = network.to(device).eval().requires_grad_(False)
        self._device = device
        try:
            layers = self(torch.zeros(1, 2, dtype=torch.int64))
            widths = {layer.shape[-1] for layer in layers if layer.shape[:2] == (1, 2)}
        except _MISFITS as error:
            raise ModelError(f"This model does not read plain text: {error}") from error
        if len(widths) != 1 or not all(layer.shape[:2] == (1, 2) for layer in layers):
            shapes = [tuple(layer.shape) for layer in layers]
            raise ModelError(f"This model gives no vector of each token in each layer: {shapes}.")
        self.num_layers, self.dim = len(layers), widths.pop()
        """Layers, the input counted; and dimensions of their vectors."""

    def to(self, device: str) -> None:
        """Move it to another device."""
        self._network, self._device = self._network.to(device), device

    @torch.no_grad()
    def __call__(self, ids: Tensor) -> tuple[Tensor, ...]:
        """Token ids (B, S), without padding, to L layers (B, S, D)."""
        ids = ids.to(self._device)
        mask = torch.ones_like(ids)
        found = self._network(
            input_ids=ids, attention_mask=mask, output_hidden_states=True, return_dict=True
        )
        # The top layer is what the encoder puts out: some have one more norm behind it.
        return (*found.hidden_states[:-1], found.last_hidden_state)

    @property
    def vocab_size(self) -> int | None:
        """How many different tokens it has vectors for, if that can be told."""
        table = self._network.get_input_embeddings()
        return table.num_embeddings if isinstance(table, nn.Embedding) else None

    @property
    def max_tokens(self) -> int | None:
        """The longest sequence there are positions for, special tokens counted."""
        limits = [getattr(self._network.config, "max_position_embeddings", None)]
        for name, module in self._network.named_modules():
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
            "cannot tell which word a token is part of (word_ids). Take a model that has a "
            "tokenizer.json."
        )
    known, wanted = network.vocab_size, len(tokenizer)
    if known is not None and wanted > known:
        raise ModelError(
            f"The tokenizer of {folder.path} has {wanted:,} tokens, and the encoder vectors for "
            f"{known:,}: they do not belong together. Copy the whole folder again."
        )
    limits = [tokenizer.model_max_length, network.max_tokens]
    usable = [limit for limit in limits if limit is not None and limit < 1 << 30]
    return SubwordTokenizer(
        tokenizer.backend_tokenizer, max_tokens=min(usable, default=_USUAL_TOKENS)
    )


def import_transformers() -> Any:
    """The library, or an error that says how to install it."""
    try:
        import transformers
    except ImportError as error:
        purpose = "A Hugging Face encoder"
        raise MissingExtraError.of("transformers", extra="hf", purpose=purpose) from error
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

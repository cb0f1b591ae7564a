"""A label for every word: layers with context, then a chain that chooses all labels together.

in   Fed, and the place of a marked word where the labels are about one (semantic roles)
out  scores (B, T, K)
"""

from typing import Literal

from torch import Tensor, nn

from polyseme.config import Settings
from polyseme.tasks.crf import Crf
from polyseme.tasks.networks.context import Context, ContextConfig
from polyseme.tasks.spans import Scheme, Transitions
from polyseme.transfer.fed import Fed, Widths


class TaggingConfig(Settings):
    """Labels for words: names, parts of speech, chunks, roles."""

    kind: Literal["tagging"] = "tagging"
    scheme: Scheme | Literal["none"] = "bio"
    """How spans are written inside the network, whatever the way of the data; what breaks the
    scheme's rules is never predicted. `none`: labels mark no spans, as parts of speech."""
    is_marked: bool = False
    """Whether labels are about one word of the sentence, as roles are about a predicate."""
    leave_out: tuple[str, ...] = ()
    """Kinds of span that are given, not found, and so not counted: V, the predicate."""
    context: ContextConfig = ContextConfig()
    """Layers that read the sentence."""


class Tagger(nn.Module):
    """Emissions by layers with context, transitions by a CRF."""

    def __init__(
        self, config: TaggingConfig, widths: Widths, labels: int, allowed: Transitions | None
    ) -> None:
        super().__init__()
        self.context = Context(config.context, widths, is_marked=config.is_marked)
        self.emit = nn.Linear(self.context.width, labels)
        self.chain = Crf(labels, allowed)

    def scores(self, fed: Fed, marked: Tensor) -> Tensor:
        """(B, T, K)"""
        found: Tensor = self.emit(self.context(fed, marked))
        return found

    def losses(self, scores: Tensor, answers: Tensor, mask: Tensor) -> Tensor:
        """(B, T, K), (B, T), (B, T) -> (B,)"""
        found: Tensor = self.chain(scores, answers, mask)
        return found

    def best(self, scores: Tensor, mask: Tensor) -> Tensor:
        """(B, T, K), (B, T) -> (B, T)"""
        return self.chain.best(scores, mask)[0]

"""What a comparison trains: the variants of a task that differ in their embeddings.

none       vectors of words learned in the task alone
static     the task's static vectors, a word's vector being the same in every sentence
frozen     these, and the layers of the model as it is
finetuned  these, and the layers of the model, fine-tuned

Imported by the command line, so without torch.
"""

from typing import Literal

Variant = Literal["none", "static", "frozen", "finetuned"]

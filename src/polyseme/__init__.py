"""Polyseme: your texts in, every word's meanings out.

Importing this package loads nothing but this file. The rooms are imported by whoever uses
them: `polyseme.text` for corpora, `polyseme.engines` for work over many shards.
"""

__version__ = "0.1.0"

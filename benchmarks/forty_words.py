"""Groups of forty words, unedited: a part of the page of the same name.

    python -m benchmarks.forty_words CORPUS MODEL >> docs/explanation/forty-words.md
    python -m benchmarks.forty_words CORPUS MODEL --words bank,train

Of each word up to 800 uses, drawn by seed, are grouped and named as `polyseme senses` does it.
Words that the corpus has fewer than 40 times are left out, and named.
"""

import argparse
from pathlib import Path

import numpy as np

import polyseme
from polyseme.errors import InputError
from polyseme.meanings.concordance.uses import find_uses
from polyseme.meanings.features.use_encoder import ModelUseEncoder
from polyseme.meanings.groups.senses import find_senses
from polyseme.text.corpus import Corpus

_MOST = 800
WORDS = {
    "en": """
bank bear board car case charge club court fair figure gay kind letter light like match mean mind
net nice note party play post present right spring state train
""",
    "zh": "走 书 先生 生 心 道 打 意思 兵 再 行 国",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("model")
    parser.add_argument("--words", help="instead of the forty, with commas between")
    arguments = parser.parse_args()
    corpus = Corpus.open(arguments.corpus)
    embedder = polyseme.load(arguments.model, threads=1)
    encoder = ModelUseEncoder(embedder)
    words = WORDS[corpus.config.language].split()
    words = arguments.words.split(",") if arguments.words else words
    told, missing = False, []
    for word in words:
        try:
            uses = find_uses(corpus, word)
            chosen = np.random.default_rng(1).permutation(len(uses))[:_MOST]
            senses = find_senses(uses.select(np.sort(chosen)), encoder)
        except InputError:
            missing.append(word)
            continue
        if not told and senses.calibration:
            print(f"{senses.calibration.note}\n\n| word | uses | groups |\n|---|---:|---|")
            told = True
        groups = "<br>".join(
            f"{group.share:.0%} {group.words or '–'}".replace("|", "·").replace("~", "\\~")
            for group in senses.groups
        )
        print(f"| **{word}** | {len(uses):,} | {groups} |", flush=True)
    if missing:
        print(f"\nToo rare here: {', '.join(missing)}.")


if __name__ == "__main__":
    main()

"""How right `prepare --annotate` is on a treebank, and how fast beside embedding its words.

    python -m benchmarks.annotation en en_ewt-ud-test.conllu
    python -m benchmarks.annotation zh zh_gsdsimp-ud-dev.conllu zh_gsdsimp-ud-test.conllu

Words and sentences are those of the treebank, as CoNLL-U has them; a lemma or a part of speech is
right if it is the treebank's. Speed is words per second of processor time in one thread.
"""

import argparse
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from benchmarks.side_by_side import print_facts
from polyseme.devices import one_thread
from polyseme.embedding.loading import load_embedder
from polyseme.errors import ConfigError
from polyseme.storage.installed import default_model, upos_task
from polyseme.tasks.prediction import TaskTagger
from polyseme.text.annotation import Annotator, JiebaTagger, Lemmatizer

Columns = list[list[str]]
_WORD, _LEMMA, _UPOS = 1, 2, 3
_SHOWN = 8


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("language")
    parser.add_argument("treebanks", type=Path, nargs="+")
    parser.add_argument("--task", type=Path, help="as `prepare --upos-task`")
    arguments = parser.parse_args()
    print_facts()
    annotators = _annotators(arguments.language, arguments.task)
    for path in arguments.treebanks:
        sentences = [list(zip(*rows, strict=True)) for rows in _sentences(path)]
        words = [list(each[_WORD]) for each in sentences]
        print(f"\n{path.name}: {sum(map(len, words)):,} words")
        for column, (annotator, load) in annotators.items():
            found, speed = _timed(load, words)
            gold = [value for each in sentences for value in each[column]]
            _print(annotator, gold, [value for each in found for value in each], speed)
        model = default_model(arguments.language)
        with one_thread():
            _, speed = _timed(load_embedder(model).stream, words)
        print(f"  vectors by {model}: {speed:,.0f} words/s")


def _annotators(
    language: str, task: Path | None
) -> dict[int, tuple[Annotator, Callable[[Any], Iterable[Any]]]]:
    is_chinese = language == "zh" and task is None
    tagger = JiebaTagger() if is_chinese else TaskTagger.open(task or upos_task(language))
    found: dict[int, tuple[Annotator, Any]] = {_UPOS: (tagger, tagger.load())}
    try:
        lemmatizer = Lemmatizer(language)
        return {_LEMMA: (lemmatizer, lemmatizer.load()), **found}
    except ConfigError:  # simplemma has none
        return found


def _sentences(path: Path) -> Iterable[Columns]:
    """The lines of words: no comments, no contractions, no empty nodes."""
    for block in path.read_text(encoding="utf-8").strip().split("\n\n"):
        rows = [line.split("\t") for line in block.split("\n") if not line.startswith("#")]
        yield [row for row in rows if row[0].isdigit()]


def _timed(work: Callable[[Any], Iterable[Any]], words: list[list[str]]) -> tuple[list[Any], float]:
    began = time.process_time()
    found = list(work(words))
    return found, sum(map(len, words)) / (time.process_time() - began)


def _print(annotator: Annotator, gold: list[str], found: list[str], speed: float) -> None:
    wrong = Counter((a, b) for a, b in zip(gold, found, strict=True) if a != b)
    folded = sum(a.lower() == b.lower() for a, b in zip(gold, found, strict=True))
    print(f"  {annotator.description}: {1 - wrong.total() / len(gold):.2%} right", end="")
    print(f", {folded / len(gold):.2%} if case is ignored, {speed:,.0f} words/s")
    shown = ", ".join(f"{a} taken for {b} {n}" for (a, b), n in wrong.most_common(_SHOWN))
    print(f"    most often: {shown}")


if __name__ == "__main__":
    main()

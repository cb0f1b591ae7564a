"""What a user should know about a finished corpus, in words that say what to do."""

import itertools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from polyseme.limits import LimitError, parse_json, read_lines
from polyseme.text.corpus import QUARANTINE, Corpus
from polyseme.text.encodings import suggested
from polyseme.text.read_stats import WHOLE_FILES
from polyseme.text.sampling import count_letters, wrong_script
from polyseme.text.sources import LEAVES_FOLDER
from polyseme.text.statistics import most_frequent

_LOOKED_AT = 10_000  # entries of the quarantine
_TOLD = 3
_JUDGED = 1_000  # words, the most frequent ones


def advise(corpus: Corpus) -> list[str]:
    """What the user should know about the result, if anything."""
    counts = corpus.read_stats
    config = corpus.config
    layout = config.layout
    is_plain = any(name.endswith((".txt", ".text")) for name in corpus.manifest["inputs"])
    advice = [_about_links(corpus.manifest["passed_over"])]
    if counts["quarantined"]:
        advice.append(f"What was quarantined is in {corpus.folder / QUARANTINE}, with reasons.")
        advice += unread_files(corpus.folder, counts["quarantine_reasons"])
    if counts["quarantined"] > counts["kept"]:
        advice.append(about_encoding(counts["quarantine_reasons"], config.language))
    advice.append(_about_language(corpus))
    if config.held_out and not counts["held_out_documents"]:
        smaller = (
            " Or define what a document is: --layout articles if blank lines separate documents, "
            "--layout lines if each line is one."
        )
        advice.append(
            f"None of the {counts['documents']:,} documents was held out. Reading words needs "
            "none; to train and evaluate a model, raise --held-out."
            + (smaller if is_plain and layout not in ("articles", "lines") else "")
        )
    if is_plain and layout == "articles" and counts["records"] < 1.2 * counts["documents"]:
        advice.append(
            "Nearly every document has one line only. If blank lines separate paragraphs here, not "
            "documents, use --layout unwrapped."
        )
    return [line for line in advice if line]


def about_encoding(reasons: Mapping[str, int], language: str) -> str:
    """Advice where text was quarantined because its encoding was not the one stated."""
    if not any(reason.startswith("not-utf") for reason in reasons):
        return ""
    return (
        "Most of it is not UTF-8. Say which --encoding it has; for --language "
        f"{language} try {suggested(language)}."
    )


def unread_files(folder: Path, reasons: Mapping[str, int]) -> list[str]:
    """Some of the files that could not be read, or not to the end, each with the reason."""
    if not WHOLE_FILES.intersection(reasons):
        return []
    entries = itertools.islice(_quarantined(folder), _LOOKED_AT)
    told = (
        f"{each['source']}: {each['reason']}: {each['detail']}."
        for each in entries
        if each["reason"] in WHOLE_FILES
    )
    return list(itertools.islice(told, _TOLD))


def _quarantined(folder: Path) -> Iterator[dict[str, str]]:
    for path in sorted((folder / QUARANTINE).glob("*.jsonl")):
        for line in read_lines(path):
            try:
                yield parse_json(line.decode("utf-8"))
            except (LimitError, json.JSONDecodeError, UnicodeError):
                continue  # a line that comes in parts


def _about_links(passed_over: Mapping[str, str]) -> str:
    links = [name for name, reason in passed_over.items() if reason == LEAVES_FOLDER]
    if not links:
        return ""
    more = ", …" if len(links) > 1 else ""
    were = "were" if len(links) > 1 else "was"
    return f"{len(links):,} of the files {were} skipped ({links[0]}{more}): a {LEAVES_FOLDER}."


def _about_language(corpus: Corpus) -> str:
    """A corpus written in another script than its language, by its most frequent words."""
    letters = han = 0
    for word in most_frequent(corpus.vocabulary, _JUDGED):
        of_word, of_these = count_letters(word.word)
        letters, han = letters + of_word * word.count, han + of_these * word.count
    wrong = wrong_script(han / letters if letters else -1.0, corpus.config.language)
    return f"The corpus has {wrong} Then prepare it again with --replace." if wrong else ""

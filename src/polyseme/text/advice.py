"""What a user should know about a finished corpus, in words that say what to do."""

from collections.abc import Mapping

from polyseme.text.corpus import QUARANTINE, Corpus


def advise(corpus: Corpus) -> list[str]:
    """What the user should know about the result, if anything."""
    counts = corpus.read_stats
    layout = corpus.config.layout
    is_plain = any(name.endswith((".txt", ".text")) for name in corpus.manifest["inputs"])
    advice = []
    if counts["quarantined"]:
        advice.append(f"What was quarantined is in {corpus.folder / QUARANTINE}, with reasons.")
    if counts["quarantined"] > counts["kept"]:
        advice.append(about_encoding(counts["quarantine_reasons"]))
    if corpus.config.held_out and not counts["held_out_documents"]:
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


def about_encoding(reasons: Mapping[str, int]) -> str:
    """Advice where text was quarantined because its encoding was not the one stated."""
    if not any(reason.startswith("not-utf") for reason in reasons):
        return ""
    return "Most of it is not UTF-8. Say which --encoding it has; for Chinese try gb18030."

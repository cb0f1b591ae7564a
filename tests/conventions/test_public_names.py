"""What users may build on. A change here is a change for them: say so in CHANGELOG.md."""

import inspect

import polyseme
from polyseme.commands.prepare import PrepareResult
from polyseme.commands.train import TrainResult
from polyseme.embedding.embedder import Embedder
from polyseme.embedding.word_embedder import EmbeddedSentence
from polyseme.meanings.change.vocabulary import VocabularyChange
from polyseme.meanings.concordance.uses import Use, Uses
from polyseme.meanings.groups.senses import Senses
from polyseme.meanings.labels import LabelledUses
from polyseme.meanings.substitutes import Substitutes
from polyseme.meanings.wordlists.word_list import WordList
from polyseme.pretraining.evaluation import Score
from polyseme.pretraining.generation import GeneratedText
from polyseme.pretraining.run import PretrainResult
from polyseme.tasks.families.choice import PredictedChoice
from polyseme.tasks.families.labels import PredictedLabel
from polyseme.tasks.families.question_answering import PredictedAnswer
from polyseme.tasks.families.tagging import PredictedTags

FUNCTIONS = {
    "agreement": "(files, **settings)",
    "judge": ("(corpus, word=None, *, annotators, out, model=None, progress=False, **settings)"),
    "change": "(corpus, word=None, *, model=None, before, after, progress=False, **settings)",
    "collocates": "(corpus, word=None, *, progress=False, **settings)",
    "ngrams": "(corpus, word=None, *, progress=False, **settings)",
    "keywords": "(corpus, *, where=(), against=(), progress=False, **settings)",
    "generate": (
        "(prompts='', *, model=None, samples=1, max_words=50, temperature=1.0, seed=1, **settings)"
    ),
    "senses_over_time": (
        "(corpus, word=None, *, by, periods=4, model=None, progress=False, **settings)"
    ),
    "label": "(corpus, word=None, *, labels, model=None, progress=False, **settings)",
    "index": "(corpus, out, *, model=None, progress=False, **settings)",
    "load": (
        "(model, *, device=None, precision='float32', threads=None, tokenizer_from=None, "
        "pooling='mean', download=False)"
    ),
    "nearest": "(corpus, text, *, model=None, progress=False, **settings)",
    "prepare": "(inputs, out, *, language, progress=False, **settings)",
    "pretrain": "(corpus, out, *, preset='elmo-mini', progress=False, **settings)",
    "same": "(first, second, *, model=None, progress=False, **settings)",
    "score": "(texts, *, model=None, ngram=None, order=3)",
    "senses": "(corpus, word=None, *, model=None, index=None, progress=False, **settings)",
    "substitutes": "(text, *, model=None, word='', top=10)",
    "query": "(corpus, cql, *, where=())",
    "uses": "(corpus, word=None, *, forms=(), regex=None, case_sensitive=False, where=())",
    "vocabulary_change": (
        "(corpus, *, model=None, before, after, words=(), words_file=None, progress=False, "
        "**settings)"
    ),
    "train": "(task, out, *, seeds=(1,), progress=False, **settings)",
}
METHODS = {
    "Corpus.open": "(folder, *, without_shards=False)",
    "Task.load": "(folder, *, model=None, device=None)",
    "Task.predict": "(self, texts, *, probabilities=False)",
}
CLASSES: dict[type, str] = {
    polyseme.Corpus: (
        "address annotators check_files check_same_words config described_shards folder hashes "
        "manifest open preparation read_stats shards vocabulary"
    ),
    PrepareResult: "advice corpus seconds shards_found to_json",
    PretrainResult: "folder is_continued model notes outcome to_json",
    Score: "as_json columns ngram parts total words",
    GeneratedText: "as_json is_finished log_probability prompt text words",
    Senses: (
        "calibration editable edited features grouping groups in_groups labels labels_by_hand "
        "lines log_message map name_source notes num_found problems regrouped source_notes "
        "table to_csv to_json to_pandas uses word"
    ),
    VocabularyChange: (
        "columns false_positives notes of passed_over rows significant table to_csv to_json "
        "to_pandas words"
    ),
    LabelledUses: (
        "learned left_out lines_to_label next right_when_left_out table to_csv to_pandas uses"
    ),
    WordList: (
        "count index json_lines names num_found reference_size table target_size title to_csv "
        "to_pandas uses words"
    ),
    Substitutes: "own to_json use words",
    TrainResult: "config metadata notes score to_json",
    PredictedAnswer: "answer as_json id passage probability question start stop",
    PredictedChoice: "as_json choices probabilities ranking text",
    PredictedTags: "as_json labels marks_spans probabilities segments target_index words",
    PredictedLabel: "as_json label probabilities texts",
    EmbeddedSentence: "ends index sentence_vector starts truncation vectors words",
    Use: "begin document end form metadata sentence_id starts text words",
    Uses: (
        "around attribute columns count forms hashes index matching metadata num_bytes of "
        "places select sentence_ids sentence_rows sentences table to_csv to_pandas words_around"
    ),
    Embedder: (
        "dim embed encode environment fingerprint load max_length normalize num_layers "
        "preparation preprocessor reads_around segmenter similarity stream stream_context to "
        "truncation wv"
    ),
}


def signature(thing: object) -> str:
    """Names and defaults; what they are is for mypy."""
    found = inspect.signature(thing)  # type: ignore[arg-type]
    plain = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for parameter in found.parameters.values()
    ]
    return str(inspect.Signature(plain))


def test_the_package_has_these_names_and_no_others() -> None:
    classes = {"Corpus", "Task"}
    assert set(polyseme.__all__) == {*FUNCTIONS, *classes, "__version__"}
    assert set(polyseme.__all__) <= set(dir(polyseme))
    for name in polyseme.__all__:
        assert getattr(polyseme, name) is not None
    assert not hasattr(polyseme, "anything_else")


def test_functions_take_these_arguments() -> None:
    assert {name: signature(getattr(polyseme, name)) for name in FUNCTIONS} == FUNCTIONS


def test_methods_take_these_arguments() -> None:
    found = {}
    for name in METHODS:
        owner, _, method = name.partition(".")
        found[name] = signature(getattr(getattr(polyseme, owner), method))
    assert found == METHODS


def test_results_have_these_names() -> None:
    for kind, names in CLASSES.items():
        fields = set(getattr(kind, "__dataclass_fields__", {}))
        found = {name for name in {*dir(kind), *fields} if not name.startswith("_")}
        assert found == set(names.split()), kind.__name__

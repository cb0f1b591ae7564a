"""One reader per format of input, and the choice among them."""

from polyseme.text.pieces import Piece
from polyseme.text.records import ReadItems, check_record
from polyseme.text.settings import CorpusConfig


def read_piece(piece: Piece, config: CorpusConfig) -> ReadItems:
    """Every record of a piece, and everything in it that is not one."""
    match piece.source.format:
        case "text":
            from polyseme.text.formats.plain import read
        case "jsonl":
            from polyseme.text.formats.jsonl import read
        case "csv" | "tsv":
            from polyseme.text.formats.table import read
        case "parquet":
            from polyseme.text.formats.parquet import read
        case "conllu":
            from polyseme.text.formats.conllu import read
        case "vertical":
            from polyseme.text.formats.vertical import read
        case "tei":
            from polyseme.text.formats.tei import read
        case "html":
            from polyseme.text.formats.markup import read_html as read
        case "epub":
            from polyseme.text.formats.markup import read_epub as read
        case "docx":
            from polyseme.text.formats.markup import read_docx as read
        case "pdf":
            from polyseme.text.formats.pdf import read
    return map(check_record, read(piece, config))

"""One reader per format of input, and the choice among them."""

from polyseme.text.plan import Piece
from polyseme.text.records import ReadItems, check_record
from polyseme.text.settings import CorpusConfig


def read_piece(piece: Piece, config: CorpusConfig) -> ReadItems:
    """Every record of a piece, and everything in it that is not one."""
    match piece.source.format:
        case "text":
            from polyseme.text.formats.lines import read_plain as read
        case "jsonl":
            from polyseme.text.formats.tables import read_jsonl as read
        case "csv" | "tsv":
            from polyseme.text.formats.tables import read_table as read
        case "parquet":
            from polyseme.text.formats.tables import read
        case "conllu":
            from polyseme.text.formats.marked import read_conllu as read
        case "vertical":
            from polyseme.text.formats.marked import read_vertical as read
        case "tei":
            from polyseme.text.formats.markup import read_tei as read
        case "html":
            from polyseme.text.formats.markup import read_html as read
        case "epub":
            from polyseme.text.formats.markup import read_epub as read
        case "docx":
            from polyseme.text.formats.markup import read_docx as read
        case "pdf":
            from polyseme.text.formats.pdf import read
    return map(check_record, read(piece, config))

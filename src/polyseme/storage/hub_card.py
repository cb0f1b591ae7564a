"""What the Hub shows of a folder: its card, headed by what the Hub's search and filters read.

    in   the manifest of a model or a corpus, and a model's own card
    out  README.md: YAML between two lines of hyphens, then Markdown

Fields and licences are those that the Hub documents (hub/model-cards, hub/repositories-licenses).
"""

import json
import re
from collections.abc import Mapping
from typing import Any

_LICENCES = frozenset({
    "apache-2.0", "mit", "bsd-2-clause", "bsd-3-clause", "gpl-2.0", "gpl-3.0", "lgpl-2.1",
    "lgpl-3.0", "agpl-3.0", "mpl-2.0", "unlicense", "odc-by", "odbl", "pddl", "cc0-1.0",
    "cc-by-2.0", "cc-by-2.5", "cc-by-3.0", "cc-by-4.0", "cc-by-sa-3.0", "cc-by-sa-4.0",
    "cc-by-nc-2.0", "cc-by-nc-3.0", "cc-by-nc-4.0", "cc-by-nd-4.0", "cc-by-nc-nd-3.0",
    "cc-by-nc-nd-4.0", "cc-by-nc-sa-2.0", "cc-by-nc-sa-3.0", "cc-by-nc-sa-4.0",
})  # fmt: skip
"""Those that people state, of the Hub's list; what is none of them is `other`, with its name."""
_HEAD = "---\n"


def model_card(own: str, manifest: Mapping[str, Any]) -> str:
    """A model's own card below its head; one that has a head already stays as it is."""
    if own.startswith(_HEAD):
        return own
    told = _mapping(manifest.get("metadata"))
    fields = {
        "language": _language(_mapping(told.get("corpus")).get("language")),
        "license": _licence(told.get("licence")),
        "license_name": _licence_name(told.get("licence")),
        "library_name": "polyseme",
        "pipeline_tag": "feature-extraction",
        "tags": ["polyseme", "word-embeddings", "contextual-word-embeddings"],
    }
    return _head(fields) + own


def corpus_card(name: str, manifest: Mapping[str, Any]) -> str:
    """The card of a dataset, with its size and how to get it."""
    settings = _mapping(_mapping(manifest.get("preparation")).get("settings"))
    counts = _mapping(manifest.get("read_stats"))
    rows = [
        f"- {counts[key]:,} {key}" for key in ("documents", "sentences", "words") if key in counts
    ]
    fields = {"language": _language(settings.get("language")), "tags": ["polyseme"]}
    pull = f"polyseme pull datasets/{name} --out corpus"
    body = [f"# {name}", "", "A corpus prepared with Polyseme.", "", *rows, "", f"Get it: `{pull}`"]
    return _head(fields) + "\n".join([*body, ""])


def _head(fields: Mapping[str, Any]) -> str:
    # JSON is YAML: nothing in a value can end the head or begin another field.
    lines = [f"{name}: {json.dumps(value)}" for name, value in fields.items() if value]
    return f"{_HEAD}{chr(10).join(lines)}\n{_HEAD}\n"


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _language(code: object) -> list[str]:
    """As the Hub lists them: ISO 639, without a region."""
    found = re.match(r"[a-z]{2,3}\b", code) if isinstance(code, str) else None
    return [found[0]] if found else []


def _licence(stated: object) -> str:
    """The Hub's identifier of what was stated, such as "CC BY-SA 3.0 (Wikipedia)"."""
    if not isinstance(stated, str) or not stated.strip():
        return ""
    plain = re.sub(r"[\s_]+", "-", stated.partition("(")[0].strip().lower())
    return plain if plain in _LICENCES else "other"


def _licence_name(stated: object) -> str:
    """What the Hub asks for beside `other`."""
    return stated.strip() if isinstance(stated, str) and _licence(stated) == "other" else ""

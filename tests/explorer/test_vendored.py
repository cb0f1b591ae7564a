"""Files of others that are shipped: as they were published, with their licences."""

import hashlib
from pathlib import Path

from polyseme.explorer import server

FOLDER = Path(server.__file__).parent / "static" / "vendor"
PUBLISHED = {
    # htmx.org 2.0.11 on npm, dist/htmx.min.js
    "htmx.min.js": "d6fdc75f204e6bdefa99b69bf1e6d4ac69b8a364f77929f45c13476b4000f717",
}


def test_a_vendored_file_is_the_published_one_and_has_its_licence() -> None:
    found = {path.name for path in FOLDER.iterdir()}
    licences = {f"{name.partition('.')[0]}.LICENSE.txt" for name in PUBLISHED}
    assert found == PUBLISHED.keys() | licences
    for name, sha256 in PUBLISHED.items():
        assert hashlib.sha256((FOLDER / name).read_bytes()).hexdigest() == sha256
    for name in licences:
        assert "WARRANT" in (FOLDER / name).read_text(encoding="utf-8").upper()

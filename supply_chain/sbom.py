"""A software bill of materials (CycloneDX 1.6, JSON) out of the lock.

    python -m supply_chain.sbom > polyseme.cdx.json

The same lock gives the same bytes: there is no time and no random number in it.
"""

import hashlib
import json
import re
import sys
import uuid
from pathlib import Path
from typing import Any

from supply_chain.lock import LOCK, ROOT, Locked, read_lock

_VERSION = re.compile(r'^__version__ = "([^"]+)"', re.MULTILINE)


def make_sbom(lock: Path = LOCK) -> dict[str, Any]:
    """Every package of the lock as a component, with the hashes of all its files."""
    digest = hashlib.sha256(lock.read_bytes()).hexdigest()
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'sha256:{digest}')}",
        "version": 1,
        "metadata": {"component": _ourselves()},
        "components": [_component(package) for package in read_lock(lock)],
    }


def _ourselves() -> dict[str, str]:
    code = (ROOT / "src" / "polyseme" / "__init__.py").read_text(encoding="utf-8")
    found = _VERSION.search(code)
    assert found is not None
    return {
        "type": "library",
        "name": "polyseme",
        "version": found[1],
        "bom-ref": f"pkg:pypi/polyseme@{found[1]}",
        "purl": f"pkg:pypi/polyseme@{found[1]}",
    }


def _component(package: Locked) -> dict[str, Any]:
    url = f"pkg:pypi/{package.name}@{package.version}"
    files = [{"alg": "SHA-256", "content": digest} for digest in package.hashes]
    component = {
        "type": "library",
        "name": package.name,
        "version": package.version,
        "bom-ref": url,
        "purl": url,
        # A hash of the component itself would claim there is one file; there is one a system.
        "externalReferences": [
            {
                "type": "distribution",
                "url": f"https://pypi.org/simple/{package.name}/",
                "hashes": files,
            }
        ],
    }
    if package.marker:
        component["properties"] = [{"name": "polyseme:marker", "value": package.marker}]
    return component


if __name__ == "__main__":
    json.dump(make_sbom(), sys.stdout, indent=1)
    sys.stdout.write("\n")

"""What an import must not bring with it."""

import importlib.util
import subprocess
import sys

import pytest

PACKAGES = ["polyseme", "polyseme.text.prepare", "polyseme.text.corpus", "polyseme.executors"]


def modules_after(statement: str) -> set[str]:
    code = f"import sys; {statement}; print(*sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return set(result.stdout.split())


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_without_models_does_not_import_torch(package: str) -> None:
    assert importlib.util.find_spec("torch"), "without torch installed this shows nothing"
    assert "torch" not in modules_after(f"import {package}")


def test_importing_a_segmenter_does_not_load_its_library() -> None:
    loaded = modules_after("import polyseme.text.segmenters.spacy_rules")
    loaded |= modules_after("import polyseme.text.segmenters.jieba_words")
    assert not loaded & {"spacy", "jieba"}


def test_importing_the_package_imports_nothing_else() -> None:
    ours = {name for name in modules_after("import polyseme") if name.startswith("polyseme")}
    assert ours == {"polyseme"}

"""Models and texts that pip has brought are found by name, and nothing of them is run."""

import json
import lzma
import re
import sys
from pathlib import Path

import pytest

from polyseme.embedding.loading import fingerprint_of, model_files
from polyseme.errors import InputError, ModelError
from polyseme.storage import installed
from polyseme.storage.installed import (
    DEMOS,
    MODELS,
    TASKS,
    chosen_model,
    default_model,
    locate,
    model_folder,
    pip_command,
    require_texts,
)

ROOT = Path(__file__).parents[2]


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of installed packages, and no checkout around the program."""
    site = tmp_path / "site-packages"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))
    program = tmp_path / "elsewhere" / "polyseme" / "storage" / "installed.py"
    monkeypatch.setattr(installed, "__file__", str(program))
    return site


def install(site: Path, name: str) -> Path:
    """A package of data as pip leaves it, with code that must not be run."""
    described = site / f"polyseme_{name.replace('-', '_')}-0.1.0.dist-info"
    described.mkdir()
    (described / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: polyseme-{name}\nVersion: 0.1.0\n", encoding="utf-8"
    )
    folder = site / "polyseme_data" / name
    folder.mkdir(parents=True)
    for place in (site / "polyseme_data", folder):
        (place / "__init__.py").write_text("raise SystemExit('run')", encoding="utf-8")
    return folder


def test_an_installed_model_is_found_by_its_name_and_not_run(packages: Path) -> None:
    folder = install(packages, "xx-tiny")
    assert locate("xx-tiny") == folder.resolve()
    assert model_folder("xx-tiny") == folder.resolve()
    assert "polyseme_data" not in sys.modules


def test_the_default_model_of_a_language_is_the_one_trained_longest(packages: Path) -> None:
    with pytest.raises(ModelError, match=r"No model for 'en'.*pip install \S*packages/en-mini"):
        default_model("en")
    with pytest.raises(ModelError, match=r"No model for 'la' is installed. Name .* --model\.$"):
        default_model("la")
    install(packages, "zh-mini")
    for name in ("en-novels", "en-mini", "en-base"):
        install(packages, name)
        assert (default_model("en"), default_model("zh")) == (name, "zh-mini")


def test_texts_with_chinese_characters_have_the_chinese_default() -> None:
    assert chosen_model(None, ["the word 银行"]) == default_model("zh")
    assert chosen_model(None, ["a word"]) == default_model("en")
    assert chosen_model("models/x", ["银行"]) == "models/x"


@pytest.mark.parametrize(
    "name",
    ["..", "../en-mini", "en-mini/..", "/en-mini", "EN-MINI", "en_mini", "mini", "", "a-" * 9],
)
def test_only_plain_names_are_looked_for(name: str) -> None:
    assert locate(name) is None


def test_a_link_out_of_the_packages_is_not_followed(packages: Path, tmp_path: Path) -> None:
    folder = install(packages, "xx-tiny")
    outside = tmp_path / "outside"
    folder.rename(outside)
    folder.symlink_to(outside, target_is_directory=True)
    assert locate("xx-tiny") is None


def test_a_folder_comes_before_a_package(
    packages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(packages, "xx-tiny")
    monkeypatch.chdir(tmp_path)
    Path("xx-tiny").mkdir()
    assert model_folder("xx-tiny") == Path("xx-tiny")


def test_a_published_model_that_is_missing_is_told_with_its_command(packages: Path) -> None:
    with pytest.raises(ModelError, match=r"pip install \S*packages/en-mini.*not on PyPI yet"):
        model_folder("en-mini")
    with pytest.raises(InputError, match=r"pip install \S*packages/demo-en"):
        require_texts("demo-en")


@pytest.mark.parametrize("name", ["en_mini", "EN-Mini", "enmini", "en-mni"])
def test_a_name_that_is_nearly_that_of_a_model_is_answered_with_it(name: str) -> None:
    with pytest.raises(ModelError, match="Did you mean en-mini, which is installed"):
        model_folder(name)


@pytest.mark.parametrize("name", ["en", "my-model", "models/en_mini", "mini", "zh"])
def test_other_names_are_left_to_whoever_opens_them(name: str) -> None:
    assert model_folder(name) == Path(name)


def test_a_command_that_installs_a_model_names_what_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(installed, "installed_from", lambda: str(ROOT))
    assert pip_command("en-mini") == f"pip install {ROOT}/packages/en-mini"
    monkeypatch.setattr(installed, "installed_from", lambda: "polyseme")
    assert pip_command("en-mini") == "pip install ./packages/en-mini"


def test_in_a_checkout_all_that_is_published_is_there() -> None:
    assert locate("en-mini") == ROOT / "models" / "en-mini"
    assert all(locate(name) for name in {**MODELS, **TASKS, **DEMOS})
    assert fingerprint_of("zh-mini") == fingerprint_of(ROOT / "models" / "zh-mini")
    assert {path.parent for path in model_files("zh-mini")} == {ROOT / "models" / "zh-mini"}


@pytest.mark.parametrize(("name", "books"), [("demo-en", (20, 25)), ("demo-zh", (4, 5))])
def test_the_demo_has_two_periods_of_about_the_same_size(name: str, books: tuple[int, int]) -> None:
    with lzma.open(require_texts(name), "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    assert all({"title", "year", "period", "text"} <= row.keys() for row in rows)
    assert [row["year"] for row in rows] == sorted(row["year"] for row in rows)
    periods = list(dict.fromkeys(row["period"] for row in rows))
    texts = [[row["text"] for row in rows if row["period"] == period] for period in periods]
    assert tuple(map(len, texts)) == books
    sizes = [sum(map(len, side)) for side in texts]
    assert max(sizes) < 1.05 * min(sizes)
    assert not any(re.search("<[a-z]", text) for side in texts for text in side)

"""What a release says of itself agrees wherever it is said."""

import importlib
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import polyseme

yaml: Any = importlib.import_module("yaml")  # comes with Ray; has no types of its own
ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
TEMPLATES = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
PACKAGES = sorted((ROOT / "packages").glob("*/pyproject.toml"))


def test_the_changelog_has_a_dated_section_of_this_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    found = re.search(rf"^## \[{re.escape(polyseme.__version__)}\] - (\S+)$", text, re.MULTILINE)
    assert found is not None
    assert found[1] == str(CITATION["date-released"])


def test_the_citation_is_of_this_version_licence_and_repository() -> None:
    assert CITATION["version"] == polyseme.__version__
    assert CITATION["license"] == PROJECT["license"]
    assert CITATION["repository-code"] == PROJECT["urls"]["Homepage"]


@pytest.mark.parametrize("path", PACKAGES, ids=lambda path: path.parent.name)
def test_a_package_of_data_names_its_licence_and_where_it_is_from(path: Path) -> None:
    project = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
    assert project["name"] == f"polyseme-{path.parent.name}"
    assert project["license"].startswith(("CC-BY-SA", "CC-BY-4.0", "MIT"))
    assert project["urls"]["Homepage"] == PROJECT["urls"]["Homepage"]
    told = (path.parent / "README.md").read_text(encoding="utf-8")
    assert "licence" in told or "CC BY-SA" in told


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_an_issue_form_asks_something(path: Path) -> None:
    form = yaml.safe_load(path.read_text(encoding="utf-8"))
    if path.name == "config.yml":
        assert form["contact_links"]
        return
    assert form["name"]
    assert form["description"]
    assert any(part.get("validations", {}).get("required") for part in form["body"])


def test_whoever_reports_a_fault_is_asked_what_doctor_prints() -> None:
    text = (ROOT / ".github" / "ISSUE_TEMPLATE" / "bug.yml").read_text(encoding="utf-8")
    assert "polyseme doctor" in text

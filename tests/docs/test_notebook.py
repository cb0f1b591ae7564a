"""The notebook from n-grams to BERT, run from top to bottom with little text and training."""

import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parents[2] / "docs" / "notebooks" / "from-ngrams-to-bert.ipynb"


# It starts a kernel, which loads torch: on a busy machine that alone takes long.
pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """All cells with code, after they were run; one that fails is an error here."""
    folder = tmp_path_factory.mktemp("notebook")
    small = {
        "NOTEBOOK_MINUTES": "0.001",
        "NOTEBOOK_EVERY": "5000",
        "NOTEBOOK_PRESETS": "word2vec elmo-teaching",
        "NOTEBOOK_FOLDER": str(folder),
        "IPYTHONDIR": str(folder / "ipython"),
        "MPLCONFIGDIR": str(folder / "matplotlib"),
    }
    notebook = nbformat.read(NOTEBOOK, 4)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in small.items():
            patch.setenv(name, value)
        resources = {"metadata": {"path": str(folder)}}
        NotebookClient(notebook, timeout=600, kernel_name="python3", resources=resources).execute()
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def shown(cells: list[Any], source: str, kind: str = "text/plain") -> str:
    """What the cell showed that has this in its source."""
    [cell] = [cell for cell in cells if source in cell.source]
    return "\n".join(each["data"][kind] for each in cell.outputs if kind in each.get("data", {}))


def test_a_word_has_one_vector_without_context_and_groups_with_it(cells: list[Any]) -> None:
    alike = re.findall(r"\d\.\d*", shown(cells, "bank_vectors(word2vec"))
    assert {float(value) for value in alike} == {1.0}
    assert "in 2 groups" in shown(cells, "polyseme.senses(")
    for preset in ("word2vec", "elmo-teaching"):
        assert preset in shown(cells, "compare_models(", "text/html")


def test_longer_n_grams_are_better_than_single_words(cells: list[Any]) -> None:
    told = shown(cells, "held_out_perplexity(")
    values = [float(value) for value in re.findall(r": ([\d.]+)", told)]
    assert len(values) == 4
    assert max(values[1:]) < values[0]


def test_progress_is_a_bar_below_the_cell_and_no_warning(cells: list[Any]) -> None:
    bars = shown(cells, "polyseme.prepare(", "text/html")
    # Drawn for the last time when the call ended: full, though no widgets are used.
    assert re.search(r'<progress value="(\d+)" max="\1">', bars)
    # DuckDB would draw widgets of its own below a cell that counts for longer than two seconds.
    kinds = {kind for cell in cells for each in cell.outputs for kind in each.get("data", {})}
    assert not [kind for kind in kinds if "widget" in kind]
    streams = [each for cell in cells for each in cell.outputs if each.output_type == "stream"]
    assert [each.name for each in streams] == ["stdout"]  # what the cell with scores prints


def test_pictures_are_drawn(cells: list[Any]) -> None:
    pictures = [cell for cell in cells if "plt.show()" in cell.source]
    assert len(pictures) == 4
    for cell in pictures:
        assert any("image/png" in each.get("data", {}) for each in cell.outputs)


def test_what_is_published_is_as_someone_else_would_find_it() -> None:
    notebook = nbformat.read(NOTEBOOK, 4)
    nbformat.validate(notebook)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            assert not cell.outputs
            assert cell.execution_count is None

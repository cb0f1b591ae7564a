"""The notebooks, run from top to bottom: that from n-grams to BERT with little training."""

import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).parents[2] / "docs" / "notebooks"
ALL = sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb"))


# It starts a kernel, which loads torch: on a busy machine that alone takes long.
pytestmark = pytest.mark.timeout(900)


def executed(name: str, folder: Path, **settings: str) -> list[Any]:
    """All cells with code, after they were run; one that fails is an error here."""
    settings |= {
        "NOTEBOOK_FOLDER": str(folder),
        "IPYTHONDIR": str(folder / "ipython"),
        "MPLCONFIGDIR": str(folder / "matplotlib"),
    }
    notebook = nbformat.read(NOTEBOOKS / f"{name}.ipynb", 4)
    with pytest.MonkeyPatch.context() as patch:
        for key, value in settings.items():
            patch.setenv(key, value)
        resources = {"metadata": {"path": str(folder)}}
        NotebookClient(notebook, timeout=600, kernel_name="python3", resources=resources).execute()
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """Those of the notebook from n-grams to BERT."""
    return executed(
        "from-ngrams-to-bert",
        tmp_path_factory.mktemp("notebook"),
        NOTEBOOK_MINUTES="0.001",
        NOTEBOOK_EVERY="5000",
        NOTEBOOK_PRESETS="word2vec elmo-teaching",
    )


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


def test_gay_moved_no_more_than_other_words_and_one_group_of_it_is_a_man(tmp_path: Path) -> None:
    cells = executed("did-gay-change", tmp_path)
    [found] = [cell for cell in cells if "changed.verdict" in cell.source]
    told = "".join(each.text for each in found.outputs if each.get("name") == "stdout")
    assert "differ as much as those of ordinary words do" in told
    [groups] = [cell for cell in cells if "senses.lines(" in cell.source]
    assert "Lucian Gay" in groups.outputs[0].text
    assert "Coningsby" in shown(cells, 'groupby(["year", "author", "title"])')


def test_the_apple_and_the_company_are_two_groups(tmp_path: Path) -> None:
    """In a few articles that were written for this test."""
    fruit = [f"果园里有{n}棵树，秋天结满了苹果、梨和葡萄。" for n in "二三四五六七八九"]
    fruit += [
        f"她把苹果、樱桃和{each}一起做成果汁。" for each in ("梨", "杏", "桃", "李子", "葡萄")
    ]
    firm = [f"苹果在{n}月发布了新的iPhone和iPad。" for n in "二三四五六七八九"]
    firm += [
        f"苹果的电脑和{each}的手机都用自己的系统。" for each in ("三星", "微软", "华为", "谷歌")
    ]
    texts = tmp_path / "articles.txt"
    texts.write_text("\n\n".join(3 * (fruit + firm)) + "\n", encoding="utf-8")
    cells = executed("apple-by-meaning", tmp_path, NOTEBOOK_TEXTS=str(texts))
    assert "in 2 groups" in shown(cells, "polyseme.senses(")
    assert "6 labelled by hand" in shown(cells, "polyseme.label(")
    assert "公司" in shown(cells, "polyseme.label(", "text/html")
    [picture] = [cell for cell in cells if "plt.show()" in cell.source]
    assert any("image/png" in each.get("data", {}) for each in picture.outputs)


@pytest.mark.parametrize("name", ALL)
def test_what_is_published_is_as_someone_else_would_find_it(name: str) -> None:
    notebook = nbformat.read(NOTEBOOKS / f"{name}.ipynb", 4)
    nbformat.validate(notebook)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            assert not cell.outputs
            assert cell.execution_count is None

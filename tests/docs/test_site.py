"""The site builds without warnings and without a network, and its links lead somewhere."""

import html
import importlib.util
import json
import re
import shutil
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote, urldefrag

import pytest
from required import need_package

import polyseme

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"\]\(([^)\s]+)\)")
# What a page loads by itself when it is opened; a plain link to click on is no load.
LOADED = re.compile(r"<(?:script|link|img|iframe)[^>]*(?:src|href)=\"?(https?:)?//[^\s\">]+")


def script(name: str) -> ModuleType:
    """A script of the documents, as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    need_package("zensical")
    folder = tmp_path_factory.mktemp("site")
    shutil.copy(ROOT / "zensical.toml", folder)
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=shutil.ignore_patterns("*.py"))
    script("make_site").build(folder)
    return folder / "site"


def test_every_page_is_on_the_site(site: Path) -> None:
    for source in (ROOT / "docs").rglob("*.md"):
        page = source.relative_to(ROOT / "docs").with_suffix("")
        target = site / "index.html" if page.name == "index" else site / page / "index.html"
        assert target.is_file(), page


def test_every_page_is_in_the_navigation() -> None:
    navigation = (ROOT / "zensical.toml").read_text(encoding="utf-8")
    for source in (ROOT / "docs").rglob("*.md"):
        assert f'"{source.relative_to(ROOT / "docs").as_posix()}"' in navigation


def test_a_heading_has_an_address_with_its_own_letters(site: Path) -> None:
    page = (site / "zh/index.html").read_text(encoding="utf-8")
    assert '<h2 id="什么时候不该用它">' in page
    assert 'href="#什么时候不该用它"' in unquote(page)
    walk = (site / "explanation/from-a-sentence-to-its-vectors/index.html").read_text("utf-8")
    assert '<h2 id="1-text-sentences-words">' in walk  # as it was by default, for English


def test_links_to_a_heading_lead_to_one(site: Path) -> None:
    """Also where `--strict` does not look: in HTML that is finished."""
    ids: dict[Path, set[str]] = {}
    for page in site.rglob("*.html"):
        ids[page] = set(re.findall(r'\sid="?([^"\s>]+)', page.read_text(encoding="utf-8")))
    for page in ids:
        for link in re.findall(r'<a[^>]*\shref="?([^"\s>]+)', page.read_text(encoding="utf-8")):
            path, anchor = urldefrag(html.unescape(link))
            if anchor and "://" not in path:
                target = (page.parent / unquote(path)).resolve() if path else page
                target = target / "index.html" if target.is_dir() else target
                assert unquote(anchor) in ids.get(target, set()), f"{page}: {link}"


def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        loaded = LOADED.search(page.read_text(encoding="utf-8"))
        assert loaded is None, f"{page.relative_to(site)}: {loaded and loaded[0]}"


def test_links_between_files_lead_to_files() -> None:
    """Also those of README and its neighbours, which are not on the site."""
    for source in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for link in LINK.findall(source.read_text(encoding="utf-8")):
            path, _ = urldefrag(link)
            if path and "://" not in path:
                assert (source.parent / unquote(path)).exists(), f"{source.name}: {link}"


def test_absolute_links_to_our_own_files_lead_to_files() -> None:
    """Those of README must be absolute, as the package index shows it, too."""
    ours = re.compile(
        r"https://(?:github\.com/polyseme/polyseme/(?:blob|tree)|"
        r"raw\.githubusercontent\.com/polyseme/polyseme)/main/([^)\s\"#]+)"
    )
    for source in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "zensical.toml"]:
        for path in ours.findall(source.read_text(encoding="utf-8")):
            assert (ROOT / unquote(path)).exists(), f"{source.name}: {path}"
    for name in ("README.md", "README.zh.md"):
        links = LINK.findall((ROOT / name).read_text(encoding="utf-8"))
        assert all(link.startswith(("https://", "#")) for link in links), name


def test_pages_say_in_which_language_they_are(site: Path) -> None:
    for page in site.rglob("index.html"):
        found = re.search(r'<html lang="([\w-]+)"', page.read_text(encoding="utf-8"))
        is_chinese = page.relative_to(site).parts[0] == "zh"
        assert found is not None
        assert found[1] == ("zh-Hans" if is_chinese else "en"), page


def test_chinese_lines_are_joined_without_a_space(site: Path) -> None:
    make_site = script("make_site")
    source = "<p>第一行，\n第二行</p>\n<pre>甲\n乙</pre><p>word\n词</p>"
    expected = "<p>第一行，第二行</p>\n<pre>甲\n乙</pre><p>word\n词</p>"
    assert make_site.finish_page(source, is_chinese=True) == expected
    assert make_site.finish_page(source, is_chinese=False) == source
    page = (site / "zh/first-corpus/index.html").read_text(encoding="utf-8")
    text = re.sub(r'(?s)<pre>.*?</pre>|data-copy="[^"]*"', "", page)
    assert not re.search("[一-鿿，。]\n[一-鿿]", text)


def test_what_the_theme_says_on_a_chinese_page_is_chinese(site: Path) -> None:
    page = (site / "zh/first-corpus/index.html").read_text(encoding="utf-8")
    assert "本页内容" in page
    assert "下一页" in page
    assert not re.search(r">\s*(On this page|Next)\s*<", page)
    assert re.search(r">\s*On this page\s*<", (site / "index.html").read_text(encoding="utf-8"))


def test_a_short_piece_of_code_is_marked_to_stay_on_one_line() -> None:
    finish_page = script("make_site").finish_page
    long = f"<code>{25 * 'a'}</code>"
    page = f"<p><code>--set</code>{long}</p><pre><code>--set</code></pre>"
    marked = f'<p><code class="short">--set</code>{long}</p><pre><code>--set</code></pre>'
    assert finish_page(page, is_chinese=False) == marked


def test_what_is_copied_from_a_console_block_can_be_pasted(site: Path) -> None:
    page = (site / "tutorials/first-corpus/index.html").read_text(encoding="utf-8")
    blocks = [html.unescape(found) for found in re.findall(r'data-copy="([^"]*)"', page)]
    assert len(blocks) == page.count('class="language-console highlight"')
    assert any(block.startswith("mkdir texts\ncat > ") for block in blocks)
    for block in blocks:
        assert not re.search(r"^[$>] |^\.\.\.$|[│┃]", block, re.MULTILINE), block


def test_a_console_block_is_told_apart_line_by_line() -> None:
    block = "$ cat > a <<'END'\n> one\n>\n> END\n$ wc -l a\n2 a\n...\n$ true"
    assert script("make_site").commands_in(block) == "cat > a <<'END'\none\n\nEND\nwc -l a\ntrue"


def test_header_and_footer_name_repository_version_licence_and_citation(site: Path) -> None:
    page = (site / "index.html").read_text(encoding="utf-8")
    header, footer = page.partition("</header>")[0], page.partition("<footer")[2]
    assert "https://github.com/polyseme/polyseme" in header
    assert 'data-md-component="source"' not in page  # asks GitHub for the number of stars
    for told in ("LICENSE", "CITATION.cff", f"Polyseme {polyseme.__version__}"):
        assert told in footer
    assert f"polyseme {polyseme.__version__}" in header


@pytest.mark.parametrize(
    "word",
    [
        *("tokenizer", "KWIC", "concordance", "collocation", "word sense induction", "lemma"),
        *("fine-tuning", "NER", "embedding", "perplexity", "分词", "词义归纳"),
    ],
)
def test_search_finds_the_words_of_the_field(word: str, site: Path) -> None:
    index = json.loads((site / "search.json").read_text(encoding="utf-8"))
    assert word.lower() in json.dumps(index, ensure_ascii=False).lower()


def test_the_site_holds_no_scripts_of_ours(site: Path) -> None:
    assert not list(site.rglob("*.py"))

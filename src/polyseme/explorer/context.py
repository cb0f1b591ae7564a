"""What every page needs: the workspace, templates, and the view that the address asks for."""

from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import jinja2
from starlette.requests import Request
from starlette.responses import HTMLResponse

from polyseme.display import printable
from polyseme.errors import PolysemeError
from polyseme.explorer.access import MAX_BODY
from polyseme.explorer.language import Language, PageError, choose_language
from polyseme.explorer.view import FormValues, View
from polyseme.explorer.word_page import WordPage
from polyseme.explorer.workspace import Workspace
from polyseme.meanings.concordance.conditions import ConditionError, parse_condition, parse_where
from polyseme.meanings.groups.senses import Senses
from polyseme.meanings.report import environment

_TEMPLATES = Path(__file__).parent / "templates"


@cache
def load_templates() -> jinja2.Environment:
    """Everything that is put into a page is text, unless a template of ours says otherwise.

    All are compiled at once, which takes half a second: whoever asks for a page does not wait.
    """
    found = environment(_TEMPLATES)
    for name in found.list_templates():
        found.get_template(name)
    return found


@dataclass
class AppContext:
    """A workspace with its pages."""

    workspace: Workspace
    language: str = ""
    """The language of the pages, unless an address asks for another; empty: the browser's."""

    @classmethod
    def of(cls, request: Request) -> "AppContext":
        """The app that the application was made with."""
        app: AppContext = request.app.state.app
        return app

    def view(self, request: Request) -> View:
        """What the address asks for."""
        view = View.read(request.query_params)
        attributes = self.workspace.corpus.config.attributes
        if view.attribute and view.attribute not in attributes:
            raise PageError("no_attribute", name=view.attribute, names=", ".join(attributes) or "–")
        return view

    def word_page(self, view: View, *, is_begun: bool = True) -> WordPage:
        """The word of a view with its groups, as far as they are there."""
        word = self.workspace.word(view)
        senses = word.senses(view.grouping, is_begun=is_begun)
        edited = self.workspace.edited(view, word, senses) if senses else None
        return WordPage(view, word, edited, parse_where(view.where, self.workspace.values))

    @cached_property
    def num_layers(self) -> int:
        """Layers of the model; 0 as long as it is not loaded."""
        return self.workspace.encoder().embedder.num_layers


@dataclass
class PageRequest:
    """What one page is made from."""

    app: AppContext
    request: Request
    view: View

    @classmethod
    def of(cls, request: Request) -> "PageRequest":
        """What a browser asks for."""
        app = AppContext.of(request)
        return cls(app, request, app.view(request))

    @property
    def workspace(self) -> Workspace:
        """The corpus and the model."""
        return self.app.workspace

    @property
    def is_part(self) -> bool:
        """Whether a part of a page is asked for, to be put into one that is there."""
        return "hx-request" in self.request.headers

    @cached_property
    def say(self) -> Language:
        """Sentences in the language of the page."""
        accepted = self.request.headers.get("accept-language", "")
        return Language(choose_language(self.view.lang, accepted, self.app.language))

    def parameter(self, name: str) -> str:
        """A value of the address that is no part of a view."""
        return self.request.query_params.get(name, "")

    def drop_mistakes(self) -> dict[str, ConditionError]:
        """Take conditions that are wrong out of the view; by field the first that is."""
        kept: dict[str, tuple[str, ...]] = {}
        problems: dict[str, ConditionError] = {}
        for name in ("where", "before", "after"):
            kept[name] = ()
            for text in getattr(self.view, name):
                try:
                    parse_condition(text, self.workspace.values)
                    kept[name] += (text,)
                except ConditionError as error:
                    problems.setdefault(name, error)
        self.view = self.view.replace(page=self.view.page, **kept)
        return problems

    def word_page(self, *, is_begun: bool = True) -> WordPage:
        """The word of the view with its groups, as far as they are there."""
        return self.app.word_page(self.view, is_begun=is_begun)

    def judged(self) -> tuple[WordPage, Senses]:
        """The same, where groups must be there."""
        word_page = self.word_page()
        if word_page.edited is None:
            raise PageError("not_grouped")
        return word_page, word_page.edited

    def render(self, template: str, status: int = 200, **values: Any) -> HTMLResponse:
        """A page, or a part of one."""
        found = (
            load_templates()
            .get_template(template)
            .render(
                say=self.say,
                explain=explain,
                view=self.view,
                workspace=self.workspace,
                # A form's own address is no page: its language is changed on the page it came from.
                path=self.request.url.path if self.request.method != "POST" else "/word",
                **values,
            )
        )
        return HTMLResponse(found, status)


async def read_form(request: Request) -> FormValues:
    """The values of a form. No files: nothing is ever uploaded here."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MAX_BODY:
            raise PageError("form_too_large", most=MAX_BODY)
    return FormValues(body.decode("utf-8", "replace"), most=100_000)


def explain(say: Language, error: PolysemeError) -> str:
    """An error as a page tells it: without paths and commands, which are for a terminal."""
    if isinstance(error, PageError):
        return printable(say(error.key, **error.values))
    if isinstance(error, ConditionError):
        return say.condition(error)
    return say("other_error")

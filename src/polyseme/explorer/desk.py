"""What every page needs: the workspace, templates, and the view that the address asks for."""

from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import jinja2
from starlette.requests import Request
from starlette.responses import HTMLResponse

from polyseme import __version__
from polyseme.errors import PolysemeError
from polyseme.explorer.access import MAX_BODY
from polyseme.explorer.explored_word import Fineness
from polyseme.explorer.language import Language, PageError, choose_language
from polyseme.explorer.reading import Reading
from polyseme.explorer.view import FormValues, View
from polyseme.explorer.workspace import Workspace
from polyseme.meanings.concordance.conditions import ConditionError, parse_condition, parse_where
from polyseme.meanings.groups.named_groups import Senses
from polyseme.printable import printable

_TEMPLATES = Path(__file__).parent / "templates"


@cache
def load_templates() -> jinja2.Environment:
    """Everything that is put into a page is text, unless a template of ours says otherwise.

    All are compiled at once, which takes half a second: whoever asks for a page does not wait.
    """
    found = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for name in found.list_templates():
        found.get_template(name)
    return found


@dataclass
class Desk:
    """A workspace with its pages."""

    workspace: Workspace
    language: str = ""
    """The language of the pages, unless an address asks for another; empty: the browser's."""
    _environment: jinja2.Environment = field(default_factory=load_templates)

    @classmethod
    def of(cls, request: Request) -> "Desk":
        """The desk that the application was made with."""
        desk: Desk = request.app.state.desk
        return desk

    def view(self, request: Request) -> View:
        """What the address asks for."""
        view = View.read(request.query_params)  # type: ignore[arg-type]
        attributes = self.workspace.corpus.config.word_attributes
        if view.attribute and view.attribute not in attributes:
            raise PageError("no_attribute", name=view.attribute, names=", ".join(attributes) or "–")
        return view

    def understood(self, view: View) -> tuple[View, dict[str, ConditionError]]:
        """A view without the conditions that are wrong, and by field the first that is."""
        kept: dict[str, tuple[str, ...]] = {}
        problems: dict[str, ConditionError] = {}
        for name in ("where", "before", "after"):
            kept[name] = ()
            for text in getattr(view, name):
                try:
                    parse_condition(text, self.workspace.values)
                    kept[name] += (text,)
                except ConditionError as error:
                    problems.setdefault(name, error)
        return view.but(page=view.page, **kept), problems

    def render(
        self, request: Request, template: str, view: View, status: int = 200, **values: Any
    ) -> HTMLResponse:
        """A page, or a part of one."""
        page = self._environment.get_template(template).render(
            say=self.say(request, view),
            explain=explain,
            view=view,
            workspace=self.workspace,
            # A form's own address is no page: its language is changed on the page it came from.
            path=request.url.path if request.method != "POST" else "/word",
            version=__version__,
            **values,
        )
        return HTMLResponse(page, status)

    def say(self, request: Request, view: View) -> Language:
        """Sentences in the language of a page."""
        accepted = request.headers.get("accept-language", "")
        return Language(choose_language(view.lang, accepted, self.language))

    def reading(self, view: View, *, is_begun: bool = True) -> Reading:
        """The word of a view with its groups, as far as they are there."""
        word = self.workspace.word(view)
        senses = word.senses(Fineness(view.finer, view.layer), is_begun=is_begun)
        edited = self.workspace.edited(view, word, senses) if senses else None
        return Reading(view, word, edited, parse_where(view.where, self.workspace.values))

    def judged(self, view: View) -> tuple[Reading, Senses]:
        """The same, where groups must be there."""
        reading = self.reading(view)
        if reading.edited is None:
            raise PageError("not_grouped")
        return reading, reading.edited

    @cached_property
    def num_layers(self) -> int:
        """Layers of the model; 0 as long as it is not loaded."""
        return self.workspace.describer().embedder.num_layers


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

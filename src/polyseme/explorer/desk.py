"""What every page needs: the workspace, templates, and the view that the address asks for."""

from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import jinja2
from starlette.requests import Request
from starlette.responses import HTMLResponse

from polyseme import __version__
from polyseme.errors import InputError
from polyseme.explorer.access import MAX_BODY
from polyseme.explorer.explored_word import Fineness
from polyseme.explorer.language import Language, choose_language
from polyseme.explorer.reading import Reading
from polyseme.explorer.view import FormValues, View
from polyseme.explorer.workspace import Workspace
from polyseme.meanings.concordance.conditions import ConditionError, parse_condition, parse_where
from polyseme.meanings.groups.named_groups import Senses

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
            there = ", ".join(attributes) or "none; see polyseme prepare --word-attributes"
            raise InputError(
                f"There is no word attribute {view.attribute!r}. This corpus has: {there}."
            )
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
        code = choose_language(view.lang, request.headers.get("accept-language", ""), self.language)
        page = self._environment.get_template(template).render(
            say=Language(code),
            view=view,
            workspace=self.workspace,
            # A form's own address is no page: its language is changed on the page it came from.
            path=request.url.path if request.method != "POST" else "/word",
            version=__version__,
            **values,
        )
        return HTMLResponse(page, status)

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
            raise InputError("The groups are not ready yet. Wait until they are, and try again.")
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
            raise InputError(f"The form has more than {MAX_BODY:,} bytes. Choose fewer lines.")
    text = body.decode("utf-8", "replace")
    return FormValues(parse_qs(text, keep_blank_values=True, max_num_fields=100_000))

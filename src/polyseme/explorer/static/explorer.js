// What the pages do beyond links and forms: the map, keys, ticked lines.
// All text from the corpus is put in as text (textContent), never as HTML.
import {UseMap, lineParts} from "/static/map.js";

let map = null;

function startMap() {
  const section = document.querySelector("#map");
  if (!section || section.dataset.isStarted) return;
  section.dataset.isStarted = "yes";
  const canvas = section.querySelector("canvas");
  map = new UseMap(canvas, {onPoint: (index) => showLine(section, index), onChoose: choose});
  section.map = map; // for whoever tests or writes an extension
  setColours();
  loadPlaces(section, 0);
  for (const button of document.querySelectorAll("[data-map]")) button.addEventListener("click", () => (button.dataset.map === "png" ? savePng() : map.press(button)));
}

function setColours() {
  const style = getComputedStyle(document.documentElement);
  map?.setColours([...Array(11).keys()].map((number) => style.getPropertyValue(`--g${number}`)));
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", setColours);

async function loadPlaces(section, tries) {
  const answer = await fetch(section.dataset.places);
  const places = await answer.json();
  if (!section.isConnected) return;
  if (places.state === "done") {
    map.setPlaces(places);
    section.classList.add("ready");
  } else if (places.state === "waiting") {
    setTimeout(() => loadPlaces(section, tries + 1), Math.min(2000, 300 + 100 * tries));
  }
}

const lines = new Map();

async function showLine(section, index) {
  for (const line of document.querySelectorAll(".line.at")) line.classList.remove("at");
  const shown = section.querySelector(".pointed");
  shown.hidden = index < 0; // the help stands there instead
  section.querySelector(".help").hidden = index >= 0;
  if (index < 0) return shown.replaceChildren();
  document.querySelector(`.line[data-use="${index}"]`)?.classList.add("at");
  const address = `${section.dataset.line}&use=${index}`;
  if (!lines.has(address)) {
    if (lines.size > 500) lines.clear();
    lines.set(address, fetch(address).then((answer) => answer.json()));
  }
  const line = await lines.get(address);
  if (map.pointed === index) shown.replaceChildren(...lineParts(line, map.colours[map.colour[index]]));
  return null;
}

function choose(numbers) {
  const section = document.querySelector("#map");
  map.setLit(numbers);
  const address = new URL(section.dataset.word, location.href);
  address.searchParams.set("uses", pack(numbers));
  location.assign(address);
}

/** As `pack` in view.py: each number as its distance from the one before, in base 36. */
function pack(numbers) {
  let before = 0;
  return [...numbers].sort((a, b) => a - b).map((number) => {
    const distance = number - before;
    before = number;
    return distance.toString(36);
  }).join(".");
}

/** The drawing that is exported as SVG, with its legend, twice as large. */
async function savePng() {
  const image = new Image();
  image.src = document.querySelector(".export a[href*='map.svg']").href;
  await image.decode();
  const canvas = document.createElement("canvas");
  Object.assign(canvas, {width: 2 * image.naturalWidth, height: 2 * image.naturalHeight});
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  canvas.toBlob((blob) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = `${document.querySelector("#map").dataset.name}-map.png`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
}

function countTicked() {
  const shown = document.querySelector(".judge .ticked");
  if (shown) shown.textContent = shown.dataset.text.replace("#", String(document.querySelectorAll(".tick input:checked").length));
}

// Ticks belong to an entry of the browser's history: who goes back finds them again.
function keepTicks(ticked) {
  history.replaceState({...history.state, ticked}, "");
}

function restoreTicks() {
  for (const number of history.state?.ticked ?? []) {
    const box = document.querySelector(`.tick input[value="${Number(number)}"]`);
    if (box) box.checked = true;
  }
  countTicked();
}

document.addEventListener("change", (event) => {
  const {target} = event;
  if (target.matches(".tick input")) {
    countTicked();
    keepTicks([...document.querySelectorAll(".tick input:checked")].map((box) => box.value));
  }
  if (target.matches("[data-layers]")) {
    const hidden = target.parentElement.querySelector("input[type=hidden]");
    hidden.value = target.value === target.dataset.layers ? "" : target.value;
  }
  const form = target.closest("form[data-submit]");
  if (form) form.requestSubmit();
});

// An empty value is the usual one: it has no place in an address.
document.addEventListener("submit", (event) => {
  if (event.target.method !== "get") return;
  for (const field of event.target.querySelectorAll("input, select")) {
    if (field.value === "" || (field.name === "finer" && field.value === "0")) field.disabled = true;
  }
});
// A page that comes back from the history may have been left like that.
addEventListener("pageshow", () => {
  for (const field of document.querySelectorAll("form[method=get] :disabled")) field.disabled = false;
});

// A second press on a word closes its context.
document.addEventListener("htmx:beforeRequest", (event) => {
  const word = event.target.closest?.("a.word");
  if (!word) return;
  const open = word.closest("tbody").querySelector(".context");
  word.setAttribute("aria-expanded", String(!open));
  if (open) {
    open.remove();
    event.preventDefault();
  }
});

// What may be written next in a condition: columns, comparisons, values of the corpus. Arrows go through them, Enter or a
// click takes one, Escape closes.
let asked = 0;

async function offerChoices(field) {
  const number = ++asked;
  const written = field.value.slice(0, field.selectionStart);
  if (/^[^\s)]/.test(field.value.slice(field.selectionStart))) return showChoices(field, false); // inside of a word
  const answer = await fetch(`${field.dataset.choices}?text=${encodeURIComponent(written)}`);
  const choices = answer.ok ? await answer.json() : [];
  if (number !== asked || document.activeElement !== field) return null;
  const list = document.getElementById(field.getAttribute("aria-controls"));
  list.replaceChildren(...choices.map((choice, index) => {
    const item = document.createElement("li");
    item.id = `${list.id}-${index}`;
    item.setAttribute("role", "option");
    item.setAttribute("aria-selected", "false");
    item.textContent = choice.shown;
    item.dataset.text = choice.text;
    return item;
  }));
  return showChoices(field, choices.length > 0);
}

function showChoices(field, isOpen) {
  document.getElementById(field.getAttribute("aria-controls")).hidden = !isOpen;
  field.setAttribute("aria-expanded", String(isOpen));
  field.removeAttribute("aria-activedescendant");
}

function takeChoice(field, item) {
  const rest = field.value.slice(field.selectionStart);
  field.value = item.dataset.text + rest;
  field.setSelectionRange(item.dataset.text.length, item.dataset.text.length);
  offerChoices(field);
}

function moveChoice(field, step) {
  const items = [...document.querySelectorAll(`#${field.getAttribute("aria-controls")} li`)];
  const at = items.findIndex((item) => item.getAttribute("aria-selected") === "true");
  const next = items[(at < 0 && step < 0 ? items.length : at + items.length + step) % items.length];
  for (const item of items) item.setAttribute("aria-selected", String(item === next));
  field.setAttribute("aria-activedescendant", next.id);
  next.scrollIntoView({block: "nearest"});
}

function pressInCondition(event) {
  const field = event.target;
  const isOpen = field.getAttribute("aria-expanded") === "true";
  const active = document.getElementById(field.getAttribute("aria-activedescendant"));
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    if (isOpen) moveChoice(field, event.key === "ArrowDown" ? 1 : -1);
    else offerChoices(field);
  } else if (event.key === "Enter" && isOpen && active) takeChoice(field, active);
  else if (event.key === "Escape" && isOpen) showChoices(field, false);
  else return;
  event.preventDefault();
}

document.addEventListener("input", (event) => event.target.matches("[data-choices]") && offerChoices(event.target));
document.addEventListener("focusin", (event) => event.target.matches("[data-choices]") && offerChoices(event.target));
document.addEventListener("focusout", (event) => event.target.matches("[data-choices]") && showChoices(event.target, false));
document.addEventListener("mousedown", (event) => {
  const item = event.target.closest(".choices li");
  if (!item) return;
  event.preventDefault(); // or the field would lose the focus, and the list would close
  takeChoice(item.closest(".condition").querySelector("input"), item);
});

document.addEventListener("keydown", (event) => {
  if (event.target.matches("[data-choices]")) pressInCondition(event);
  // Enter in a field means the button beside it.
  if (event.key === "Enter" && event.target.matches(".judge input:not([type=checkbox])")) {
    event.preventDefault();
    event.target.closest("span").querySelector("button").click();
  }
  const isTyping = event.target.matches("input:not([type=checkbox]), select, textarea, canvas");
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping) return;
  if (event.key === "/") {
    document.querySelector("#q").select();
    document.querySelector("#q").focus();
    event.preventDefault();
  }
  const words = [...document.querySelectorAll(".lines a.word")];
  const at = words.indexOf(document.activeElement.closest?.("tbody")?.querySelector("a.word"));
  if (event.key === "j" || event.key === "k") words[Math.max(0, Math.min(words.length - 1, at + (event.key === "j" ? 1 : -1)))]?.focus();
  const box = words[at]?.closest("tr").querySelector(".tick input");
  if (event.key === "x") box?.click();
  // A sense by its number, or a new one: for the ticked lines, or the one that has the focus.
  const sense = document.querySelectorAll(".judge [name=label]")[Number(event.key) - 1];
  const name = event.key === "n" && document.querySelector(".judge [name=new_label]");
  if (!sense && !name) return;
  if (!document.querySelector(".tick input:checked")) box?.click();
  event.preventDefault();
  if (name) return void name.focus();
  sessionStorage.setItem("sorted", "by key");
  sense.click();
});

// An edit that was made leads to a page without ticks; one that was refused leaves them.
document.addEventListener("htmx:beforeOnLoad", (event) => {
  if (event.detail.xhr.getResponseHeader("HX-Redirect")) keepTicks([]);
});

function start() {
  startMap();
  restoreTicks();
}

// Who sorts by the keyboard goes on with the line that is most in doubt.
addEventListener("DOMContentLoaded", () => {
  if (sessionStorage.getItem("sorted")) document.querySelector(".sorting a.word")?.focus();
  sessionStorage.removeItem("sorted");
});
document.addEventListener("htmx:afterSettle", start);
document.addEventListener("DOMContentLoaded", start);
start();

// The course of a study: where one stands, one item after the other, keys.

import * as answers from "./answers.js";
import * as panes from "./panes.js";

const $ = (id) => document.getElementById(id);
const pairs = document.body.dataset.kind === "pairs";
const blind = document.body.dataset.kind === "blind";
const none = $("no-marks"); // in a study of artefacts alone
const questions = pairs ? ["diagnosis", "realism"] : [];
const form = $("form");
const state = { phases: null, item: null, busy: false, saving: false, answered: false, current: 0, dirty: false };
const clock = { shown: 0, since: null };

// --- time in view --------------------------------------------------------------------------------------------------

function watching() {
  return state.item !== null && !document.hidden && !document.querySelector("dialog[open]");
}

function tick() {
  const now = performance.now();
  if (clock.since !== null) clock.shown += now - clock.since;
  clock.since = watching() ? now : null;
}

document.addEventListener("visibilitychange", tick);

// --- sections ------------------------------------------------------------------------------------------------------

function section(name) {
  for (const id of ["loading", "welcome", "turn", "judge", "done", "left"]) $(id).hidden = id !== name;
  if (name !== "judge") {
    state.item = null;
    state.dirty = false;
    tick();
    $("count").textContent = "";
    const title = $(`${name}-title`);
    if (title) title.focus();
  }
  window.scrollTo(0, 0);
}

function say(words, kind = "") {
  $("status").textContent = words;
  $("status").className = kind;
}

function stopped(problem) {
  const note = $("loading");
  section("loading");
  note.classList.add("bad");
  note.textContent = problem instanceof answers.Ended ? problem.message : `The server does not answer (${problem.message}). Load the page again.`;
}

function bar(phase, position) {
  const { total, answered } = state.phases[phase];
  $("phase").textContent = phase === "training" ? "Training" : "Item";
  $("count").textContent = `${position} of ${total}`;
  $("progress").max = Math.max(1, total);
  $("progress").value = answered;
  $("progress").setAttribute("aria-valuetext", `${answered} of ${total} answered`);
}

// --- one item ------------------------------------------------------------------------------------------------------

// Until the frames of an item are decoded nothing answers it: neither a key nor a click meant for the one before.
async function open(phase, position) {
  tick();
  state.busy = true;
  state.item = null;
  form.inert = true;
  ready();
  try {
    const item = await answers.persist(() => load(phase, position), () => late("The server does not answer. Trying again …"));
    say(item.answer ? `Saved ${time(item.answer.at)}` : "", "good");
    form.inert = false;
    state.item = item;
    clock.shown = 0;
    clock.since = null;
    tick();
    $("main").focus({ preventScroll: true });
  } catch (problem) {
    stopped(problem);
  } finally {
    state.busy = false;
    ready();
  }
}

async function load(phase, position) {
  const item = await answers.item(phase, position);
  section("judge");
  bar(phase, position);
  fill(item);
  await panes.show(item);
  return item;
}

function late(words) {
  if ($("judge").hidden) section("loading");
  $("loading").textContent = words;
  say(words, "bad");
}

function fill(item) {
  form.reset();
  state.dirty = false;
  const given = item.answer;
  state.answered = given !== null;
  if (given) {
    for (const name of questions) form.elements[name].value = String(given[name]);
    for (const box of form.querySelectorAll("[name=marks]")) box.checked = (given.marks || []).includes(box.value);
    if (none) none.checked = given.marks.length === 0;
    $("comment").value = given.comment;
  }
  feedback(item.feedback);
  mark(given ? questions.length : 0);
  $("back").disabled = item.position === 1;
  $("save").textContent = item.phase === "training" && !given ? "Check" : "Save and go on";
}

function time(text) {
  return new Date(text).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" });
}

function feedback(given) {
  const note = $("feedback");
  note.hidden = !given;
  if (!given) return;
  note.className = given.right ? "note good" : "note bad";
  note.textContent = `${given.right ? "As expected." : "Another answer was expected."} ${given.words}`;
}

function mark(index) {
  state.current = index;
  questions.forEach((name, number) => $(`q-${name}`).classList.toggle("current", number === index));
}

function given() {
  if (pairs) {
    const [diagnosis, realism] = questions.map((name) => Number(form.elements[name].value) || null);
    return { diagnosis, realism };
  }
  const marks = [...form.querySelectorAll("[name=marks]:checked")].map((box) => box.value);
  return { marks: marks.length || none?.checked ? marks : null };
}

function ready() {
  $("save").disabled = state.busy;
  $("back").disabled = state.busy || !state.item || (state.item.position === 1);
}

function missing() {
  const answer = given();
  if (pairs) return questions.filter((name) => answer[name] === null).map((name) => `q-${name}`);
  return answer.marks === null ? ["q-marks"] : [];
}

async function save() {
  if (state.busy || !state.item) return;
  const item = state.item;
  const open_ = missing();
  for (const name of document.querySelectorAll(".question")) name.classList.toggle("shake", open_.includes(name.id));
  if (open_.length) {
    say(pairs ? "Please answer both questions." : blind ? "Please choose real or made." : "Mark what you see, or none of these.", "bad");
    if (pairs) mark(questions.indexOf(open_[0].slice(2)));
    $(open_[0]).querySelector("input").focus();
    return;
  }
  const checked = item.phase === "training" && !$("feedback").hidden;
  if (state.answered && !state.dirty && (item.phase === "main" || checked)) return next(); // nothing new to save
  tick();
  state.busy = true;
  ready();
  say("Saving …");
  try {
    const content = { phase: item.phase, position: item.position, ...given(), comment: $("comment").value, elapsed_ms: Math.round(clock.shown) };
    state.dirty = false; // what is changed from here on is not in it
    state.saving = true;
    const saved = await answers.save(content, () => say("Not saved yet: the server does not answer. Trying again …", "bad"));
    state.saving = false;
    state.phases[item.phase] = saved.progress;
    state.answered = true;
    bar(item.phase, item.position);
    if (state.dirty) {
      say("Saved as it was; what you changed meanwhile is not saved yet.", "bad");
      return;
    }
    say(`Saved ${time(saved.at)}`, "good");
    if (saved.feedback) {
      feedback(saved.feedback);
      $("feedback").focus({ preventScroll: true });
      $("feedback").scrollIntoView({ block: "nearest" }); // clear of the buttons that stick to a phone's lower edge
      $("save").textContent = "Go on";
      return;
    }
    await next();
  } catch (problem) {
    stopped(problem);
  } finally {
    state.busy = false;
    state.saving = false;
    ready();
  }
}

async function next() {
  const { phase, position } = state.item;
  const { total } = state.phases[phase];
  if (position < total) await open(phase, position + 1);
  else if (phase === "training") turn();
  else finish();
}

function turn() {
  const { total, answered } = state.phases.main;
  if (total === 0) return finish();
  $("turn-rest").textContent = `${total - answered} items wait for you.`;
  return section("turn");
}

function finish() {
  const { total, answered, next: place } = state.phases.main;
  if (answered < total) return open("main", place);
  $("phase").textContent = "Done";
  $("progress").value = $("progress").max;
  return section("done");
}

async function back() {
  if (state.busy || !state.item || state.item.position === 1) return;
  if (state.dirty && !window.confirm("This answer is not saved yet. Go back all the same?")) return;
  await open(state.item.phase, state.item.position - 1);
}

// --- beginning and end ---------------------------------------------------------------------------------------------

function resume() {
  const { training, main } = state.phases;
  if (training.answered < training.total) return open("training", training.next);
  if (main.answered === 0 && training.total) return turn();
  return finish();
}

async function start() {
  try {
    const study = await answers.where();
    state.phases = study.phases;
    const { training, main } = study.phases;
    $("phase").textContent = `Annotator ${study.annotator}`;
    if (training.answered + main.answered === 0) {
      const round = training.total ? `First comes a training round of ${training.total} with feedback, then ` : "There are ";
      $("welcome-rest").textContent = `${round}${main.total} items.`;
      section("welcome");
    } else await resume();
  } catch (problem) {
    stopped(problem);
  }
}

async function signOut() {
  try {
    await answers.leave();
    for (const dialog of document.querySelectorAll("dialog[open]")) dialog.close();
    section("left");
  } catch (problem) {
    stopped(problem);
  }
}

$("begin").addEventListener("click", resume);
$("start-main").addEventListener("click", () => open("main", state.phases.main.next));
$("review").addEventListener("click", () => open("main", state.phases.main.total));
$("leave").addEventListener("click", signOut);
$("leave-done").addEventListener("click", signOut);
$("back").addEventListener("click", back);
form.addEventListener("submit", (event) => {
  event.preventDefault();
  save();
});
form.addEventListener("input", (event) => {
  state.dirty = true;
  say("");
  event.target.closest(".question")?.classList.remove("shake");
  const question = questions.indexOf(event.target.name);
  if (question >= 0) mark(given()[questions[1 - question]] === null ? 1 - question : questions.length);
  if (event.target.id === "no-marks" && event.target.checked) {
    for (const box of form.querySelectorAll("[name=marks]")) box.checked = false;
  } else if (none && event.target.name === "marks" && event.target.checked) none.checked = false;
  if (state.item && state.item.phase === "training" && event.target.id !== "comment") {
    feedback(null);
    $("save").textContent = "Check";
  }
});
window.addEventListener("beforeunload", (event) => {
  if (state.dirty || state.saving) event.preventDefault();
});

// --- dialogs and tools ---------------------------------------------------------------------------------------------

for (const name of ["guide", "keys", "pause"]) {
  $(`open-${name}`).addEventListener("click", () => dialog(name));
  $(name).addEventListener("close", () => {
    tick();
    if (state.item) $("main").focus({ preventScroll: true });
  });
}

function dialog(name) {
  $(name).showModal();
  tick();
}

const tools = {
  "zoom-in": () => panes.zoomBy(1.5),
  "zoom-out": () => panes.zoomBy(1 / 1.5),
  "zoom-reset": panes.reset,
  ...(pairs ? { outline: panes.toggleOutline, single: panes.toggleSingle } : {}),
};
for (const [id, act] of Object.entries(tools)) $(id).addEventListener("click", act);
// A tool that was clicked gives the keys back to the item: Enter saves and does not zoom again. (Reached by Tab it keeps them.)
document.querySelector(".tools").addEventListener("click", (event) => {
  if (event.detail > 0 && state.item) $("main").focus({ preventScroll: true });
});
if (pairs) {
  const button = $("flicker");
  let held = false;
  button.addEventListener("pointerdown", () => {
    held = true;
    panes.flicker(true);
  });
  for (const end of ["pointerup", "pointercancel", "pointerleave"]) {
    button.addEventListener(end, () => {
      if (held) panes.flicker(false);
      held = false;
    });
  }
  button.addEventListener("contextmenu", (event) => event.preventDefault());
  // Pressed by keyboard or by a screen reader there is no holding: it goes to and fro.
  button.addEventListener("click", (event) => {
    if (event.detail === 0) panes.flicker(!panes.isSwapped());
  });
}

// --- keys ----------------------------------------------------------------------------------------------------------

const useKeys = $("use-keys");
useKeys.checked = localStorage.getItem("study-keys") !== "off";
useKeys.addEventListener("change", () => localStorage.setItem("study-keys", useKeys.checked ? "on" : "off"));

function level(digit) {
  if (pairs) {
    const name = questions[Math.min(state.current, questions.length - 1)];
    const radio = form.querySelector(`[name=${name}][value="${digit}"]`);
    if (!radio) return;
    radio.checked = true;
    radio.dispatchEvent(new Event("input", { bubbles: true }));
  } else {
    const box = digit === 0 ? none : form.querySelectorAll("[name=marks]")[digit - 1];
    if (!box) return;
    box.checked = blind || !box.checked;
    box.dispatchEvent(new Event("input", { bubbles: true }));
  }
}

const keys = {
  o: () => pairs && panes.toggleOutline(),
  l: () => pairs && panes.toggleSingle(),
  f: () => pairs && panes.flicker(true),
  "+": () => panes.zoomBy(1.5),
  "=": () => panes.zoomBy(1.5),
  "-": () => panes.zoomBy(1 / 1.5),
  c: () => $("comment").focus(),
  b: back,
  p: () => dialog("pause"),
  g: () => dialog("guide"),
  "?": () => dialog("keys"),
  ...(none ? {} : { 0: panes.reset }),
};

document.addEventListener("keydown", (event) => {
  const go = ["welcome", "turn"].find((id) => !$(id).hidden);
  if (go && event.key === "Enter" && !event.repeat && !document.querySelector("dialog[open]") && !event.target.closest("button, a")) {
    event.preventDefault();
    $(go).querySelector("button").click();
    return;
  }
  if (!state.item || document.querySelector("dialog[open]") || event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = event.target.id === "comment";
  if (typing) {
    if (event.key === "Escape") $("main").focus({ preventScroll: true });
    return;
  }
  const onControl = event.target.closest("button, a, input");
  if (event.key === "Enter" && !(onControl && onControl.tagName !== "INPUT")) {
    event.preventDefault();
    if (!event.repeat) save();
    return;
  }
  if (event.shiftKey && event.key.startsWith("Arrow")) {
    event.preventDefault();
    const step = { ArrowLeft: [0.1, 0], ArrowRight: [-0.1, 0], ArrowUp: [0, 0.1], ArrowDown: [0, -0.1] }[event.key];
    panes.shift(...step);
    return;
  }
  if (pairs && (event.key === "ArrowUp" || event.key === "ArrowDown") && !(onControl && onControl.tagName === "INPUT")) {
    event.preventDefault();
    mark(event.key === "ArrowUp" ? 0 : 1);
    return;
  }
  if (!useKeys.checked) return;
  const name = event.key.toLowerCase();
  if (/^[0-9]$/.test(name) && !(name === "0" && !none) && !(pairs && name > "5")) {
    event.preventDefault();
    level(Number(name));
  } else if (keys[name] && !(event.repeat && "ofblcpg?".includes(name))) {
    event.preventDefault();
    keys[name]();
  }
});

document.addEventListener("keyup", (event) => {
  if (pairs && event.key.toLowerCase() === "f") panes.flicker(false);
});
window.addEventListener("blur", () => pairs && panes.flicker(false));

start();

// Review of prompts. Elements are built from texts, never from HTML: captions come from strangers.
const byId = (id) => document.getElementById(id);
const { start, seal } = document.body.dataset;
let shown = null;

const element = (name, properties = {}, ...children) => {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
};

const say = (words, bad = false) => {
  byId("message").textContent = words;
  byId("message").className = bad ? "bad" : "";
};

async function ask(path, body) {
  const options = body === undefined ? {} : {
    method: "POST",
    headers: { "content-type": "application/json", "x-study-seal": seal },
    body: JSON.stringify(body),
  };
  const answer = await fetch(path, options).catch(() => null);
  if (answer === null) throw new Error("The server does not respond. Is medtest prompts review still running?");
  const content = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(content.error ?? "Something went wrong on the server.");
  return content;
}

const field = (label, value, className = "") =>
  element("input", { value, className, ariaLabel: label, placeholder: label, maxLength: 200 });

const row = (list, ...fields) => {
  const remove = element("button", { type: "button", textContent: "Remove" });
  const made = element("li", { className: "row" }, ...fields, remove);
  remove.addEventListener("click", () => {
    const near = made.nextElementSibling ?? made.previousElementSibling;
    made.remove();
    changed();
    (near?.querySelector("input, select") ?? byId(`add-${list.dataset.adds}`)).focus();
  });
  list.append(made);
  return made;
};

const nameOf = (item) => {
  const [count, attributes, name] = [...item.querySelectorAll("input")].map((input) => input.value.trim());
  return [count, attributes, name].filter(Boolean).join(" ") || "unnamed";
};

const endSelect = (label, chosen) => {
  const select = element("select", { ariaLabel: label });
  select.dataset.chosen = String(chosen);
  return select;
};

function addEntity([name, count, attributes]) {
  const number = field("Number", count ?? "", "number");
  number.inputMode = "numeric";
  return row(byId("entities"), number, field("Attributes", attributes.join(", ")), field("Name", name));
}

const addTriple = ([subject, predicate, target]) =>
  row(byId("triples"), endSelect("First thing", subject), field("Relation", predicate), endSelect("Second thing", target));

const addAbsent = (names) => row(byId("absent"), field("Thing, or thing, relation, thing", names.join(", ")));

// Options name the things as they are typed now; a removed thing leaves its relations without that end.
function renameEnds() {
  const things = [...byId("entities").children];
  things.forEach((item, number) => (item.dataset.key ??= String(number)));
  for (const select of document.querySelectorAll("#triples select")) {
    const chosen = select.value || select.dataset.chosen;
    select.replaceChildren(...things.map((item) => new Option(nameOf(item), item.dataset.key)));
    select.value = chosen;
    select.dataset.chosen = chosen;
  }
}

function fill(facts) {
  for (const id of ["entities", "triples", "absent"]) byId(id).replaceChildren();
  facts.entities.forEach(addEntity);
  facts.triples.forEach(addTriple);
  facts.absent.forEach(addAbsent);
  keys = facts.entities.length;
  changed();
}
let keys = 0;

function stated() {
  const order = new Map([...byId("entities").children].map((item, number) => [item.dataset.key, number]));
  const parts = (text) => text.split(",").map((part) => part.trim().toLowerCase()).filter(Boolean);
  return {
    entities: [...byId("entities").children].map((item) => {
      const [count, attributes, name] = [...item.querySelectorAll("input")].map((input) => input.value.trim());
      return { name, count: count === "" ? null : Number(count), attributes: parts(attributes).sort() };
    }),
    triples: [...byId("triples").children].map((item) => {
      const [first, second] = [...item.querySelectorAll("select")].map((select) => order.get(select.value) ?? -1);
      return [first, item.querySelector("input").value.trim(), second];
    }),
    absent: [...byId("absent").children].map((item) => parts(item.querySelector("input").value)),
  };
}

const listed = (facts) => JSON.stringify([
  facts.entities.map((thing) => (Array.isArray(thing) ? thing : [thing.name.toLowerCase(), thing.count, thing.attributes])),
  facts.triples, facts.absent,
]);

function changed() {
  renameEnds();
  byId("save").textContent = listed(stated()) === listed(shown.read) ? "Accept" : "Save the correction";
}

function show(content) {
  shown = content;
  byId("count").textContent = `${content.number + 1} of ${content.total}, ${content.reviewed} reviewed`;
  byId("progress").value = content.reviewed;
  byId("text").textContent = content.text;
  const sure = { high: "read with confidence", medium: "read with some handling", low: "not understood" };
  byId("confidence").textContent = sure[content.confidence];
  byId("confidence").className = `tag ${content.confidence}`;
  byId("verdict").hidden = content.verdict === null;
  byId("verdict").textContent = content.verdict ?? "";
  byId("verdict").className = `tag ${content.verdict}`;
  byId("withdraw").hidden = content.verdict === null;
  byId("reasons").replaceChildren(...content.reasons.map(({ meaning, details }) =>
    element("li", { textContent: `The prompt ${meaning}${details.length ? `: ${details.join("; ")}` : ""}` })));
  byId("back").disabled = content.number === 0;
  byId("ahead").disabled = content.number === content.total - 1;
  byId("open").disabled = content.next === null;
  fill(content.facts);
}

async function go(number) {
  try {
    show(await ask(`/api/prompt/${number}`));
    say("");
    byId("prompt-title").focus();
  } catch (error) {
    say(error.message, true);
  }
}

async function save(onwards) {
  try {
    const body = { number: shown.number, ...stated() };
    if (body.entities.some(({ count }) => count !== null && !(Number.isInteger(count) && count > 0))) {
      throw new Error("A number of things is a whole number from 1, or empty.");
    }
    if (body.triples.some(([first, , second]) => first < 0 || second < 0)) {
      throw new Error("A relation joins two different things of the list.");
    }
    const saved = await ask("/api/review", body);
    show(saved);
    if (onwards && saved.next !== null) await go(saved.next);
    say(saved.next === null ? "Saved. Every prompt is reviewed." : "Saved.");
  } catch (error) {
    say(error.message, true);
  }
}

byId("form").addEventListener("submit", (event) => { event.preventDefault(); save(true); });
byId("form").addEventListener("input", changed);
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); save(true); }
});
byId("reset").addEventListener("click", () => fill(shown.read));
byId("withdraw").addEventListener("click", async () => {
  try {
    show(await ask("/api/review", { number: shown.number, withdrawn: true }));
    say("The review is withdrawn.");
  } catch (error) {
    say(error.message, true);
  }
});
byId("back").addEventListener("click", () => go(shown.number - 1));
byId("ahead").addEventListener("click", () => go(shown.number + 1));
byId("open").addEventListener("click", () => go(shown.next));
for (const [name, add] of [
  ["entity", () => { const made = addEntity(["", 1, []]); made.dataset.key = String(keys++); return made; }],
  ["triple", () => addTriple(["", "", ""])],
  ["absent", () => addAbsent([])],
]) {
  const button = byId(`add-${name}`);
  button.previousElementSibling.dataset.adds = name;
  button.addEventListener("click", () => {
    const made = add();
    changed();
    made.querySelector("input, select").focus();
  });
}
go(Number(start));

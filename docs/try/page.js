// The page: files that are dropped, tabs, and what Python answers. Python runs in worker.js.
const LARGEST = 1e9;
const MODEL = /\.(xml|onnx)$/i, INPUT = /\.(npy|npz|png|jpe?g|bmp|webp|gif)$/i;
const $ = (selector, root = document) => root.querySelector(selector);

const create = (tag, properties, ...content) => {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...content);
  return element;
};

// Python: calls wait until the one before is answered; stop() ends them all.
class Python {
  constructor() {
    this.last = 0;
    this.begin();
  }

  begin() {
    this.waiting = new Map();
    this.worker = new Worker("worker.js", { type: "module" });
    this.worker.onmessage = ({ data }) => {
      if (data.progress) return progress(data.progress, data.done, data.total);
      const { resolve, reject } = this.waiting.get(data.id);
      this.waiting.delete(data.id);
      if (data.error === undefined) resolve(data.value); else reject(new Error(data.error));
    };
    this.worker.onerror = (event) => this.fail(event.message || "Python cannot be started in this browser");
  }

  call(name, given = {}) {
    return new Promise((resolve, reject) => {
      const id = ++this.last;
      this.waiting.set(id, { resolve, reject });
      this.worker.postMessage({ id, name, given });
    });
  }

  fail(text) {
    for (const { reject } of this.waiting.values()) reject(new Error(text));
    this.waiting.clear();
  }

  stop() {
    this.worker.terminate();
    this.fail("stopped");
    this.begin();
  }
}

const python = new Python();
// The files of each model, and what Python has said of it.
const models = { a: null, b: null };
// Inputs that were dropped, by their names.
let inputFiles = new Map();
// Contents of tabs that are up to date.
const shown = new Set();

function progress(text, done, total) {
  const section = $("#progress"), bar = $("progress");
  section.hidden = !text;
  if (!text) return;
  $("p", section).textContent = text;
  if (total && done < total) Object.assign(bar, { max: total, value: done }); else bar.removeAttribute("value");
}

function complain(error) {
  const section = $("#error");
  section.hidden = !error;
  section.textContent = error ? error.message ?? String(error) : "";
}

// Does one thing after the other, with its text as progress and its error in words.
let queue = Promise.resolve();
function work(text, action) {
  queue = queue.then(async () => {
    complain(null);
    progress(text);
    try {
      await action();
    } catch (error) {
      complain(error);
    }
    progress("");
  });
  return queue;
}

// A document of irexec. Its scripts run, but see nothing of this page.
function frame(into, html, title, isTall = false) {
  const element = create("iframe", { srcdoc: html, title, className: isTall ? "tall" : "" });
  element.setAttribute("sandbox", "allow-scripts");
  into.replaceChildren(element);
  return element;
}

addEventListener("message", ({ source, data }) => {
  const sender = [...document.querySelectorAll("iframe")].find((one) => one.contentWindow === source);
  if (!sender) return;
  if (Number.isFinite(data.height) && !sender.classList.contains("tall")) sender.style.height = `${Math.min(data.height + 2, 20000)}px`;
  if (typeof data.layer === "string" && sender.closest("#graph")) values(data.layer, $("#graph .values"));
});

function save(name, bytes) {
  const link = create("a", { href: URL.createObjectURL(new Blob([bytes])), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

// Files are divided into up to two models, each with the files that may belong to it, and inputs.
function take(files, slot = "a") {
  const large = files.find((file) => file.size > LARGEST);
  if (large) {
    return complain(`${large.name} has ${(large.size / 1e9).toFixed(1)} GB: a page has 2 to 4 GB of memory and holds weights twice, so that files above 1 GB are for the command line`);
  }
  const found = files.filter((file) => MODEL.test(file.name)), others = files.filter((file) => !MODEL.test(file.name));
  const inputs = others.filter((file) => INPUT.test(file.name)), parts = others.filter((file) => !INPUT.test(file.name));
  if (found.length > 2) return complain(`${found.length} models: one is opened, two are compared`);
  if (!found.length && parts.length && models[slot] && (/\.onnx$/i.test(models[slot].file.name) || parts.every((file) => /\.bin$/i.test(file.name)))) {
    // The weights of the model that is open; those of an .onnx may have any name.
    const names = new Set(parts.map((file) => file.name));
    return open(slot, models[slot].file, [...models[slot].files.filter((file) => !names.has(file.name)), ...parts]);
  }
  if (found.length) {
    found.forEach((file, i) => {
      const belongs = found.length === 1 ? parts : parts.filter((part) => file.name.endsWith(".onnx") ? !part.name.endsWith(".bin") : stem(part) === stem(file) || parts.length === 1);
      open(i ? "b" : slot, file, [file, ...belongs]);
    });
    if (slot === "a") inputFiles = new Map();
  } else if (!inputs.length) return complain(`${files.map((file) => file.name).join(", ")}: neither a model (.xml, .onnx) nor an input (.npy, .npz or an image)`);
  for (const file of inputs) inputFiles.set(file.name, file);
  if (inputs.length) work("reading inputs", () => python.call("mount", { folder: "/inputs", files: [...inputFiles.values()] }).then(showInputs));
  if (found.length === 2) work("", () => select("compare"));
  else if (!found.length) select("run");
}

const stem = (file) => file.name.replace(/\.[^.]*$/, "");

function open(slot, file, files) {
  return work(`reading ${file.name}`, async () => {
    models[slot] = { file, files };
    await python.call("mount", { folder: `/models/${slot}`, files });
    progress(`reading ${file.name}`);
    const opened = await python.call("open", { slot, path: `/models/${slot}/${file.name}` });
    Object.assign(models[slot], { opened });
    if (slot === "b") {
      $("#second").textContent = `A is ${models.a.opened.name}, B is ${opened.name}. Drop another second model here.`;
      shown.delete("compare");
      if (selected() === "compare") select("compare");
      return;
    }
    models.b = null;
    shown.clear();
    for (const into of document.querySelectorAll(".results, .values, .frame")) into.replaceChildren();
    $("#graph .values").append(create("p", { className: "hint", textContent: "No layer is selected." }));
    $("#opened").replaceChildren(create("strong", {}, opened.name), `: ${Object.entries(opened.counts).map(([name, count]) => `${count} ${name}${count > 1 && name !== "info" ? "s" : ""}`).join(", ") || "no findings"}. Drop another model here.`);
    $("#work").hidden = false;
    frame($("#findings"), opened.html, `findings of ${opened.name}`);
    $("#tensors").replaceChildren(...opened.tensors.slice(0, 5000).map((value) => create("option", { value })));
    $("#save fieldset").replaceChildren($("#save legend"), ...opened.formats.map(([value, text], i) => create("label", {}, create("input", { type: "radio", name: "format", value, checked: !i }), ` ${text}`)));
    $("#save .target").hidden = true;
    showInputs();
    select("findings");
  });
}

function showInputs() {
  const names = [...inputFiles.keys()];
  const rows = (models.a?.opened?.inputs ?? []).map((input, i) => {
    const source = create("select", { name: `source-${i}`, ariaLabel: `source of ${input.name}` }, ...["random", "zeros", "ones", ...names].map((text) => create("option", { textContent: text })));
    if (names.length > i) source.value = names[i];
    const row = create("div", {}, create("b", {}, input.name), create("code", {}, `${input.type}${input.shape}`), source);
    if (!input.is_static) row.append(create("input", { name: `shape-${i}`, placeholder: `such as ${input.shape.replace(/[^\d,[\]]+/g, "2") || "[1,8]"}`, size: 14, ariaLabel: `shape of ${input.name}` }));
    return row;
  });
  rows.push(create("p", { className: "hint" }, "A .npy, .npz or image that is dropped above is offered here."));
  $("#inputs .inputs").replaceChildren(...rows);
}

const numbers = (text) => text.split(",").map(Number);

function runModel() {
  return work("running", async () => {
    const form = new FormData($("#inputs")), { inputs } = models.a.opened;
    const given = inputs.map((input, i) => {
      const source = form.get(`source-${i}`);
      return { name: input.name, source: inputFiles.has(source) ? `/inputs/${source}` : source, shape: form.get(`shape-${i}`) || "" };
    });
    const results = await python.call("run", { slot: "a", inputs: given, seed: Number(form.get("seed")), scale: numbers(form.get("scale")), mean: numbers(form.get("mean")), bgr: form.has("bgr"), resize: form.get("resize") });
    const into = $("#run .results");
    frame(into, results.html, "results");
    const button = create("button", { type: "button", textContent: "Save results (.npz)" });
    button.onclick = () => save("results.npz", results.bytes);
    into.append(button);
  });
}

function values(tensor, into) {
  return work(`computing ${tensor}`, async () => {
    into.replaceChildren();
    frame(into, (await python.call("values", { slot: "a", tensor })).html, `values of ${tensor}`);
  });
}

const selected = () => $('[role=tab][aria-selected=true]')?.getAttribute("aria-controls");

function select(name) {
  for (const tab of document.querySelectorAll("[role=tab]")) {
    const isSelected = tab.getAttribute("aria-controls") === name;
    tab.ariaSelected = String(isSelected);
    tab.tabIndex = isSelected ? 0 : -1;
    $(`#${tab.getAttribute("aria-controls")}`).hidden = !isSelected;
  }
  if (shown.has(name)) return;
  if (name === "graph") {
    shown.add(name);
    work("drawing", async () => frame($("#graph .frame"), (await python.call("graph", { slot: "a" })).html, "graph", true));
  } else if (name === "compare" && models.b?.opened) {
    shown.add(name);
    work(`comparing ${models.a.opened.name} with ${models.b.opened.name}`, async () => {
      const { html, picture } = await python.call("compare", { a: "a", b: "b" });
      frame($("#compare .frame"), picture, "both graphs", true);
      frame($("#compare .results"), html, "comparison");
    });
  }
}

function dropping(element, slot) {
  element.addEventListener("dragover", (event) => { event.preventDefault(); element.classList.add("over"); });
  element.addEventListener("dragleave", () => element.classList.remove("over"));
  element.addEventListener("drop", (event) => {
    event.preventDefault();
    event.stopPropagation();
    $$over();
    take([...event.dataTransfer.files], slot);
  });
}
const $$over = () => document.querySelectorAll(".over").forEach((one) => one.classList.remove("over"));

dropping(document.body, "a");
dropping($("#other"), "b");
for (const [id, slot] of [["files", "a"], ["others", "b"]]) {
  $(`#${id}`).addEventListener("change", ({ target }) => { take([...target.files], slot); target.value = ""; });
}
for (const button of document.querySelectorAll("[data-sample]")) {
  button.onclick = async () => {
    try {
      take(await Promise.all(button.dataset.sample.split(" ").map(async (name) => {
        const response = await fetch(`samples/${name}`);
        if (!response.ok) throw new Error(`${name}: the server answers ${response.status}`);
        return new File([await response.blob()], name);
      })));
    } catch (error) {
      complain(error);
    }
  };
}
$("[role=tablist]").addEventListener("click", ({ target }) => { if (target.role === "tab") select(target.getAttribute("aria-controls")); });
$("[role=tablist]").addEventListener("keydown", (event) => {
  const tabs = [...document.querySelectorAll("[role=tab]")], at = tabs.indexOf(document.activeElement);
  const next = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
  if (next === undefined || at < 0) return;
  event.preventDefault();
  const tab = tabs[(next + tabs.length) % tabs.length];
  tab.focus();
  select(tab.getAttribute("aria-controls"));
});
$("#inputs").addEventListener("submit", (event) => { event.preventDefault(); runModel(); });
$("#tensor").addEventListener("submit", (event) => { event.preventDefault(); values($("[name=tensor]").value, $("#run .values")); });
$("#save form").addEventListener("change", () => { $("#save .target").hidden = $("#save form").format.value !== "for"; });
$("#save form").addEventListener("submit", (event) => {
  event.preventDefault();
  const form = new FormData(event.target);
  work("writing", async () => {
    const saved = await python.call("save", { slot: "a", format: form.get("format"), target: form.get("target") });
    save(saved.path.split("/").pop(), saved.bytes);
    frame($("#save .results"), saved.html, "saved");
  });
});
$("#stop").onclick = async () => {
  python.stop();
  // The model is opened again, since Python was ended with all that it held.
  const { a, b } = models;
  await queue;
  for (const [slot, model] of [["a", a], ["b", b]]) if (model) open(slot, model.file, model.files);
  inputFiles = new Map();
};

work("loading Python", () => python.call("ready"));

// Python in a worker: loads Pyodide, NumPy and irexec, and calls the functions of page.py.
// sources.json lists every file with its address and hash; the browser refuses a file of another hash.
const plain = self.fetch.bind(self);
const mounted = new Set();
let sources, pyodide, done = 0;

const say = (text) => postMessage({ progress: text, done, total: Object.values(sources?.files ?? {}).reduce((sum, file) => sum + file.bytes, 0) });

async function fetched(name, file = sources.files[name]) {
  let response;
  say(`loading ${name}, ${(file.bytes / 1e6).toFixed(1)} MB`);
  try {
    response = await plain(file.url, { integrity: file.integrity });
  } catch (error) {
    throw new Error(`${new URL(file.url, location.href).host} does not answer, or ${name} is not the file that this page was made for (${error.message})`);
  }
  if (!response.ok) throw new Error(`${file.url}: the server answers ${response.status} ${response.statusText}`);
  done += file.bytes;
  return response;
}

// Pyodide fetches its files by their names.
self.fetch = (resource, options) => {
  const name = String(resource.url ?? resource).split("/").pop();
  const file = sources.files[name] ?? sources.later?.[name];
  return file ? fetched(name, file) : plain(resource, options);
};

async function module(name) {
  const url = URL.createObjectURL(new Blob([await (await fetched(name)).text()], { type: "text/javascript" }));
  return import(url).finally(() => URL.revokeObjectURL(url));
}

async function start() {
  sources = await (await plain("sources.json", { cache: "no-cache" })).json();
  say("loading Python");
  const { loadPyodide } = await module("pyodide.mjs");
  const options = { indexURL: new URL(sources.base, location.href).href, packageBaseUrl: new URL(sources.packages, location.href).href };
  if (sources.files["pyodide.asm.mjs"]) options.createPyodideModule = (await module("pyodide.asm.mjs")).default;
  pyodide = await loadPyodide(options);
  await load(["numpy"]);
  const archive = await (await fetched("irexec.zip")).arrayBuffer();
  pyodide.unpackArchive(archive, "zip", { extractDir: "/irexec" });
  say("starting irexec");
  pyodide.runPython("import sys; sys.path.insert(0, '/irexec'); sys.dont_write_bytecode = True; import irexec_page");
}

async function load(packages) {
  for (const name of packages) {
    say(`loading ${name.split("/").pop()}`);
    const problems = [];
    await pyodide.loadPackage(name, { messageCallback: () => {}, errorCallback: (text) => problems.push(text) });
    if (problems.length) throw new Error(problems.join(" ").replace(/\s+/g, " "));
  }
}

async function needed(names) {
  if (names.some((name) => /\.onnx$/i.test(name))) {
    if (!sources.onnx) throw new Error("this copy of the page has no package onnx: convert the model with irexec convert first");
    await load(sources.onnx);
  }
  if (names.some((name) => /\.(png|jpe?g|bmp|webp|gif)$/i.test(name))) await load(["pillow"]);
}

// Files stay on the disk: Python reads from them what it needs.
async function mount({ folder, files }) {
  await needed(files.map((file) => file.name));
  if (mounted.has(folder)) pyodide.FS.unmount(folder);
  pyodide.FS.mkdirTree(folder);
  pyodide.FS.mount(pyodide.FS.filesystems.WORKERFS, { files }, folder);
  mounted.add(folder);
}

const ready = start();

onmessage = async ({ data: { id, name, given } }) => {
  try {
    await ready;
    if (name === "ready") return postMessage({ id, value: { python: pyodide.version } });
    if (name === "mount") return postMessage({ id, value: await mount(given) });
    if (name === "save" && given.format === "onnx") await needed(["x.onnx"]);
    const python = pyodide.pyimport("irexec_page");
    const answer = JSON.parse(python.call(name, JSON.stringify(given)));
    if (answer.value?.path) answer.value.bytes = pyodide.FS.readFile(answer.value.path);
    postMessage({ id, ...answer });
  } catch (error) {
    const text = String(error.message ?? error).trim().split("\n").pop();
    postMessage({ id, error: /memory|allocation/i.test(text) ? "the memory of the page, 2 to 4 GB, is not enough for this" : text });
  }
};

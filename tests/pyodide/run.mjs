// Run a Python file in Pyodide: node run.mjs FOLDER_OF_PYODIDE ROOT_OF_THE_PROJECT FOLDER_OF_PACKAGES FILE
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [distribution, root, packages, file] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(`${distribution}/pyodide.mjs`));
const pyodide = await loadPyodide({ indexURL: `${distribution}/` });
await pyodide.loadPackage("numpy", { messageCallback: () => {} });
for (const [folder, path] of [["/project", root], ["/packages", packages]]) {
  pyodide.FS.mkdirTree(folder);
  pyodide.FS.mount(pyodide.FS.filesystems.NODEFS, { root: path }, folder);
}
pyodide.runPython("import sys; sys.path[:0] = ['/project', '/packages']; sys.dont_write_bytecode = True");
try {
  process.exit((await pyodide.runPythonAsync(readFileSync(file, "utf8"))) ? 1 : 0);
} catch (error) {
  // Without this, node would print the whole line of Pyodide's source, which has 40 kB.
  console.error(String(error));
  process.exit(1);
}

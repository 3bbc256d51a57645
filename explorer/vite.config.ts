// One file of HTML that contains everything, so that the page also works when it is opened from disk.
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { defineConfig, type Plugin } from "vite";
import { viteSingleFile } from "vite-plugin-singlefile";

// The module and the papers are compressed, because base64 makes them a third larger.
function packed(name: string, path: () => string): Plugin {
  const virtual = `virtual:${name}`;
  return {
    name,
    resolveId: (id) => (id === virtual ? `\0${virtual}` : undefined),
    load(id) {
      if (id !== `\0${virtual}`) return undefined;
      const bytes = gzipSync(readFileSync(path()), { level: 9 });
      // The operating system, which makes no difference: unknown.
      bytes[9] = 255;
      return `export default ${JSON.stringify(bytes.toString("base64"))};`;
    },
  };
}

function module(): Plugin {
  return packed("explorer-module", () => {
    const path = process.env.EXPLORER_MODULE;
    if (!path) throw new Error("EXPLORER_MODULE must name the WebAssembly module");
    return path;
  });
}

// The policy of the page allows its own scripts and styles by their hashes, and nothing else.
function policy(): Plugin {
  const hashes = (html: string, element: string): string => {
    const contents = html.matchAll(new RegExp(`<${element}\\b[^>]*>([\\s\\S]*?)</${element}>`, "g"));
    const hash = (text: string) => createHash("sha256").update(text).digest("base64");
    return [...contents].map(([, text]) => `'sha256-${hash(text ?? "")}'`).join(" ");
  };
  return {
    name: "content-security-policy",
    enforce: "post",
    // After the other plugin has put scripts and styles into the page.
    writeBundle({ dir }) {
      const path = `${dir}/index.html`;
      const html = readFileSync(path, "utf8");
      const page = html
        .replace("SCRIPT-HASHES", () => hashes(html, "script"))
        .replace("STYLE-HASHES", () => hashes(html, "style"));
      writeFileSync(path, page);
    },
  };
}

// The page contains these packages, whose licences ask for their notices.
function notices(): Plugin {
  const licence = (name: string) => `${name}\n\n${readFileSync(`node_modules/${name}/LICENSE`, "utf8").trim()}`;
  return {
    name: "notices",
    transformIndexHtml: (html) => html.replace("<head>", `<!--\n${["preact", "uplot"].map(licence).join("\n\n")}\n-->\n  <head>`),
  };
}

export default defineConfig({
  plugins: [module(), packed("papers-data", () => "data/papers.json"), notices(), viteSingleFile(), policy()],
  worker: { plugins: () => [module()], format: "iife" },
  build: { target: "es2022", modulePreload: false, reportCompressedSize: false },
});

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

import preact from "@preact/preset-vite";
import { defineConfig } from "vite";

/** Whoever keeps a report keeps these, too: their licences go with it. */
const SHIPPED = ["preact", "@preact/signals", "@preact/signals-core"];

const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
/** A script may not hold what would end it; in a string or an expression `\x3c` means the same as `<`. */
const inScript = (code) => code.replaceAll(/<(?=\/script|!--|script)/gi, "\\x3c");

/**
 * One file for all: the script and the style stand in the page, and its policy names them by their
 * hashes, so that nothing else in the file can run or be fetched.
 */
function oneFile() {
  return {
    name: "one-file",
    enforce: "post",
    generateBundle(_options, bundle) {
      const page = Object.values(bundle).find((file) => file.fileName.endsWith(".html"));
      const script = inScript(Object.values(bundle).find((file) => file.type === "chunk").code.trim());
      const style = String(Object.values(bundle).find((file) => file.fileName.endsWith(".css")).source).trim();
      const policy = `default-src 'none'; script-src ${hash(script)}; style-src ${hash(style)}; base-uri 'none'; form-action 'none'`;
      const licences = SHIPPED.map((name) => `${name}\n${readFileSync(`node_modules/${name}/LICENSE`, "utf-8")}`).join("\n");
      page.source = String(page.source)
        .replaceAll(/\s*<(script|link)\b[^>]*(src|href)="[^"]*"[^>]*>(<\/script>)?/g, "")
        .replace('<meta charset="utf-8" />', (meta) => `${meta}\n    <meta http-equiv="Content-Security-Policy" content="${policy}" />`)
        .replace("</head>", () => `  <style>${style}</style>\n  </head>`)
        .replace(
          "</body>",
          () => `  <script type="application/json" id="saved">{}</script>\n    <script type="module">${script}</script>\n    <!--\n${licences.replaceAll("--", "- -")}-->\n  </body>`,
        );
      for (const file of Object.values(bundle)) {
        if (file !== page) {
          delete bundle[file.fileName];
        }
      }
    },
  };
}

export default defineConfig({
  plugins: [preact({ devToolsEnabled: false, prefreshEnabled: false }), oneFile()],
  build: {
    outDir: "../coordinator/web",
    emptyOutDir: false, // the page is there already
    target: "es2022",
    modulePreload: false,
    rollupOptions: { input: "report.html" },
  },
});

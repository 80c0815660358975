import preact from "@preact/preset-vite";
import { defineConfig } from "vite";

// `make web-dev` names the coordinator that runs; a build needs none.
const coordinator = process.env["COORD_ADDRESS"] ?? "";

export default defineConfig({
  plugins: [preact({ devToolsEnabled: false, prefreshEnabled: true })],
  build: {
    outDir: "../coordinator/web",
    emptyOutDir: true,
    target: "es2022",
    // Inlined files would be `data:` scripts or styles, which the page's policy refuses.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // What travels in the wheel comes with the licences of those who wrote it.
    license: { fileName: "licenses.txt" },
    chunkSizeWarningLimit: 600,
  },
  server: {
    host: "127.0.0.1",
    proxy: {
      // The door serves pages of its own origin alone, so the proxy speaks as a program: no Origin.
      "/v1": {
        target: coordinator,
        changeOrigin: true,
        configure: (proxy) => {
          proxy.on("proxyReq", (request) => request.removeHeader("origin"));
        },
      },
    },
  },
});

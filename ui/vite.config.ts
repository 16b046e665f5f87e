// How the app is built: relative addresses, so that it can be served under any base path, into the Python package.
import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

export default defineConfig({
  base: "./",
  plugins: [react()],
  build: {
    outDir: "../src/horarium/static",
    emptyOutDir: true,
    sourcemap: false,
    target: "es2023",
    // Inlined assets would be data: addresses, which the Content-Security-Policy allows for pictures alone.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // One small file: a stylesheet that did not come is never asked for again, where the code of a page is.
    cssCodeSplit: false,
  },
  server: { proxy: { "/api": "http://127.0.0.1:8765" } },
  // One environment for all files: to make one for each takes ten times as long as the tests.
  test: { environment: "happy-dom", isolate: false, include: ["src/**/*.test.{ts,tsx}"] },
});

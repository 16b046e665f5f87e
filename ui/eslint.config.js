// What ESLint checks in the sources and scripts. Prettier decides their layout.
import js from "@eslint/js";
import reactHooks from "eslint-plugin-react-hooks";
import { defineConfig, globalIgnores } from "eslint/config";
import typescript from "typescript-eslint";

// As in tsconfig.json: what begins with _ is left out on purpose.
const unused = { argsIgnorePattern: "^_", varsIgnorePattern: "^_", ignoreRestSiblings: true };

export default defineConfig(
  // Generated from the API.
  globalIgnores(["src/api/schema.d.ts"]),
  { linterOptions: { reportUnusedDisableDirectives: "error" } },
  js.configs.recommended,
  {
    files: ["scripts/*.mjs"],
    languageOptions: { globals: { process: "readonly", URL: "readonly" } },
  },
  {
    files: ["**/*.{ts,tsx}"],
    extends: [typescript.configs.recommendedTypeChecked],
    plugins: { "react-hooks": reactHooks },
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      "react-hooks/rules-of-hooks": "error",
      "react-hooks/exhaustive-deps": "error",
      "@typescript-eslint/no-unused-vars": ["error", unused],
    },
  },
);

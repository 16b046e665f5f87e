// Unpacks the Chromium of the package @sparticuz/chromium into a folder, once, and prints how it is started.
//
//     node scripts/chromium.mjs FOLDER
//
// It is for machines without a browser where nobody is root. So what else such a machine may lack comes along:
// the libraries of the package are named only where the system's are not found, its fonts only where there are none.
// Whoever calls it holds a lock: the package takes any file that is there for a whole one.
import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const folder = process.argv[2];
mkdirSync(folder, { recursive: true });
process.env.TMPDIR = folder; // where the package unpacks to; it asks when it unpacks
const { inflate } = await import("@sparticuz/chromium");
const packed = fileURLToPath(new URL("../node_modules/@sparticuz/chromium/bin/", import.meta.url));

const executable = await inflate(join(packed, "chromium.br"));
const environment = {};
if (said("ldd", [executable]).includes("not found")) {
  environment.LD_LIBRARY_PATH = join(await inflate(join(packed, "al2023.tar.br")), "lib");
}
if (said("fc-list", []).trim() === "") {
  environment.FONTCONFIG_PATH = await inflate(join(packed, "fonts.tar.br"));
}
process.stdout.write(JSON.stringify({ executable, environment }) + "\n");

/** What a program prints; nothing where it is not there. */
function said(program, words) {
  try {
    return execFileSync(program, words, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  } catch {
    return "";
  }
}

// The texts about concepts that several pages show: states, reasons, policies, kinds and shared labels.
export * from "./common";
export * from "./kinds";
export * from "./policies";
export * from "./reasons";
export * from "./schedule";
export * from "./states";

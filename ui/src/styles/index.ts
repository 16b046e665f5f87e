// The style sheets that every page needs, in the order in which they win.
import "./tokens.css";
import "./base.css";
import "./parts.css";
import "./tables.css";
import "./shell.css";
import "./forced.css";

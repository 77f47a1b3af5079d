/** Entry of the pages that are written text, not an application: they follow the theme that was chosen in the panel. */
import { Themes } from "../core/accounts/theme";

new Themes({ root: document.documentElement, store: () => localStorage, system: matchMedia("(prefers-color-scheme: dark)") });

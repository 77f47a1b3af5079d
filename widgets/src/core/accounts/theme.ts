/** Light, dark, or as the system has it; kept in the browser. */
import { t } from "../format/language";

export type Theme = "system" | "light" | "dark";
export const themes = (): [Theme, string][] => [["system", t("◐ System")], ["light", t("◐ Light")], ["dark", t("◐ Dark")]];
const KEY = "mlp-theme";

/** What of a browser this needs. */
export interface Place {
  root: { dataset: Record<string, string | undefined> };
  /** Throws where the browser keeps nothing for this page. */
  store: () => { getItem(key: string): string | null; setItem(key: string, value: string): void; removeItem(key: string): void };
  /** Whether the system is dark now; `told` is called when that changes. */
  system: { matches: boolean; addEventListener(event: "change", told: () => void): void };
}

export class Themes {
  constructor(private readonly place: Place) {
    place.system.addEventListener("change", () => this.apply());
    this.apply();
  }

  get chosen(): Theme {
    try {
      const kept = this.place.store().getItem(KEY);
      return kept === "light" || kept === "dark" ? kept : "system";
    } catch {
      return "system";
    }
  }

  choose(theme: Theme): void {
    try {
      if (theme === "system") this.place.store().removeItem(KEY);
      else this.place.store().setItem(KEY, theme);
    } catch {
      // it holds for this page, then
    }
    this.apply(theme);
  }

  private apply(theme = this.chosen): void {
    const dark = theme === "dark" || (theme === "system" && this.place.system.matches);
    this.place.root.dataset["mlpTheme"] = dark ? "dark" : "light";
  }
}

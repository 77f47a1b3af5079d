/* Stands for anywidget's front end: a model, and an element to draw into. */
const query = new URLSearchParams(location.search);
document.body.dataset.jpThemeLight = query.get("theme") === "dark" ? "false" : "true";
const state = {
  user: query.get("user") ?? "ann",
  name: query.get("name") ?? "digits",
  api: query.get("api") ?? "/services/mlp/api/v1",
  snapshot: JSON.parse(sessionStorage.getItem("snapshot") ?? "{}"),
};
const model = {
  saves: 0,
  get: (key) => state[key],
  set: (key, value) => { state[key] = value; },
  save_changes: () => { model.saves += 1; },
  on: () => undefined,
  off: () => undefined,
};
window.model = model;
const { default: widget } = await import("/widget/job_monitor.js");
window.stopWidget = widget.render({ model, el: document.getElementById("cell") });

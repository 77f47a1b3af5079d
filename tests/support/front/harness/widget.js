/* Stands for JupyterLab's page: the server's XSRF cookie and base, the module that is shared, and outputs in cells. */
document.cookie = "_xsrf=2|token";
const query = new URLSearchParams(location.search);
document.documentElement.lang = query.get("lang") ?? "en"; // as Lab says which language it speaks
document.body.dataset.jpThemeLight = query.get("theme") === "dark" ? "false" : "true";
document.getElementById("jupyter-config-data").textContent = JSON.stringify({ baseUrl: query.get("base") ?? "/user/ann/" });

class Widget {
  node = document.createElement("div");
  addClass(name) {
    this.node.classList.add(name);
  }
  dispose() {
    this.node.remove();
  }
}

const extension = window._JUPYTERLAB["mlp-hub"];
extension.init({ "@lumino/widgets": { "2.7.1": { get: async () => () => ({ Widget }) } } });
const { default: rendered } = (await extension.get("./mimeExtension"))();
const factories = Object.fromEntries(rendered.map((one) => [one.id, one.rendererFactory]));

/** Show a job, or a sweep, in an output of its own. */
window.output = async (name, kind = "job") => {
  const factory = factories[`mlp-hub:${kind}`];
  const widget = factory.createRenderer({});
  const snapshot = JSON.parse(sessionStorage.getItem("snapshot") ?? "null");
  await widget.renderModel({ data: { [factory.mimeTypes[0]]: { user: "ann", name, snapshot } } });
  document.getElementById("cell").append(widget.node);
};
await window.output(query.get("name") ?? "digits", query.get("kind") ?? "job");

/** How an app is asked from outside: texts that work as they are once KEY is one of its keys. */

/** What stands where a key is to be. */
export const KEY = "KEY";

export interface Asked {
  /** Its whole address, with a slash at its end. */
  url: string;
  /** The model that answers by the Open Inference Protocol; empty: a command answers in its own way. */
  model: string;
}

/** In a shell: of a model what it takes, which its requests depend on. */
export const curlOf = ({ url, model }: Asked): string => `curl -H "Authorization: Bearer ${KEY}" "${model ? `${url}v2/models/${model}` : url}"`;

/** In Python, with nothing but what comes with it: a model is asked for one row of zeros, in the shape that it says it takes. */
export function pythonOf({ url, model }: Asked): string {
  if (!model) {
    return [
      "import urllib.request",
      "",
      `url, key = "${url}", "${KEY}"`,
      'asked = urllib.request.Request(url, headers={"Authorization": "Bearer " + key})',
      "print(urllib.request.urlopen(asked).read().decode())",
    ].join("\n");
  }
  return [
    "import json, math, urllib.request",
    "",
    `url, key = "${url}", "${KEY}"`,
    "",
    "def ask(path, body=None):",
    '    headers = {"Authorization": "Bearer " + key, "Content-Type": "application/json"}',
    "    data = json.dumps(body).encode() if body else None",
    "    return json.load(urllib.request.urlopen(urllib.request.Request(url + path, data, headers)))",
    "",
    "inputs = []",
    `for one in ask("v2/models/${model}")["inputs"]:`,
    '    shape = [n if n > 0 else 1 for n in one["shape"]]',
    '    zero = {"BYTES": "", "BOOL": False}.get(one["datatype"], 0)',
    '    inputs.append({**one, "shape": shape, "data": [zero] * math.prod(shape)})  # your rows go here',
    "",
    `for found in ask("v2/models/${model}/infer", {"inputs": inputs})["outputs"]:`,
    '    print(found["name"], found["data"])',
  ].join("\n");
}

/** The name that a model is asked by, without its version. */
export const askedBy = (model: string): string => model.split("@")[0] ?? model;

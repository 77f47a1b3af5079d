// Stands for prom-client, which configurable-http-proxy imports and uses only for metrics of its own.

export default undefined;

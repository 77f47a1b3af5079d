// Definitions of kinds of others that the chart makes objects of, for tests that have the API server judge these. Nothing is built of them.
module mlp-hub.invalid/definitions

go 1.24.0

require sigs.k8s.io/gateway-api v1.4.1

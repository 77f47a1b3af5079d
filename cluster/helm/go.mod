// helm, which renders and installs the chart; apart from the programs of the cluster, so that tests of the chart need only this.
module mlp-hub.invalid/helm

go 1.25.0

godebug default=go1.24

require helm.sh/helm/v3 v3.19.5

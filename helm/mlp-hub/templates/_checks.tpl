{{/* Values that the schema cannot judge: what is required, what contradicts, and what other charts call it. */}}
{{- define "mlp-hub.checks" -}}
{{- $moved := dict
  "singleuser" "set settings.notebook_ram, settings.notebook_cpu and images.names.notebook"
  "cull" "set settings.cull_idle_s"
  "scheduling" "set priorityClass, or nodeSelector and tolerations of each part"
  "prePuller" "set settings.kubernetes_prewarmed"
  "imagePullSecrets" "set images.pullSecrets, a dict of names with true"
  "custom" "set config, the content of the traitlets file" -}}
{{- range $old, $new := $moved -}}
{{- if hasKey $.Values $old -}}
{{- fail (printf "\n\n%s is a value of another chart: %s." $old $new) -}}
{{- end -}}
{{- end -}}
{{- $attached := ne .Values.attach.hubUrl "" -}}
{{- if and $attached .Values.hub.enabled -}}
{{- fail "\n\nattach.hubUrl is set beside hub.enabled: the platform serves one hub. Set hub.enabled to false to attach to yours, or leave attach.hubUrl empty for the chart's own." -}}
{{- end -}}
{{- if and (not $attached) (not .Values.hub.enabled) -}}
{{- fail "\n\nhub.enabled is false, and attach.hubUrl is empty: name the hub to attach to, such as http://hub:8081, or set hub.enabled." -}}
{{- end -}}
{{- if and $attached (or .Values.httpRoute.enabled .Values.ingress.enabled .Values.proxy.tls.secretName) -}}
{{- fail "\n\nhttpRoute, ingress or proxy.tls is set beside attach.hubUrl: the pages are behind the proxy of the hub that you attach to, and the chart has none." -}}
{{- end -}}
{{- if and $attached (ne .Values.address.usersDomain "none") -}}
{{- fail "\n\naddress.usersDomain is not \"none\" beside attach.hubUrl: names of users' servers are those of the hub that you attach to." -}}
{{- end -}}
{{- if and $attached .Values.config -}}
{{- fail "\n\nconfig is set beside attach.hubUrl: JupyterHub's own options are hub.config and hub.extraConfig of the hub that you attach to." -}}
{{- end -}}
{{- if not .Values.address.url -}}
{{- fail "\n\naddress.url is empty: set the address that people open, such as https://hub.example.org/." -}}
{{- end -}}
{{- if not .Values.address.usersDomain -}}
{{- fail "\n\naddress.usersDomain is empty: set a domain whose names *.DOMAIN all lead to the proxy, or \"none\" for all pages on one name." -}}
{{- end -}}
{{- if and (hasPrefix "https:" .Values.address.url) .Values.ingress.enabled (not .Values.ingress.tlsSecretName) -}}
{{- fail "\n\naddress.url begins with https, and ingress.tlsSecretName is empty: name the Secret of the certificate, or let address.url begin with http." -}}
{{- end -}}
{{- if and .Values.proxy.tls.secretName (or .Values.ingress.enabled .Values.httpRoute.enabled) -}}
{{- fail "\n\nproxy.tls.secretName is set beside ingress or httpRoute, which would speak plain HTTP to it: let one of them end TLS." -}}
{{- end -}}
{{- if and .Values.database.trial.enabled .Values.database.existingSecret.name -}}
{{- fail "\n\ndatabase.trial.enabled and database.existingSecret.name are both set: choose one database." -}}
{{- end -}}
{{- if not (or .Values.database.trial.enabled .Values.database.existingSecret.name) -}}
{{- fail "\n\nNo database is set: name a Secret with its addresses in database.existingSecret.name, or set database.trial.enabled for a trial." -}}
{{- end -}}
{{- $given := include "mlp-hub.wanted" .Values.rbac.namespaces -}}
{{- if not (or .Values.storage.source $given) -}}
{{- fail "\n\nstorage.source is empty: set the source of the shared volume, such as {nfs: {server: nfs.example.org, path: /export/mlp}}." -}}
{{- end -}}
{{- if and .Values.httpRoute.enabled (not .Values.httpRoute.parentRefs) -}}
{{- fail "\n\nhttpRoute.parentRefs is empty: name the gateway, such as {main: {name: gateway, namespace: gateways}}." -}}
{{- end -}}
{{- if and .Values.monitoring.serviceMonitor.enabled .Values.networkPolicy.enabled (not .Values.networkPolicy.scrapers) -}}
{{- fail "\n\nnetworkPolicy.scrapers is empty, so that no scrape would arrive: name Prometheus, such as {prometheus: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}}}." -}}
{{- end -}}
{{- if and (hasPrefix "http:" .Values.address.url) (or .Values.proxy.tls.secretName (and .Values.ingress.enabled .Values.ingress.tlsSecretName)) -}}
{{- fail "\n\naddress.url begins with http, beside a certificate in proxy.tls.secretName or ingress.tlsSecretName: let address.url begin with https." -}}
{{- end -}}
{{- if and (not .Values.networkPolicy.enabled) (or .Values.networkPolicy.clients .Values.networkPolicy.scrapers) -}}
{{- fail "\n\nnetworkPolicy.enabled is false, so that networkPolicy.clients and networkPolicy.scrapers limit nobody: set it, or leave them out." -}}
{{- end -}}
{{- if and (ne .Values.proxy.service.type "LoadBalancer") (or .Values.proxy.service.loadBalancerClass .Values.proxy.service.loadBalancerSourceRanges) -}}
{{- fail (printf "\n\nproxy.service.type is %s, so that proxy.service.loadBalancerClass and proxy.service.loadBalancerSourceRanges have no effect: set LoadBalancer, or leave them out." .Values.proxy.service.type) -}}
{{- end -}}
{{- if and .Values.database.trial.storageClassName (not .Values.database.trial.size) -}}
{{- fail "\n\ndatabase.trial.storageClassName is set and database.trial.size is empty: name the size of the volume, or leave the class out." -}}
{{- end -}}
{{- if and (eq .Values.listenAddress "[::]") (not (contains ":" (include "mlp-hub.joined" .Values.podNetworks))) -}}
{{- fail "\n\nlistenAddress is [::] and podNetworks has no network of IPv6, so that no pod of the platform would be admitted: add it." -}}
{{- end -}}
{{- range $part := list "hub" "service" -}}
{{- $account := (index $.Values $part).serviceAccount -}}
{{- if and $account.name $account.annotations -}}
{{- fail (printf "\n\n%s.serviceAccount.annotations is set beside %s.serviceAccount.name, an account that the chart does not make: annotate it yourself, or leave its name out." $part $part) -}}
{{- end -}}
{{- end -}}
{{- if and .Values.rbac.capacity (not $given) -}}
{{- fail "\n\nrbac.capacity is set and rbac.namespaces is empty: the hub reads the capacity of nodes itself then; leave it out." -}}
{{- end -}}
{{- if $given -}}
{{- range $name := splitList "," $given -}}
{{- if not (hasPrefix (printf "%s-" $.Values.installation) $name) -}}
{{- fail (printf "\n\nrbac.namespaces has %s: the namespace of a team is %s-TEAM, because installation is %s." $name $.Values.installation $.Values.installation) -}}
{{- end -}}
{{- end -}}
{{- if not .Values.storage.existingClaim -}}
{{- fail "\n\nrbac.namespaces is set and storage.existingClaim is empty: the chart makes no PersistentVolume then; name a claim of the release's namespace." -}}
{{- end -}}
{{- if not (and .Values.rbac.capacity.cpu .Values.rbac.capacity.memory) -}}
{{- fail "\n\nrbac.namespaces is set and rbac.capacity lacks cpu or memory: the hub cannot read nodes then; name what it may give out, such as {cpu: 64, memory: 256Gi, nvidia.com/gpu: 8}." -}}
{{- end -}}
{{- if .Values.priorityClass.create -}}
{{- fail "\n\nrbac.namespaces and priorityClass.create are both set: a priority class needs rights in the whole cluster; name an existing one in priorityClassName of each part." -}}
{{- end -}}
{{- if .Values.settings.kubernetes_prewarmed -}}
{{- fail "\n\nrbac.namespaces and settings.kubernetes_prewarmed are both set: which images nodes have is not known without rights on nodes; leave it out." -}}
{{- end -}}
{{- end -}}
{{- if and .Values.hub.serviceAccount.name (eq .Values.hub.serviceAccount.name .Values.service.serviceAccount.name) -}}
{{- fail "\n\nhub.serviceAccount.name and service.serviceAccount.name are the same: JupyterHub would have the rights of the service; name two." -}}
{{- end -}}
{{- end -}}

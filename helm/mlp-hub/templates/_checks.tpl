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
{{- if not .Values.storage.source -}}
{{- fail "\n\nstorage.source is empty: set the source of the shared volume, such as {nfs: {server: nfs.example.org, path: /export/mlp}}." -}}
{{- end -}}
{{- if and .Values.httpRoute.enabled (not .Values.httpRoute.parentRefs) -}}
{{- fail "\n\nhttpRoute.parentRefs is empty: name the gateway, such as {main: {name: gateway, namespace: gateways}}." -}}
{{- end -}}
{{- if and .Values.monitoring.serviceMonitor.enabled .Values.networkPolicy.enabled (not .Values.networkPolicy.scrapers) -}}
{{- fail "\n\nnetworkPolicy.scrapers is empty, so that no scrape would arrive: name Prometheus, such as {prometheus: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}}}." -}}
{{- end -}}
{{- if and .Values.hub.serviceAccount.name (eq .Values.hub.serviceAccount.name .Values.service.serviceAccount.name) -}}
{{- fail "\n\nhub.serviceAccount.name and service.serviceAccount.name are the same: JupyterHub would have the rights of the service; name two." -}}
{{- end -}}
{{- end -}}

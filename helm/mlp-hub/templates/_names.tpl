{{/* One helper for each object's name, so that a parent chart can compute it too. */}}

{{- define "mlp-hub.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "mlp-hub.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- $name := include "mlp-hub.name" . -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "mlp-hub.proxy" -}}{{ include "mlp-hub.fullname" . }}-proxy{{- end -}}
{{- define "mlp-hub.proxyApi" -}}{{ include "mlp-hub.fullname" . }}-proxy-api{{- end -}}
{{- define "mlp-hub.hub" -}}{{ include "mlp-hub.fullname" . }}-hub{{- end -}}
{{- define "mlp-hub.service" -}}{{ include "mlp-hub.fullname" . }}-service{{- end -}}
{{- define "mlp-hub.serviceMetrics" -}}{{ include "mlp-hub.fullname" . }}-service-metrics{{- end -}}
{{- define "mlp-hub.data" -}}{{ include "mlp-hub.fullname" . }}-data{{- end -}}
{{- define "mlp-hub.postgresql" -}}{{ include "mlp-hub.fullname" . }}-postgresql{{- end -}}
{{- define "mlp-hub.setup" -}}{{ include "mlp-hub.fullname" . }}-setup{{- end -}}
{{- define "mlp-hub.clean" -}}{{ include "mlp-hub.fullname" . }}-clean{{- end -}}
{{- define "mlp-hub.test" -}}{{ include "mlp-hub.fullname" . }}-test{{- end -}}
{{- define "mlp-hub.settings" -}}{{ include "mlp-hub.fullname" . }}-settings{{- end -}}
{{- define "mlp-hub.config" -}}{{ include "mlp-hub.fullname" . }}-config{{- end -}}
{{- define "mlp-hub.secret" -}}{{ .Values.secrets.existingSecret | default (printf "%s-secrets" (include "mlp-hub.fullname" .)) }}{{- end -}}
{{- define "mlp-hub.files" -}}{{ include "mlp-hub.fullname" . }}-files{{- end -}}
{{- define "mlp-hub.filesVolume" -}}{{ .Release.Namespace }}-{{ include "mlp-hub.files" . }}{{- end -}}
{{- define "mlp-hub.filesClaim" -}}{{ .Values.storage.existingClaim | default (include "mlp-hub.files" .) }}{{- end -}}
{{- define "mlp-hub.priorityClass" -}}{{ .Release.Namespace }}-{{ include "mlp-hub.fullname" . }}{{- end -}}
{{- define "mlp-hub.clusterRole" -}}{{ .Release.Namespace }}-{{ include "mlp-hub.fullname" . }}{{- end -}}
{{- define "mlp-hub.confined" -}}{{ .Values.installation }}--confined{{- end -}}
{{- define "mlp-hub.route" -}}{{ include "mlp-hub.fullname" . }}{{- end -}}
{{- define "mlp-hub.dashboards" -}}{{ include "mlp-hub.fullname" . }}-dashboards{{- end -}}
{{- define "mlp-hub.hubAccount" -}}{{ .Values.hub.serviceAccount.name | default (include "mlp-hub.hub" .) }}{{- end -}}
{{- define "mlp-hub.serviceAccount" -}}{{ .Values.service.serviceAccount.name | default (include "mlp-hub.service" .) }}{{- end -}}

{{/* Host of a Service as all pods of the cluster have it. Argument: the root and the Service's name. */}}
{{- define "mlp-hub.host" -}}
{{ .name }}.{{ .root.Release.Namespace }}.svc
{{- end -}}

{{/* Ports of the processes. `own` is for the other parts of the platform, `pods` for notebook servers and jobs. */}}
{{- define "mlp-hub.ports" -}}
proxy: {public: 8000, api: 8001}
hub: {own: 8081, pods: 8082}
service: {own: 8083, pods: 8084, metrics: 8085}
data: {own: 8086, pods: 8087}
postgresql: {own: 5432}
{{- end -}}

{{/* Path below which all pages are, without a slash at its end. */}}
{{- define "mlp-hub.base" -}}
{{- with (urlParse .Values.address.url).path }}{{ . | trimSuffix "/" }}{{ end -}}
{{- end -}}

{{/* Host and port of JupyterHub for the other parts. */}}
{{- define "mlp-hub.hubAt" -}}
{{- if .Values.hub.enabled -}}
{{ include "mlp-hub.host" (dict "root" . "name" (include "mlp-hub.hub" .)) }}:{{ (include "mlp-hub.ports" . | fromYaml).hub.own }}
{{- else -}}
{{ (urlParse .Values.attach.hubUrl).host }}
{{- end -}}
{{- end -}}

{{/* Host name of the platform's pages. */}}
{{- define "mlp-hub.address" -}}
{{- (urlParse .Values.address.url).hostname -}}
{{- end -}}

{{/* Reference of an image. Argument: the root and the part. */}}
{{- define "mlp-hub.image" -}}
{{- $name := index .root.Values.images.names .part -}}
{{- if contains "/" $name }}{{ $name }}{{ else }}{{ .root.Values.images.repository | trimSuffix "/" }}/{{ $name }}:{{ .root.Values.images.tag }}{{ end -}}
{{- end -}}

{{- define "mlp-hub.chartLabels" -}}
app.kubernetes.io/name: {{ include "mlp-hub.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* Labels that select the pods of a part. Argument: the root and the part. */}}
{{- define "mlp-hub.selector" -}}
app.kubernetes.io/name: {{ include "mlp-hub.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end -}}

{{/* Labels of teams' namespaces, which the service makes. */}}
{{- define "mlp-hub.teams" -}}
app.kubernetes.io/managed-by: mlp-hub
app.kubernetes.io/instance: {{ .Values.installation }}
{{- end -}}

{{/* Names of a dict with true, joined by commas. */}}
{{- define "mlp-hub.wanted" -}}
{{- $found := list -}}
{{- range $name, $wanted := . }}{{ if $wanted }}{{ $found = append $found $name }}{{ end }}{{ end -}}
{{- join "," $found -}}
{{- end -}}

{{/* Values of a dict, without those that another file of values removed, joined by commas. */}}
{{- define "mlp-hub.joined" -}}
{{- $found := list -}}
{{- range $key, $value := . }}{{ if $value }}{{ $found = append $found ($value | toString) }}{{ end }}{{ end -}}
{{- join "," $found -}}
{{- end -}}

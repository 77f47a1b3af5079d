{{/* Parts that all Deployments of the chart share. Arguments are dicts with the root, the part's name and its values. */}}

{{- define "mlp-hub.deploymentMeta" -}}
name: {{ include (printf "mlp-hub.%s" .part) .root }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- include "mlp-hub.chartLabels" .root | nindent 2 }}
  app.kubernetes.io/component: {{ .part }}
  {{- with .values.labels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with .values.annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "mlp-hub.podMeta" -}}
labels:
  {{- include "mlp-hub.selector" . | nindent 2 }}
  {{- if and (eq .part "service") (not .root.Values.hub.enabled) }}
  hub.jupyter.org/network-access-hub: "true"  # as the network policies of Zero-to-JupyterHub want it
  {{- end }}
  {{- with .values.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- if ne .part "postgresql" }}
annotations:
  checksum/config: {{ include (print .root.Template.BasePath "/settings.yaml") .root | sha256sum }}
  {{- with .values.podAnnotations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- else if .values.podAnnotations }}
annotations:
  {{- toYaml .values.podAnnotations | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "mlp-hub.podSecurity" -}}
runAsNonRoot: true
runAsUser: 1000
runAsGroup: 1000
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "mlp-hub.containerSecurity" -}}
allowPrivilegeEscalation: false
capabilities:
  drop: [ALL]
readOnlyRootFilesystem: true
runAsNonRoot: true
{{- end -}}

{{/* Where the pod runs, and how. */}}
{{- define "mlp-hub.placement" -}}
enableServiceLinks: false
securityContext:
  {{- include "mlp-hub.podSecurity" . | nindent 2 }}
terminationGracePeriodSeconds: {{ .values.terminationGracePeriodSeconds }}
{{- $class := .values.priorityClassName | default (ternary (include "mlp-hub.priorityClass" .root) "" .root.Values.priorityClass.create) }}
{{- if and $class (ne .part "clean") }}{{/* the class is gone by then */}}
priorityClassName: {{ $class }}
{{- end }}
{{- $secrets := list }}
{{- range $name, $wanted := .root.Values.images.pullSecrets }}{{ if $wanted }}{{ $secrets = append $secrets (dict "name" $name) }}{{ end }}{{ end }}
{{- with $secrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- $tolerations := list }}
{{- range $name, $one := .values.tolerations }}{{ if $one }}{{ $tolerations = append $tolerations $one }}{{ end }}{{ end }}
{{- with $tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- $spread := list }}
{{- range $name, $one := .values.topologySpread }}
{{- if $one }}
{{- $labels := include "mlp-hub.selector" $ | fromYaml }}
{{- $spread = append $spread (merge (dict) $one (dict "labelSelector" (dict "matchLabels" $labels))) }}
{{- end }}
{{- end }}
{{- with $spread }}
topologySpreadConstraints:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Variables of every container of ours. */}}
{{- define "mlp-hub.env" -}}
- name: HOME
  value: /tmp
{{- if not .files }}
- name: MLP_KUBERNETES_FILES  # this part has none
  value: ""
{{- end }}
- name: POD_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
- name: MLP_KUBERNETES_POD
  value: {{ .root.Release.Namespace }}/$(POD_NAME)
{{- range $name, $value := .values.extraEnv }}
{{- if kindIs "map" $value }}
- name: {{ $name }}
  {{- toYaml $value | nindent 2 }}
{{- else if not (kindIs "invalid" $value) }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Addresses of the databases. The password of the trial's is among the secrets. */}}
{{- define "mlp-hub.databaseEnv" -}}
{{- if .root.Values.database.trial.enabled }}
{{- $host := include "mlp-hub.host" (dict "root" .root "name" (include "mlp-hub.postgresql" .root)) }}
- name: MLP_DATABASE_URL
  value: postgresql://mlp@{{ $host }}:5432/mlp
{{- if .root.Values.hub.enabled }}
- name: MLP_HUB_DATABASE_URL
  value: postgresql://mlp@{{ $host }}:5432/jupyterhub
{{- end }}
{{- else }}
- name: MLP_DATABASE_URL
  valueFrom: {secretKeyRef: {name: {{ .root.Values.database.existingSecret.name }}, key: {{ .root.Values.database.existingSecret.platformKey }}}}
{{- if .root.Values.hub.enabled }}
- name: MLP_HUB_DATABASE_URL
  valueFrom: {secretKeyRef: {name: {{ .root.Values.database.existingSecret.name }}, key: {{ .root.Values.database.existingSecret.hubKey }}}}
{{- end }}
{{- end }}
{{- end -}}

{{- define "mlp-hub.mounts" -}}
- {name: state, mountPath: /srv/mlp}
- {name: tmp, mountPath: /tmp}
- {name: config, mountPath: /etc/mlp-hub, readOnly: true}
{{- range $name, $mount := .values.extraVolumeMounts }}
{{- if $mount }}
- {{ merge (dict "name" $name) $mount | toYaml | nindent 2 | trim }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "mlp-hub.volumes" -}}
- name: state
  emptyDir: {medium: Memory, sizeLimit: 128Mi}
- name: tmp
  emptyDir: {sizeLimit: 2Gi}
- name: config
  configMap: {name: {{ include "mlp-hub.config" .root }}}
{{- range $name, $source := .values.extraVolumes }}
{{- if $source }}
- {{ merge (dict "name" $name) $source | toYaml | nindent 2 | trim }}
{{- end }}
{{- end }}
{{- end -}}

{{/* The part's own keys of the Secret of the platform. A pod waits until the Secret is there. Arguments: also `keys`, and `token` where another hub makes that key. */}}
{{- define "mlp-hub.secretVolume" -}}
{{- if or .root.Values.hub.enabled (not .token) -}}
- name: secrets
  secret:
    secretName: {{ include "mlp-hub.secret" .root }}
    items:
      {{- range .keys }}
      - {key: {{ . }}, path: {{ . }}}
      {{- end }}
{{- else -}}
- name: secrets
  projected:
    sources:
      {{- with without .keys .token }}
      - secret:
          name: {{ include "mlp-hub.secret" $.root }}
          items:
            {{- range . }}
            - {key: {{ . }}, path: {{ . }}}
            {{- end }}
      {{- end }}
      # of the hub that the platform is attached to
      - secret:
          name: {{ .root.Values.attach.tokens.secretName }}
          items:
            - {key: {{ ternary .root.Values.attach.tokens.serviceKey .root.Values.attach.tokens.dataKey (eq .token "service_token") }}, path: {{ .token }}}
{{- end }}
{{- end -}}

{{- define "mlp-hub.filesVolumeOf" -}}
- name: files
  persistentVolumeClaim: {claimName: {{ include "mlp-hub.filesClaim" .root }}}
{{- end -}}

{{- define "mlp-hub.extraContainers" -}}
{{- range $name, $container := .values.extraContainers }}
{{- if $container }}
{{- $security := include "mlp-hub.containerSecurity" $ | fromYaml }}
- {{ merge (dict "name" $name) $container (dict "securityContext" $security) | toYaml | nindent 2 | trim }}
{{- end }}
{{- end }}
{{- end -}}

{{/* A container of ours. Arguments: also `command`, `image`, `envFromDatabase`, `files`, `secrets`. */}}
{{- define "mlp-hub.containerCommon" -}}
image: {{ include "mlp-hub.image" (dict "root" .root "part" .image) }}
imagePullPolicy: {{ .root.Values.images.pullPolicy }}
securityContext:
  {{- include "mlp-hub.containerSecurity" . | nindent 2 }}
{{- with .values.resources }}
resources:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if ne .part "postgresql" }}
envFrom:
  - configMapRef: {name: {{ include "mlp-hub.settings" .root }}}
{{- end }}
env:
  {{- include "mlp-hub.env" . | nindent 2 }}
  {{- if .database }}
  {{- include "mlp-hub.databaseEnv" . | nindent 2 }}
  {{- end }}
volumeMounts:
  {{- include "mlp-hub.mounts" . | nindent 2 }}
  {{- if .secrets }}
  - {name: secrets, mountPath: /srv/secrets, readOnly: true}
  {{- end }}
  {{- if .files }}
  - {name: files, mountPath: /files}
  {{- end }}
{{- end -}}

{{/* The pod that prepares secrets, tables and directories for a platform without a hub of its own. */}}
{{- define "mlp-hub.setupPod" -}}
{{- $existing := ne .root.Values.secrets.existingSecret "" -}}
metadata:
  {{- include "mlp-hub.podMeta" . | nindent 2 }}
spec:
  {{- include "mlp-hub.placement" . | nindent 2 }}
  serviceAccountName: {{ include "mlp-hub.hubAccount" .root }}
  restartPolicy: OnFailure
  containers:
    - name: setup
      command: [tini, "--", mlp-hub, pod, setup{{ if not $existing }}, --secret, {{ include "mlp-hub.secret" .root }}{{ end }}{{ if .root.Values.hub.newDatabase }}, --new-database{{ end }}]
      {{- include "mlp-hub.containerCommon" . | nindent 6 }}
  volumes:
    {{- include "mlp-hub.volumes" . | nindent 4 }}
    {{- include "mlp-hub.filesVolumeOf" . | nindent 4 }}
    {{- if $existing }}
    {{- include "mlp-hub.secretVolume" (merge (dict "keys" (list "cookie_secret" "crypt_key" "proxy_token" "service_token" "spawner_token" "data_token" "gateway_token" "operator_token" "admin-password")) .) | nindent 4 }}
    {{- end }}
{{- end -}}

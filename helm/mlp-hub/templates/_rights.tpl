{{/* Rules of the roles. `make docs` writes this file from the tables of rights; do not change it by hand. */}}
{{- define "mlp-hub.rights.hub" -}}
# notebook servers are pods
- apiGroups: [""]
  resources: [pods]
  verbs:
    - list  # their state at the start, and after an outage
    - watch  # a change by others is noticed at once
    - create  # a server starts
    - delete  # a server ends
# the last output of a server that did not start
- apiGroups: [""]
  resources: [pods/log]
  verbs:
    - get  # its last lines
# variables and the token of a server
- apiGroups: [""]
  resources: [secrets]
  verbs:
    - create  # a server starts
# why a server does not start
- apiGroups: [""]
  resources: [events]
  verbs:
    - list  # their state at the start, and after an outage
    - watch  # a change by others is noticed at once
# which kinds of GPUs a server can have
- apiGroups: [""]
  resources: [nodes]
  verbs:
    - list  # a server with GPUs starts
{{- end -}}

{{- define "mlp-hub.rights.service" -}}
# each team has a namespace
- apiGroups: [""]
  resources: [namespaces]
  verbs:
    - get  # it is read before it is changed or removed
    - list  # their state at the start, and after an outage
    - watch  # a change by others is noticed at once
    - patch  # a difference from the wanted state is corrected
    - create  # a missing one is made
    - delete  # it is removed when nobody needs it
# pods reach their own job, the hub, and the addresses that their team may reach
- apiGroups: ["networking.k8s.io"]
  resources: [networkpolicies]
  verbs:
    - get  # it is read before it is changed or removed
    - list  # their state at the start, and after an outage
    - watch  # a change by others is noticed at once
    - patch  # a difference from the wanted state is corrected
    - create  # a missing one is made
    - delete  # it is removed when nobody needs it
# pods of teams have no token of the cluster
- apiGroups: [""]
  resources: [serviceaccounts]
  verbs:
    - get  # it is read before it is changed or removed
    - list  # their state at the start, and after an outage
    - watch  # a change by others is noticed at once
    - patch  # a difference from the wanted state is corrected
    - create  # a missing one is made
    - delete  # it is removed when nobody needs it
# a second limit behind the quota; the hub may give members only rights that it has
- apiGroups: [""]
  resources: [resourcequotas]
  verbs:
    - get  # it is read before it is changed or removed; members have it
    - list  # their state at the start, and after an outage; members have it
    - watch  # a change by others is noticed at once; members have it
    - patch  # a difference from the wanted state is corrected
    - create  # a missing one is made
    - delete  # it is removed when nobody needs it
# containers without requests count too; the hub may give members only rights that it has
- apiGroups: [""]
  resources: [limitranges]
  verbs:
    - get  # it is read before it is changed or removed; members have it
    - list  # their state at the start, and after an outage; members have it
    - watch  # a change by others is noticed at once; members have it
    - patch  # a difference from the wanted state is corrected
    - create  # a missing one is made
    - delete  # it is removed when nobody needs it
# the volume of all files, in each namespace
- apiGroups: [""]
  resources: [persistentvolumes]
  verbs:
    - get  # it is read before it is changed or removed
    - list  # their state at the start, and after an outage
    - watch  # a change by others is noticed at once
    - patch  # a difference from the wanted state is corrected
    - create  # a missing one is made
    - delete  # it is removed when nobody needs it
# the volume of all files, in each namespace
- apiGroups: [""]
  resources: [persistentvolumeclaims]
  verbs:
    - get  # it is read before it is changed or removed
    - list  # their state at the start, and after an outage
    - watch  # a change by others is noticed at once
    - patch  # a difference from the wanted state is corrected
    - create  # a missing one is made
    - delete  # it is removed when nobody needs it
# rights of members who come with kubectl
- apiGroups: ["rbac.authorization.k8s.io"]
  resources: [roles]
  verbs:
    - get  # it is read before it is changed or removed
    - list  # their state at the start, and after an outage
    - watch  # a change by others is noticed at once
    - patch  # a difference from the wanted state is corrected
    - create  # a missing one is made
    - delete  # it is removed when nobody needs it
# rights of members who come with kubectl
- apiGroups: ["rbac.authorization.k8s.io"]
  resources: [rolebindings]
  verbs:
    - get  # it is read before it is changed or removed
    - list  # their state at the start, and after an outage
    - watch  # a change by others is noticed at once
    - patch  # a difference from the wanted state is corrected
    - create  # a missing one is made
    - delete  # it is removed when nobody needs it
# the order in which a node ends pods when it runs out of memory
- apiGroups: ["scheduling.k8s.io"]
  resources: [priorityclasses]
  verbs:
    - get  # it is read before it is changed or removed
    - list  # their state at the start, and after an outage
    - watch  # a change by others is noticed at once
    - patch  # a difference from the wanted state is corrected
    - create  # a missing one is made
    - delete  # it is removed when nobody needs it
# nobody but the hub starts pods in teams' namespaces
- apiGroups: ["admissionregistration.k8s.io"]
  resources: [validatingadmissionpolicies]
  verbs:
    - get  # it is read before it is changed or removed
    - list  # their state at the start, and after an outage
    - watch  # a change by others is noticed at once
    - patch  # a difference from the wanted state is corrected
    - create  # a missing one is made
    - delete  # it is removed when nobody needs it
# nobody but the hub starts pods in teams' namespaces
- apiGroups: ["admissionregistration.k8s.io"]
  resources: [validatingadmissionpolicybindings]
  verbs:
    - get  # it is read before it is changed or removed
    - list  # their state at the start, and after an outage
    - watch  # a change by others is noticed at once
    - patch  # a difference from the wanted state is corrected
    - create  # a missing one is made
    - delete  # it is removed when nobody needs it
# no pod of a team reaches a node's address
- apiGroups: [""]
  resources: [nodes]
  verbs:
    - list  # their state at the start, and after an outage
    - watch  # a change by others is noticed at once
# no pod of a team reaches the cluster's API
- apiGroups: ["discovery.k8s.io"]
  resources: [endpointslices]
  resourceNames: [kubernetes]
  verbs:
    - get  # the addresses of the cluster's API
# an empty namespace is removed; the policies are tested; notebook servers and ranks of jobs are pods; the hub may give members only rights that it has
- apiGroups: [""]
  resources: [pods]
  verbs:
    - list  # a namespace with pods stays; their state at the start, and after an outage; members have it
    - create  # the admission policies are tried with one that they must refuse; probes of the network and of operators
    - get  # probes of the network and of operators wait for theirs; members have it
    - watch  # a change by others is noticed at once; members have it
    - delete  # parameter servers of a job that has ended
    - deletecollection  # an attempt ends
# an empty namespace is removed; records of the attempts of jobs, and of the service that decides
- apiGroups: [""]
  resources: [configmaps]
  verbs:
    - list  # a namespace with records of attempts stays; their state at the start, and after an outage
    - get  # it is read before it is changed or removed
    - watch  # a change by others is noticed at once
    - patch  # a difference from the wanted state is corrected
    - create  # a missing one is made
    - delete  # it is removed when nobody needs it
# variables and tokens of notebook servers and jobs
- apiGroups: [""]
  resources: [secrets]
  verbs:
    - create  # a job starts; nobody reads it back
# a job made with kubectl takes other nodes when it is held again
- apiGroups: ["batch"]
  resources: [jobs/status]
  verbs:
    - patch  # its start time is removed
# why a pod does not start; the hub may give members only rights that it has
- apiGroups: [""]
  resources: [events]
  verbs:
    - list  # the cluster's warnings; members have it
    - get  # members have it
    - watch  # members have it
# names by which the ranks of a job find each other
- apiGroups: [""]
  resources: [services]
  verbs:
    - get  # it was made, and the answer was lost
    - create  # an attempt starts
# images that nodes have before they are needed
- apiGroups: ["apps"]
  resources: [daemonsets]
  verbs:
    - list  # their state at the start, and after an outage
    - patch  # a difference from the wanted state is corrected
    - create  # a missing one is made
    - delete  # it is removed when nobody needs it
# jobs of one rank, and launchers of other jobs; the hub may give members only rights that it has
- apiGroups: ["batch"]
  resources: [jobs]
  verbs:
    - get  # it was made, and the answer was lost; members have it
    - list  # their state at the start, and after an outage; members have it
    - watch  # a change by others is noticed at once; members have it
    - create  # an attempt starts; members have it
    - delete  # an attempt ends; members have it
    - patch  # one that a member made is held, or let run
# jobs of that operator; the hub may give members only rights that it has
- apiGroups: ["kubeflow.org"]
  resources: [mpijobs]
  verbs:
    - get  # it was made, and the answer was lost; members have it
    - list  # their state at the start, and after an outage; members have it
    - watch  # a change by others is noticed at once; members have it
    - create  # an attempt starts; members have it
    - delete  # an attempt ends; members have it
    - patch  # one that a member made is held, or let run
# jobs of that operator; the hub may give members only rights that it has
- apiGroups: ["kubeflow.org"]
  resources: [tfjobs]
  verbs:
    - get  # it was made, and the answer was lost; members have it
    - list  # their state at the start, and after an outage; members have it
    - watch  # a change by others is noticed at once; members have it
    - create  # an attempt starts; members have it
    - delete  # an attempt ends; members have it
    - patch  # one that a member made is held, or let run
# jobs of that operator; the hub may give members only rights that it has
- apiGroups: ["kubeflow.org"]
  resources: [pytorchjobs]
  verbs:
    - get  # it was made, and the answer was lost; members have it
    - list  # their state at the start, and after an outage; members have it
    - watch  # a change by others is noticed at once; members have it
    - create  # an attempt starts; members have it
    - delete  # an attempt ends; members have it
    - patch  # one that a member made is held, or let run
# jobs of that operator; the hub may give members only rights that it has
- apiGroups: ["batch.volcano.sh"]
  resources: [jobs]
  verbs:
    - get  # it was made, and the answer was lost; members have it
    - list  # their state at the start, and after an outage; members have it
    - watch  # a change by others is noticed at once; members have it
    - create  # an attempt starts
    - delete  # an attempt ends
# all pods of a job are bound, or none; the hub may give members only rights that it has
- apiGroups: ["scheduling.volcano.sh"]
  resources: [podgroups]
  verbs:
    - get  # it was made, and the answer was lost; members have it
    - list  # their state at the start, and after an outage; members have it
    - watch  # a change by others is noticed at once; members have it
    - create  # an attempt starts
# use of pods as their nodes measure it, which no job can write
- apiGroups: ["metrics.k8s.io"]
  resources: [pods]
  verbs:
    - list  # each look at use
# use of processors and memory of nodes
- apiGroups: ["metrics.k8s.io"]
  resources: [nodes]
  verbs:
    - list  # each look at use
# each team has a Volcano queue
- apiGroups: ["scheduling.volcano.sh"]
  resources: [queues]
  verbs:
    - get  # it is read before it is changed or removed
    - list  # their state at the start, and after an outage
    - watch  # a change by others is noticed at once
    - patch  # a difference from the wanted state is corrected
    - create  # a missing one is made
    - delete  # it is removed when nobody needs it
# the hub may give members only rights that it has
- apiGroups: [""]
  resources: [pods/log]
  verbs:
    - get  # members have it
# the hub may give members only rights that it has
- apiGroups: ["events.k8s.io"]
  resources: [events]
  verbs:
    - get  # members have it
    - list  # members have it
    - watch  # members have it
{{- end -}}

{{- define "mlp-hub.rights.leader" -}}
# a Service of the cluster leads to the pod that leads
- apiGroups: [""]
  resources: [pods]
  verbs:
    - patch  # the service that leads has a label, and others have not
{{- end -}}

{{- define "mlp-hub.rights.clean" -}}
# what the service made outside of the release
- apiGroups: [""]
  resources: [namespaces]
  verbs:
    - list  # which are this hub's
    - delete  # the hub was uninstalled
# what the service made outside of the release
- apiGroups: [""]
  resources: [persistentvolumes]
  verbs:
    - list  # which are this hub's
    - delete  # the hub was uninstalled
# what the service made outside of the release
- apiGroups: ["scheduling.k8s.io"]
  resources: [priorityclasses]
  verbs:
    - list  # which are this hub's
    - delete  # the hub was uninstalled
# what the service made outside of the release
- apiGroups: ["admissionregistration.k8s.io"]
  resources: [validatingadmissionpolicies]
  verbs:
    - list  # which are this hub's
    - delete  # the hub was uninstalled
# what the service made outside of the release
- apiGroups: ["admissionregistration.k8s.io"]
  resources: [validatingadmissionpolicybindings]
  verbs:
    - list  # which are this hub's
    - delete  # the hub was uninstalled
# what the service made outside of the release
- apiGroups: ["scheduling.volcano.sh"]
  resources: [queues]
  verbs:
    - list  # which are this hub's
    - delete  # the hub was uninstalled
{{- end -}}

{{- define "mlp-hub.rights.hubInGiven" -}}
# notebook servers are pods
- apiGroups: [""]
  resources: [pods]
  verbs:
    - list  # their state at the start, and after an outage
    - watch  # a change by others is noticed at once
    - create  # a server starts
    - delete  # a server ends
# the last output of a server that did not start
- apiGroups: [""]
  resources: [pods/log]
  verbs:
    - get  # its last lines
# variables and the token of a server
- apiGroups: [""]
  resources: [secrets]
  verbs:
    - create  # a server starts
# why a server does not start
- apiGroups: [""]
  resources: [events]
  verbs:
    - list  # their state at the start, and after an outage
    - watch  # a change by others is noticed at once
{{- end -}}

{{- define "mlp-hub.rights.serviceInGiven" -}}
# an administrator has made it as it must be
- apiGroups: [""]
  resources: [namespaces]
  verbs:
    - get  # its labels are checked
# an administrator has made it as it must be
- apiGroups: [""]
  resources: [persistentvolumeclaims]
  verbs:
    - get  # its claim of all files is looked for
# pods are limited as in every team's namespace
- apiGroups: ["networking.k8s.io"]
  resources: [networkpolicies]
  verbs:
    - get  # it is read before it is changed or removed
    - list  # their state at the start, and after an outage
    - watch  # a change by others is noticed at once
    - patch  # a difference from the wanted state is corrected
    - create  # a missing one is made
    - delete  # it is removed when nobody needs it
# pods are limited as in every team's namespace
- apiGroups: [""]
  resources: [serviceaccounts]
  verbs:
    - get  # it is read before it is changed or removed
    - list  # their state at the start, and after an outage
    - watch  # a change by others is noticed at once
    - patch  # a difference from the wanted state is corrected
    - create  # a missing one is made
    - delete  # it is removed when nobody needs it
# pods are limited as in every team's namespace
- apiGroups: [""]
  resources: [resourcequotas]
  verbs:
    - get  # it is read before it is changed or removed
    - list  # their state at the start, and after an outage
    - watch  # a change by others is noticed at once
    - patch  # a difference from the wanted state is corrected
    - create  # a missing one is made
    - delete  # it is removed when nobody needs it
# pods are limited as in every team's namespace
- apiGroups: [""]
  resources: [limitranges]
  verbs:
    - get  # it is read before it is changed or removed
    - list  # their state at the start, and after an outage
    - watch  # a change by others is noticed at once
    - patch  # a difference from the wanted state is corrected
    - create  # a missing one is made
    - delete  # it is removed when nobody needs it
# ranks of jobs are pods
- apiGroups: [""]
  resources: [pods]
  verbs:
    - list  # their state at the start, and after an outage
    - watch  # a change by others is noticed at once
    - deletecollection  # an attempt ends
# variables and tokens of jobs
- apiGroups: [""]
  resources: [secrets]
  verbs:
    - create  # a job starts; nobody reads it back
# records of the attempts of jobs
- apiGroups: [""]
  resources: [configmaps]
  verbs:
    - get  # it is read before it is changed or removed
    - list  # their state at the start, and after an outage
    - watch  # a change by others is noticed at once
    - patch  # a difference from the wanted state is corrected
    - create  # a missing one is made
    - delete  # it is removed when nobody needs it
# why a pod does not start
- apiGroups: [""]
  resources: [events]
  verbs:
    - list  # the cluster's warnings
# names by which the ranks of a job find each other
- apiGroups: [""]
  resources: [services]
  verbs:
    - get  # it was made, and the answer was lost
    - create  # an attempt starts
# jobs of one rank, and of operators
- apiGroups: ["batch"]
  resources: [jobs]
  verbs:
    - get  # it was made, and the answer was lost
    - list  # their state at the start, and after an outage
    - watch  # a change by others is noticed at once
    - create  # an attempt starts
    - delete  # an attempt ends
# jobs of one rank, and of operators
- apiGroups: ["kubeflow.org"]
  resources: [mpijobs]
  verbs:
    - get  # it was made, and the answer was lost
    - list  # their state at the start, and after an outage
    - watch  # a change by others is noticed at once
    - create  # an attempt starts
    - delete  # an attempt ends
# jobs of one rank, and of operators
- apiGroups: ["kubeflow.org"]
  resources: [tfjobs]
  verbs:
    - get  # it was made, and the answer was lost
    - list  # their state at the start, and after an outage
    - watch  # a change by others is noticed at once
    - create  # an attempt starts
    - delete  # an attempt ends
# jobs of one rank, and of operators
- apiGroups: ["kubeflow.org"]
  resources: [pytorchjobs]
  verbs:
    - get  # it was made, and the answer was lost
    - list  # their state at the start, and after an outage
    - watch  # a change by others is noticed at once
    - create  # an attempt starts
    - delete  # an attempt ends
# jobs of one rank, and of operators
- apiGroups: ["batch.volcano.sh"]
  resources: [jobs]
  verbs:
    - get  # it was made, and the answer was lost
    - list  # their state at the start, and after an outage
    - watch  # a change by others is noticed at once
    - create  # an attempt starts
    - delete  # an attempt ends
# all pods of a job are bound, or none
- apiGroups: ["scheduling.volcano.sh"]
  resources: [podgroups]
  verbs:
    - get  # it was made, and the answer was lost
    - list  # their state at the start, and after an outage
    - watch  # a change by others is noticed at once
    - create  # an attempt starts
{{- end -}}

{{- define "mlp-hub.rights.serviceInHome" -}}
# a Service of the cluster leads to the pod that leads
- apiGroups: [""]
  resources: [pods]
  verbs:
    - get  # which pods are of the release
    - list  # which of them has the label
    - patch  # the service that leads has a label, and others have not
# the record of the service that decides
- apiGroups: [""]
  resources: [configmaps]
  verbs:
    - get  # it is read before it is changed or removed
    - list  # their state at the start, and after an outage
    - watch  # a change by others is noticed at once
    - create  # a missing one is made
    - patch  # a difference from the wanted state is corrected
{{- end -}}

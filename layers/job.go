package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// job returns the job below of one pod, or of a gang whose templates are by index.
func (a *Agent) job(pods []*corev1.Pod, templates []corev1.PodTemplateSpec, group string, withData bool) (*batchv1.Job, error) {
	template, err := common(pods, templates)
	if err != nil {
		return nil, err
	}
	yes, count := true, int32(len(pods))
	uids := make([]string, len(pods))
	for i, pod := range pods {
		uids[i] = string(pod.UID)
	}
	made := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name: jobName(a.owner, uids), Namespace: a.namespace,
			Labels:      map[string]string{queueLabel: a.tenant, ownerLabel: a.owner},
			Annotations: map[string]string{userNote: a.user, membersNote: writeMembers(pods)},
		},
		Spec: batchv1.JobSpec{Suspend: &yes, Parallelism: &count, Completions: &count, Template: template},
	}
	if group != "" {
		made.Annotations[groupNote] = group
	}
	if withData {
		made.Annotations[dataNote] = "yes"
	}
	made.Spec.ActiveDeadlineSeconds, made.Spec.Template.Spec.ActiveDeadlineSeconds = template.Spec.ActiveDeadlineSeconds, nil
	tries := int32(1000) // restarts of containers count as tries of a job
	if template.Spec.RestartPolicy == corev1.RestartPolicyNever {
		tries = 0
	}
	if count > 1 {
		indexed := batchv1.IndexedCompletion
		made.Spec.CompletionMode = &indexed
		made.Spec.Template.Spec.Hostname = ""
		if tries == 0 { // a rank that failed is above's to replace; the others go on
			made.Spec.BackoffLimitPerIndex = &tries
		}
	}
	if made.Spec.BackoffLimitPerIndex == nil {
		made.Spec.BackoffLimit = &tries
	}
	if size, err := json.Marshal(made); err != nil || len(size) > 900_000 || len(made.Annotations[membersNote]) > 200_000 {
		return nil, refusal("its job would be too large for the compute cluster's API; use fewer pods in the gang")
	}
	return made, nil
}

// common returns the one template of the pods of a gang. Variables that count the pods become the index of each.
func common(pods []*corev1.Pod, templates []corev1.PodTemplateSpec) (corev1.PodTemplateSpec, error) {
	first := templates[0]
	if len(templates) == 1 {
		return first, nil
	}
	first = *first.DeepCopy()
	first.Spec.Hostname = ""
	lists := func(t *corev1.PodTemplateSpec) [][]corev1.Container {
		return [][]corev1.Container{t.Spec.InitContainers, t.Spec.Containers}
	}
	for l, list := range lists(&first) {
		for c := range list {
			for e := range list[c].Env {
				if counts(templates, l, c, e, lists) {
					list[c].Env[e] = corev1.EnvVar{Name: list[c].Env[e].Name, ValueFrom: &corev1.EnvVarSource{
						FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: indexField}}}
				}
			}
		}
	}
	for i := 1; i < len(templates); i++ {
		other := *templates[i].DeepCopy()
		other.Spec.Hostname = ""
		for l, list := range lists(&other) {
			for c := range list {
				for e := range list[c].Env {
					mine := lists(&first)[l]
					if c < len(mine) && e < len(mine[c].Env) && mine[c].Env[e].Name == list[c].Env[e].Name && mine[c].Env[e].ValueFrom != nil &&
						mine[c].Env[e].ValueFrom.FieldRef != nil && mine[c].Env[e].ValueFrom.FieldRef.FieldPath == indexField {
						list[c].Env[e] = mine[c].Env[e]
					}
				}
			}
		}
		if !reflect.DeepEqual(first, other) {
			return first, refusal(fmt.Sprintf("pods of a gang must be alike, and %s differs from %s in %s; leave one of them out of the gang",
				pods[i].Name, pods[0].Name, difference(first, other)))
		}
	}
	return first, nil
}

// counts says whether a variable is 0 in the first template, 1 in the second, and so on.
func counts(templates []corev1.PodTemplateSpec, l, c, e int, lists func(*corev1.PodTemplateSpec) [][]corev1.Container) bool {
	name := lists(&templates[0])[l][c].Env[e].Name
	for i := range templates {
		list := lists(&templates[i])[l]
		if c >= len(list) || e >= len(list[c].Env) || list[c].Env[e].Name != name || list[c].Env[e].Value != strconv.Itoa(i) {
			return false
		}
	}
	return true
}

// difference names the first field in which two templates differ.
func difference(x, y any) string {
	var a, b map[string]any
	for _, each := range []struct {
		from any
		to   *map[string]any
	}{{x, &a}, {y, &b}} {
		text, err := json.Marshal(each.from)
		if err != nil || json.Unmarshal(text, each.to) != nil {
			return "their fields"
		}
	}
	return differing("", a, b)
}

func differing(path string, x, y any) string {
	if a, ok := x.(map[string]any); ok {
		if b, ok := y.(map[string]any); ok {
			keys := slices.Sorted(maps.Keys(a))
			for key := range b {
				if _, there := a[key]; !there {
					keys = append(keys, key)
				}
			}
			for _, key := range keys {
				if !reflect.DeepEqual(a[key], b[key]) {
					return differing(path+"."+key, a[key], b[key])
				}
			}
		}
	}
	if a, ok := x.([]any); ok {
		if b, ok := y.([]any); ok && len(a) == len(b) {
			for i := range a {
				if !reflect.DeepEqual(a[i], b[i]) {
					return differing(fmt.Sprintf("%s[%d]", path, i), a[i], b[i])
				}
			}
		}
	}
	return path
}

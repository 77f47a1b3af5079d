package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// environment returns the variables of a container below.
func (d *Data) environment(c *corev1.Container, pod *corev1.Pod) ([]corev1.EnvVar, error) {
	var found []corev1.EnvVar
	for _, from := range c.EnvFrom {
		kind, name, optional := "", "", (*bool)(nil)
		switch {
		case from.ConfigMapRef != nil:
			kind, name, optional = "ConfigMap", from.ConfigMapRef.Name, from.ConfigMapRef.Optional
		case from.SecretRef != nil:
			kind, name, optional = "Secret", from.SecretRef.Name, from.SecretRef.Optional
		default:
			continue
		}
		values, err := d.object(kind, name, optional)
		if err != nil {
			return nil, err
		}
		for _, key := range slices.Sorted(maps.Keys(values)) {
			found = append(found, d.variable(from.Prefix+key, kind, name, key, values[key]))
		}
	}
	for _, each := range c.Env {
		from := each.ValueFrom
		kind, name, key, optional := "", "", "", (*bool)(nil)
		switch {
		case from == nil || from.ResourceFieldRef != nil:
			found = append(found, each)
			continue
		case from.FieldRef != nil:
			if slices.Contains([]string{"status.podIP", "status.podIPs", "status.hostIP", "status.hostIPs"}, from.FieldRef.FieldPath) {
				found = append(found, each) // known below only
				continue
			}
			value, err := fieldOf(pod, from.FieldRef.FieldPath, d.node)
			if err != nil {
				return nil, err
			}
			found = append(found, corev1.EnvVar{Name: each.Name, Value: escaped(value)})
			continue
		case from.ConfigMapKeyRef != nil:
			kind, name, key, optional = "ConfigMap", from.ConfigMapKeyRef.Name, from.ConfigMapKeyRef.Key, from.ConfigMapKeyRef.Optional
		case from.SecretKeyRef != nil:
			kind, name, key, optional = "Secret", from.SecretKeyRef.Name, from.SecretKeyRef.Key, from.SecretKeyRef.Optional
		default:
			return nil, refusal("variable " + each.Name + " has a source that this node does not know; use a value, a ConfigMap, a Secret or a field")
		}
		values, err := d.object(kind, name, optional)
		if err != nil {
			return nil, err
		}
		value, there := values[key]
		switch {
		case there:
			found = append(found, d.variable(each.Name, kind, name, key, value))
		case optional == nil || !*optional:
			return nil, missing(fmt.Sprintf("waits for key %s of %s %s", key, kind, name))
		}
	}
	return found, nil
}

func (d *Data) variable(name, kind, of, key string, value []byte) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: d.secret},
		Key:                  d.put(kind+"/"+of+"/"+key, value),
	}}}
}

// escaped keeps a value from being read as a reference to another variable.
func escaped(value string) string { return strings.ReplaceAll(value, "$(", "$$(") }

// fieldOf returns a field of an upper pod by its path, as the downward API names it.
func fieldOf(pod *corev1.Pod, field, node string) (string, error) {
	if of, key, found := strings.Cut(strings.TrimSuffix(field, "']"), "['"); found {
		switch of {
		case "metadata.labels":
			return pod.Labels[key], nil
		case "metadata.annotations":
			return pod.Annotations[key], nil
		}
	}
	lines := func(of map[string]string) string {
		var all []string
		for _, key := range slices.Sorted(maps.Keys(of)) {
			all = append(all, fmt.Sprintf("%s=%q", key, of[key]))
		}
		return strings.Join(all, "\n")
	}
	switch field {
	case "metadata.name":
		return pod.Name, nil
	case "metadata.namespace":
		return pod.Namespace, nil
	case "metadata.uid":
		return string(pod.UID), nil
	case "metadata.labels":
		return lines(pod.Labels), nil
	case "metadata.annotations":
		return lines(pod.Annotations), nil
	case "spec.nodeName":
		return node, nil
	case "spec.serviceAccountName":
		return pod.Spec.ServiceAccountName, nil
	}
	return "", refusal("field " + field + " is not known to this node; use a field of metadata or spec.nodeName")
}

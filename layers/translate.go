package main

import (
	"fmt"
	"net"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const indexField = "metadata.annotations['batch.kubernetes.io/job-completion-index']"

// translate returns the pod below of a pod above. Data has the values that its variables and volumes take.
//
// Fields that choose nodes, accounts and priorities of the upper cluster are dropped. All others are
// copied, so that the compute cluster's policies judge them.
func (a *Agent) translate(pod *corev1.Pod, data *Data, aliases []corev1.HostAlias) (corev1.PodTemplateSpec, error) {
	from := pod.Spec.DeepCopy()
	off := false
	to := corev1.PodSpec{
		Hostname: from.Hostname, Subdomain: from.Subdomain, SetHostnameAsFQDN: from.SetHostnameAsFQDN,
		HostNetwork: from.HostNetwork, HostPID: from.HostPID, HostIPC: from.HostIPC, HostUsers: from.HostUsers,
		ShareProcessNamespace: from.ShareProcessNamespace, OS: from.OS,
		DNSPolicy: from.DNSPolicy, DNSConfig: from.DNSConfig, ResourceClaims: from.ResourceClaims,
		TerminationGracePeriodSeconds: from.TerminationGracePeriodSeconds,
		ActiveDeadlineSeconds:         from.ActiveDeadlineSeconds,
		AutomountServiceAccountToken:  &off, EnableServiceLinks: &off,
		HostAliases: append(from.HostAliases, aliases...),
	}
	if to.Hostname == "" && len(pod.Name) <= 63 {
		to.Hostname = firstLabel(pod.Name)
	}
	to.RestartPolicy = corev1.RestartPolicyOnFailure // a job's pod ends when it succeeds; the owner above makes another
	if from.RestartPolicy == corev1.RestartPolicyNever {
		to.RestartPolicy = corev1.RestartPolicyNever
	}
	to.SecurityContext = a.restrictedPod(from.SecurityContext)
	var err error
	if to.Volumes, err = data.volumes(from.Volumes); err != nil {
		return corev1.PodTemplateSpec{}, err
	}
	for _, list := range []struct{ from, to *[]corev1.Container }{
		{&from.InitContainers, &to.InitContainers}, {&from.Containers, &to.Containers},
	} {
		for _, container := range *list.from {
			if err := a.container(&container, pod, data); err != nil {
				return corev1.PodTemplateSpec{}, err
			}
			*list.to = append(*list.to, container)
		}
	}
	numberVolumes(&to)
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{podLabel: a.owner}},
		Spec:       to,
	}, nil
}

// numberVolumes names volumes by their place: that of the account's token has another name in each pod of a gang.
func numberVolumes(spec *corev1.PodSpec) {
	names := map[string]string{}
	for i := range spec.Volumes {
		names[spec.Volumes[i].Name] = fmt.Sprintf("v%d", i)
		spec.Volumes[i].Name = fmt.Sprintf("v%d", i)
	}
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for c := range list {
			for m := range list[c].VolumeMounts {
				list[c].VolumeMounts[m].Name = names[list[c].VolumeMounts[m].Name]
			}
			for m := range list[c].VolumeDevices {
				list[c].VolumeDevices[m].Name = names[list[c].VolumeDevices[m].Name]
			}
		}
	}
}

func firstLabel(name string) string {
	for i, r := range name {
		if r == '.' {
			return name[:i]
		}
	}
	return name
}

func (a *Agent) container(c *corev1.Container, pod *corev1.Pod, data *Data) error {
	restricted(c)
	for name, amount := range c.Resources.Requests { // the hub counts limits of memory
		if _, there := c.Resources.Limits[name]; name == corev1.ResourceMemory && !there {
			if c.Resources.Limits == nil {
				c.Resources.Limits = corev1.ResourceList{}
			}
			c.Resources.Limits[name] = amount
		}
	}
	env, err := data.environment(c, pod)
	if err != nil {
		return err
	}
	if data.identity { // the pod's token is of the upper cluster, so its API server is too
		host, port, err := net.SplitHostPort(a.upperAPI)
		if err != nil {
			return fmt.Errorf("--upper-api %s is not HOST:PORT: %w", a.upperAPI, err)
		}
		for _, each := range []corev1.EnvVar{
			{Name: "KUBERNETES_SERVICE_HOST", Value: host}, {Name: "KUBERNETES_SERVICE_PORT", Value: port}, {Name: "KUBERNETES_SERVICE_PORT_HTTPS", Value: port},
		} {
			if !slices.ContainsFunc(env, func(e corev1.EnvVar) bool { return e.Name == each.Name }) {
				env = append(env, each)
			}
		}
	}
	c.Env, c.EnvFrom = env, nil
	return nil
}

// restrictedPod fills in what the compute cluster requires of each pod; what the pod says itself stays, and is judged there.
func (a *Agent) restrictedPod(given *corev1.PodSecurityContext) *corev1.PodSecurityContext {
	found := &corev1.PodSecurityContext{}
	if given != nil {
		found = given.DeepCopy()
	}
	if found.RunAsNonRoot == nil {
		yes := true
		found.RunAsNonRoot = &yes
	}
	if found.RunAsUser == nil {
		found.RunAsUser = &a.runAs
	}
	if found.SeccompProfile == nil {
		found.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
	}
	return found
}

func restricted(c *corev1.Container) {
	if c.SecurityContext == nil {
		c.SecurityContext = &corev1.SecurityContext{}
	}
	s := c.SecurityContext
	if s.AllowPrivilegeEscalation == nil && (s.Privileged == nil || !*s.Privileged) {
		no := false
		s.AllowPrivilegeEscalation = &no
	}
	if s.Capabilities == nil {
		s.Capabilities = &corev1.Capabilities{}
	}
	if len(s.Capabilities.Drop) == 0 {
		s.Capabilities.Drop = []corev1.Capability{"ALL"}
	}
}

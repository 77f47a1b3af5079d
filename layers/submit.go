package main

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// bring creates the job of pods, and the Secret of their data.
func (a *Agent) bring(ctx context.Context, v *View, pods []*corev1.Pod, gang string) error {
	for _, owner := range pods[0].OwnerReferences {
		if owner.Kind == "DaemonSet" {
			return a.waits(ctx, pods, "pods of DaemonSets do not run here: this node is not one machine")
		}
	}
	job, data, err := a.make(ctx, v, pods, gang)
	if err != nil {
		return a.cannot(ctx, pods, err)
	}
	made, err := a.lower.BatchV1().Jobs(a.namespace).Create(ctx, job, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil // the watch will show it
	}
	if err != nil {
		return a.cannot(ctx, pods, err)
	}
	slog.Info("brought", "job", made.Name, "pods", len(pods), "first", pods[0].Namespace+"/"+pods[0].Name)
	a.mu.Lock()
	for _, pod := range pods {
		a.made[pod.UID] = fresh{made.Name, time.Now()}
	}
	a.mu.Unlock()
	if len(data.values) > 0 {
		return a.store(ctx, made, data)
	}
	return nil
}

// make returns the job of pods and their data.
func (a *Agent) make(ctx context.Context, v *View, pods []*corev1.Pod, gang string) (*batchv1.Job, *Data, error) {
	uids := make([]string, len(pods))
	for i, pod := range pods {
		uids[i] = string(pod.UID)
	}
	data := newData(ctx, a.upper, pods[0], jobName(a.owner, uids)+secretEnd, a.node)
	templates := make([]corev1.PodTemplateSpec, len(pods))
	for i, pod := range pods {
		aliases, err := a.aliases(ctx, pod)
		if err != nil {
			return nil, nil, err
		}
		data.pod = pod
		if templates[i], err = a.translate(pod, data, aliases); err != nil {
			return nil, nil, err
		}
	}
	if size := data.size(); size > maxData {
		return nil, nil, refusal(fmt.Sprintf("its ConfigMaps, Secrets and tokens have %d bytes together, more than the %d of one Secret; mount fewer", size, maxData))
	}
	job, err := a.job(pods, templates, gang, len(data.values) > 0)
	return job, data, err
}

// store writes the Secret of a job, which goes with it.
func (a *Agent) store(ctx context.Context, job *batchv1.Job, data *Data) error {
	secret := data.asSecret(a.namespace, metav1.OwnerReference{APIVersion: "batch/v1", Kind: "Job", Name: job.Name, UID: job.UID})
	secrets := a.lower.CoreV1().Secrets(a.namespace)
	_, err := secrets.Create(ctx, secret, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = secrets.Update(ctx, secret, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("the Secret of job %s: %w", job.Name, err)
	}
	at := data.renew
	if at.IsZero() {
		at = time.Now().AddDate(10, 0, 0)
	}
	a.mu.Lock()
	a.renew[job.UID] = at
	a.mu.Unlock()
	return nil
}

func (a *Agent) renewal(job *batchv1.Job) (time.Time, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	at, known := a.renew[job.UID]
	return at, known
}

// refresh writes the Secret of a job again: tokens end, and an agent may have been killed before it wrote it.
func (a *Agent) refresh(ctx context.Context, v *View, job *batchv1.Job) error {
	var pods []*corev1.Pod
	for _, m := range membersOf(job) {
		if up := v.uppers[types.UID(m.uid)]; up != nil {
			pods = append(pods, up)
		}
	}
	if len(pods) == 0 {
		return nil
	}
	data := newData(ctx, a.upper, pods[0], job.Name+secretEnd, a.node)
	for _, pod := range pods {
		data.pod = pod
		if _, err := a.translate(pod, data, nil); err != nil {
			return fmt.Errorf("data of job %s: %w", job.Name, err)
		}
	}
	return a.store(ctx, job, data)
}

// aliases returns the names of other pods that a pod reaches by name. A launcher waits for its workers' addresses.
func (a *Agent) aliases(ctx context.Context, pod *corev1.Pod) ([]corev1.HostAlias, error) {
	if pod.Labels[mpiRoleLabel] != "launcher" || pod.Labels[mpiJobLabel] == "" {
		return nil, nil
	}
	chosen := mpiJobLabel + "=" + pod.Labels[mpiJobLabel] + "," + mpiRoleLabel + "=worker"
	found, err := a.upper.CoreV1().Pods(pod.Namespace).List(ctx, metav1.ListOptions{LabelSelector: chosen})
	if err != nil {
		return nil, err
	}
	var aliases []corev1.HostAlias
	for i := range found.Items {
		worker := &found.Items[i]
		if worker.Status.PodIP == "" || worker.Status.Phase != corev1.PodRunning {
			return nil, missing("waits until worker " + worker.Name + " runs, to know its address")
		}
		aliases = append(aliases, corev1.HostAlias{IP: worker.Status.PodIP, Hostnames: namesOf(worker)})
	}
	if own := namesOf(pod)[1:]; len(own) > 0 { // a launcher that is a worker too has its own name in the list of hosts
		aliases = append(aliases, corev1.HostAlias{IP: "127.0.0.1", Hostnames: own})
	}
	slices.SortFunc(aliases, func(x, y corev1.HostAlias) int { return natural(x.Hostnames[0], y.Hostnames[0]) })
	return aliases, nil
}

// namesOf returns the names of a pod within its cluster, the longest last.
func namesOf(pod *corev1.Pod) []string {
	host := pod.Spec.Hostname
	if host == "" {
		host = pod.Name
	}
	names := []string{host}
	if under := pod.Spec.Subdomain; under != "" {
		at := host + "." + under
		for _, end := range []string{"", "." + pod.Namespace, "." + pod.Namespace + ".svc", "." + pod.Namespace + ".svc.cluster.local"} {
			names = append(names, at+end)
		}
	}
	return names
}
